// Declared CPUs of a workload: the mask under which a store is opened, and what may be pinned.
#pragma once

#include <vector>

#include "adapters/result.h"
#include "workloads/workload.h"

namespace assay {

/// Every CPU that a role of any phase names, ascending, each once.
[[nodiscard]] std::vector<int> declared_cpus(const Workload& workload);
/// Error of kind `environment` when a declared CPU is not among those this process may use.
[[nodiscard]] Status check_cpus(const Workload& workload);

}  // namespace assay
