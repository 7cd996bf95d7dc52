// How much of a directory's files is in the page cache, and getting it out of there.
// No state; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/result.h"

namespace assay {

struct Residency {
  std::uint64_t resident_bytes = 0;
  std::uint64_t total_bytes = 0;  ///< allocated or apparent size of each file, the smaller one
  /// Share of the bytes that is cached, 0 to 1; 0 for empty files.
  [[nodiscard]] double fraction() const;
};

/// Over the regular files below `directory`, by cachestat(2) (Linux 6.5) or else by mincore(2).
/// Neither brings anything into the cache.
[[nodiscard]] Result<Residency> residency(const std::string& directory);
/// The mincore way alone, for machines without cachestat and to check one against the other.
[[nodiscard]] Result<Residency> residency_by_mincore(const std::string& directory);

/// Policy cold-files: fsync, then posix_fadvise(DONTNEED) of every file below `directory`. Needs no
/// privilege. Pages that a process has mapped stay: close the store before.
[[nodiscard]] Status drop_files(const std::string& directory);
/// Policy cold: sync and drop_caches of the whole machine. Needs root; else an `environment` error.
[[nodiscard]] Status drop_caches();

}  // namespace assay
