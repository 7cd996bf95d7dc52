// What a plan demands of the machine (`machine_demands`: items of assay doctor): looked at before
// the first sample, where one that is not met refuses the run, and around every trial, where one
// that is not met any more makes the trial void. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/progress.h"
#include "harness/experiment/runner.h"

namespace assay {

/// What was found of each demanded item before the first sample, for the plan record: an array of
/// id, found, wanted and state. Error of kind environment where one is not as demanded (or cannot
/// be seen), after a note to `observer` for each: found, wanted, how.
[[nodiscard]] Result<nlohmann::json> check_machine(const Plan& plan, const RunServices& services,
                                                   RunObserver& observer);

/// Which demanded items are not as wanted at this moment, in words; empty when all are. Those that
/// measuring itself moves are left out.
[[nodiscard]] std::string machine_now(const Plan& plan, const RunServices& services);

/// Makes sound records void where the machine was not as demanded before or after them.
void void_disturbed(const std::string& before, const std::string& after,
                    std::vector<nlohmann::json*> raws);

}  // namespace assay
