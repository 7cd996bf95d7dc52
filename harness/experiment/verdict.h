// From the raw records of a complete result to its verdict (harness/FORMATS.md).
//
// The unit is the process (random), the block or the set: one value each, on the log scale, so that
// effects are ratios. random: Welch's t-test; blocks and windows: paired t-test on the rounds. The
// family of hypotheses is adjusted by Holm. A rank test beside it is a sensitivity check: where the
// two disagree the comparison is flagged, never re-judged. Nothing is dropped as an outlier.
// A/A gate: void when the interval of the twin's ratio is wider than the effect the plan wants to
// see, or lies wholly outside it. Positive control: void when the injected delay is not seen.
// Of a sweep every cell is judged by itself: its arms among themselves and against its own
// references, with a gate and a control of its own that void that cell alone. The claims of all
// cells are one family.
// Stateless; any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/comparison.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/qualification.h"
#include "harness/experiment/run_state.h"
#include "harness/experiment/runner.h"

namespace assay {

struct VerdictInput {
  const Plan& plan;
  const RunState& state;
  std::string status;  ///< "registered" or "exploratory"
  std::string stream_digest;
  std::vector<std::string> warnings;
  std::vector<std::string> void_reasons;  ///< not empty: nothing is judged
  std::function<Result<nlohmann::json>(const TrialEntry&)> load_raw;
  std::optional<Baseline> baseline = {};  ///< the accepted result, for hypotheses of regression
  /// What is known of an arm's durability class; empty = nothing was asked.
  std::function<Qualification(const Arm&, const nlohmann::json& store)> qualification = {};
  std::map<std::string, std::string> stream_digests = {};  ///< by cell, of a sweep
};

/// The body of the verdict record. Errors are those of load_raw.
[[nodiscard]] Result<nlohmann::json> make_verdict(const VerdictInput& input);

/// How the run ends, from the verdict's "outcome".
[[nodiscard]] RunEnd end_of(const nlohmann::json& verdict);

}  // namespace assay
