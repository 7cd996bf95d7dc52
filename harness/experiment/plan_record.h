// A plan built back from the canonical form that a ledger recorded, with no other file. Stateless;
// any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"

namespace assay {

/// The plan of `canonical` (of any version; see migrated_plan()). It goes through the reader that
/// every plan goes through, so that a store that is not here, a setting that is no more or pins
/// that this machine lacks are errors that say so. What comes out may still differ, where a
/// reference cannot do the workload here: compare to_json() of it with the migrated form. Error of
/// kind ledger where the record is no plan.
[[nodiscard]] Result<Plan> plan_from_record(const nlohmann::json& canonical,
                                            const PlanEnvironment& environment);

/// Only what judging needs of it (arms and their roles, metric, design, alpha, claims,
/// aggregation): asks no store and no machine, and cannot be run.
[[nodiscard]] Result<Plan> judging_plan(const nlohmann::json& canonical);

}  // namespace assay
