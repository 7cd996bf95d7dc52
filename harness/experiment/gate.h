// A result held against an accepted one after the fact, for continuous integration: each arm's
// values against the same arm's of the baseline, by the test and the corridor of a hypothesis of
// kind regression (harness/FORMATS.md), the family adjusted by Holm. Nothing is measured and
// nothing is recorded. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/comparison.h"
#include "harness/experiment/plan.h"

namespace assay {

struct GateRequest {
  double corridor = 0.0;    ///< 0: each hypothesis of regression has its own in the plan, else 1.2
  std::string relative_to;  ///< reference whose share is compared; empty: as the plan says
};

enum class GateEnd : std::uint8_t { within, undecided, regression };

struct GateVerdict {
  GateEnd end = GateEnd::undecided;
  nlohmann::json comparisons;  ///< as in a verdict, judged
};

/// `verdict`: body of the newer verdict record, `baseline`: the accepted values. Arms that are
/// references, twins or controls are left out; an arm whose work on tables was other work (its
/// access path, or the checksum of what it loaded) is a regression whatever its times are; a new
/// arm without a baseline is `void` and decides nothing. `end` is regression where any arm was
/// shown to be outside its corridor, within where each was shown to be inside, else undecided.
/// Errors: bad_input where no arm can be compared or metrics differ.
[[nodiscard]] Result<GateVerdict> judge_gate(const Plan& plan, const nlohmann::json& verdict,
                                             const Baseline& baseline, const GateRequest& request);

}  // namespace assay
