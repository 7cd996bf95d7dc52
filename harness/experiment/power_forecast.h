// What the trials of a plan can see: told before they run, from what is known of their scatter by
// then, and after, from the scatter that they had.
//
// Scatter is the standard deviation on the log scale: between the trials of an arm in the design
// `random`, of the ratio within a block or set in the others. It is taken from the newest result of
// the same experiment on this machine, else from the plan's cv_percent, else it is not known and
// three cases are told instead. Stateless; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/experiment/plan.h"
#include "harness/ledger/ledger.h"

namespace assay {

struct Scatter {
  double deviation = 0.0;
  std::string source;  ///< "the A/A arm of result ...", "cv_percent of the plan", ...
};

/// Log deviation that belongs to a coefficient of variation (of a lognormal).
[[nodiscard]] double deviation_of_cv(double cv);

/// The scatter in the rows of a verdict: of the A/A arm and its twin, else of all arms that are no
/// references; nothing where there are fewer than `least` values an arm. `where` ends the source.
[[nodiscard]] std::optional<Scatter> scatter_of_rows(const Plan& plan, const nlohmann::json& rows,
                                                     std::size_t least, const std::string& where);

/// The scatter that `records` hold of the same experiment (workload, arms, design, metric and root;
/// number of trials, seed and limits may differ) on the machine `fingerprint`; newest first.
[[nodiscard]] std::optional<Scatter> recorded_scatter(const Plan& plan,
                                                      const std::vector<LedgerRecord>& records,
                                                      const std::string& fingerprint);

/// "power" of a verdict, for a scatter that is known. Members as in harness/FORMATS.md.
[[nodiscard]] nlohmann::json power_of(const Plan& plan, const Scatter& scatter);
/// "power" of a plan record: power_of() where something is known, else "cases" for three CVs.
[[nodiscard]] nlohmann::json power_before(const Plan& plan, const std::optional<Scatter>& recorded);
/// Either of them in words, for people. `effect_from` says whose effect_percent it is.
[[nodiscard]] std::string power_sentence(const Plan& plan, const nlohmann::json& power,
                                         std::string_view effect_from = "of the plan");

}  // namespace assay
