// What the user names by the path or the name of an experiment: its file, its tree and its ledger.
#pragma once

#include <string>
#include <vector>

#include "adapters/result.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/runner.h"

namespace assay::cli {

/// The experiment.toml that a path or a NAME of ledgers/NAME means. Error bad_input with the
/// nearest name.
[[nodiscard]] Result<std::string> experiment_file(const std::string& given);

/// Names of the experiments declared below ledgers/ of the current folder, sorted.
[[nodiscard]] std::vector<std::string> declared_experiments();

/// How it is run: an experiment in its place, TREE/ledgers/NAME/experiment.toml, has a ledger
/// beside it and is registered; elsewhere it is exploratory.
[[nodiscard]] Result<RunRequest> request_of(const std::string& file, const Plan& plan);

/// The ledger of an experiment that is in its place; error bad_input for one that is not.
[[nodiscard]] Result<std::string> registered_ledger(const std::string& file, const Plan& plan);

}  // namespace assay::cli
