// Cache policies of a run phase: what is done to the page cache before its first operation, and
// what was found there. Threading: called by the coordinator while no worker is at work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/result.h"
#include "workloads/workload.h"

namespace assay {

struct CacheFigures {
  std::optional<double> resident_fraction;  ///< of the store's files, before the first operation
  std::uint64_t resident_bytes = 0;         ///< the same, where there is a fraction
  std::string why_unknown;                  ///< when there is no fraction
  std::string not_done;  ///< best effort: the step that could not be done, and why
};

/// Error of kind `environment` when a phase wants `cold` and the caches may not be dropped here.
[[nodiscard]] Status check_cold(const Workload& workload);

/// cold and cold_files: empties the cache; call while the store is closed.
[[nodiscard]] Status drop_before_open(const Workload& workload, const Phase& phase,
                                      const std::string& directory, CacheFigures& figures);
/// A cold phase may begin: what is cached is no more than the larger one of its two limits. There
/// is a fraction.
[[nodiscard]] bool within_limits(const Phase& phase, const CacheFigures& figures);
/// Reads the files (warm) and measures the residency; call right before the first operation. A
/// cold phase whose files are still cached above its limit is an error of kind void_experiment.
[[nodiscard]] Status settle_cache(const Phase& phase, const std::string& directory,
                                  CacheFigures& figures);

}  // namespace assay
