// Does a sync here do anything? Times a few writes with fdatasync and says so when they return
// sooner than any medium could have stored them. A warning, not a proof: a disk that lies slowly is
// not found out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

struct FlushPlausibility {
  std::uint64_t median_ns = 0;  ///< of a 4 KiB pwrite and its fdatasync
  std::uint64_t fastest_ns = 0;
  std::uint64_t syncs = 0;
  std::string file_system;  ///< "ext4", "tmpfs", or the number statfs gives
  bool plausible = true;
  std::string verdict;  ///< one sentence
};

/// Overwrites a file of its own in `directory`, `syncs` times (at least 1), and removes it.
[[nodiscard]] Result<FlushPlausibility> probe_flush(const std::string& directory,
                                                    std::uint64_t syncs = 32);
/// The judgement alone: whether a median of `median_ns` can be a sync on such a file system.
void judge_flush(FlushPlausibility& probe);

/// Name of the file system that holds `directory`, by statfs(2).
[[nodiscard]] Result<std::string> file_system_of(const std::string& directory);

}  // namespace assay
