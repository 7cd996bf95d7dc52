// --set of the verbs that make an experiment from flags. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"

namespace assay::cli {

/// What the arm of a store is called that --stores names: a plug-in's file without its folder and
/// ending.
[[nodiscard]] std::string arm_name(const std::string& store);

/// Writes one assignment into an experiment's declaration: "keys.count=1000" or
/// "workload.keys.count=1000" goes to the workload, "sqlite.cache_bytes=1" to that store's arm,
/// which is the one of `stores` with this name. A key that has a value already is an error.
[[nodiscard]] Status assign(const std::string& assignment, const std::vector<std::string>& stores,
                            nlohmann::json& declaration);

}  // namespace assay::cli
