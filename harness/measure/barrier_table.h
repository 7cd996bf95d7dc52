// What the barrier hooks count into: the seam between the object library that is linked into an
// executable and barriers.cpp, which finds it there or not.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay {

/// One cache line for the barriers, one for the writes, so that counting writes does not slow
/// another thread's barriers down.
struct BarrierTable {
  alignas(64) std::atomic<std::uint64_t> fsync{0};
  std::atomic<std::uint64_t> fdatasync{0};
  std::atomic<std::uint64_t> msync{0};
  std::atomic<std::uint64_t> sync_file_range{0};
  std::atomic<std::uint64_t> syncfs{0};
  std::atomic<std::uint64_t> dsync_writes{0};
  alignas(64) std::atomic<std::uint64_t> write_calls{0};
  std::atomic<std::uint64_t> write_bytes{0};
};

}  // namespace assay

/// Defined by barrier_hooks.cpp. Null when the hooks are switched off.
extern "C" const assay::BarrierTable* assay_barrier_table();
