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

/// Keeps the calling thread, the parent of a trial, off the CPUs that the workload's threads are
/// pinned to, for its own life. Does nothing where the workload pins nothing, or leaves no other
/// CPU. Children inherit the narrower mask: hand them before(), which they take back.
class ParentElsewhere {
 public:
  explicit ParentElsewhere(const Workload& workload);
  ~ParentElsewhere();
  ParentElsewhere(const ParentElsewhere&) = delete;
  ParentElsewhere& operator=(const ParentElsewhere&) = delete;
  /// The CPUs that the thread had; empty when nothing was done.
  [[nodiscard]] const std::vector<int>& before() const { return before_; }

 private:
  std::vector<int> before_;
};

}  // namespace assay
