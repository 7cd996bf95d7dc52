// The steps of a run that need nothing of its state: what the ledger keeps of a raw record, the
// benchmark root, sets with a void trial, why an experiment is void. Internal to the runner.
// Stateless.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/result_place.h"
#include "harness/experiment/run_state.h"
#include "harness/trial/timed_batch.h"
#include "harness/trial/trial.h"

namespace assay {

/// A raw record without the figures that the ledger leaves to the raw file.
[[nodiscard]] nlohmann::json ledger_form(nlohmann::json raw);
/// The raw record of a trial; error of kind `ledger` when it is missing or was changed.
[[nodiscard]] Result<nlohmann::json> load_raw(const ResultPlace& place, const TrialEntry& trial);

/// Makes the benchmark root and refuses one that no trial could use.
[[nodiscard]] Status prepare_root(const std::string& root);

/// Names of the settings that the arm's store declares; null where that is not known.
[[nodiscard]] nlohmann::json declared_settings(const nlohmann::json& provenance,
                                               const std::string& arm);

/// The choices of every cell ("" without a sweep) as a plan record holds them.
[[nodiscard]] nlohmann::json timed_batches_of_cells(
    const std::map<std::string, std::vector<TimedBatchChoice>>& batches);

/// What the orders within a set are drawn from: of each round and cell its own.
[[nodiscard]] std::uint64_t seed_of_set(const Plan& plan, const std::string& cell,
                                        std::uint64_t round);

/// One void trial makes its whole set void: the others ran beside a disturbed one.
void void_whole_set(std::vector<nlohmann::json>& raws, const std::vector<TrialRequest>& trials);

/// Why more trials (or sets) were void than the plan allows: their number first, then each cause.
[[nodiscard]] std::vector<std::string> void_reasons_of(const Plan& plan, const RunState& state);

}  // namespace assay
