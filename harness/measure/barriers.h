// Durability barriers of this process: how often anything in it (the store's own shared library
// included) asked the kernel to make data durable.
//
// The object library assay_barrier_hooks (barrier_hooks.cpp) defines the libc functions that
// flush or write and forwards them as system calls. Linked into an executable, which it makes
// export them (barrier_hooks.symbols), it stands before libc in symbol lookup, so calls of
// libsqlite3, librocksdb, liblmdb and of plug-ins pass through it. Not seen: io_uring, POSIX aio,
// syscall() by hand, and calls that libc makes inside itself (fclose, fflush). Counting is a
// relaxed atomic increment; any thread may read at any time.
#pragma once

#include <cstdint>

#include "adapters/result.h"

namespace assay {

/// Calls, whether they succeeded or not, since the process began.
struct BarrierCounts {
  std::uint64_t fsync = 0;
  std::uint64_t fdatasync = 0;
  std::uint64_t msync = 0;  ///< with MS_SYNC only
  std::uint64_t sync_file_range = 0;
  std::uint64_t syncfs = 0;        ///< syncfs and sync
  std::uint64_t dsync_writes = 0;  ///< writes to O_DSYNC or O_SYNC files, or with RWF_DSYNC
  // Not barriers; what passed through the same hooks.
  std::uint64_t write_calls = 0;
  std::uint64_t write_bytes = 0;  ///< as acknowledged by the kernel

  /// All barriers, each counted once.
  [[nodiscard]] std::uint64_t total() const {
    return fsync + fdatasync + msync + sync_file_range + syncfs + dsync_writes;
  }
};
[[nodiscard]] BarrierCounts operator-(const BarrierCounts& after, const BarrierCounts& before);

/// The counts now. An error of kind `environment` where the hooks are not linked in, are switched
/// off (sanitizer builds) or are not the ones that shared libraries reach: the figure is unknown.
[[nodiscard]] Result<BarrierCounts> barrier_counts();

}  // namespace assay
