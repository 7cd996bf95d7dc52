// What the processes of a soak share, in memory that survives the death of each of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "adapters/result.h"
#include "harness/soak/soak.h"

namespace assay {

struct SoakShared {
  std::atomic<bool> stop{false};          ///< the clients are to end
  std::atomic<std::uint32_t> working{0};  ///< clients that have a session
  std::atomic<std::uint64_t> transfers{0};
  std::atomic<std::uint64_t> checks{0};
  std::atomic<std::uint64_t> opening_ns{0};
  std::atomic<std::uint64_t> checkpoint_ns{0};
  std::atomic<std::uint64_t> memory_bytes{0};  ///< before the store was closed
  std::atomic<std::uint64_t> writer_bytes{0};
  std::atomic<std::uint64_t> writer_syncs{0};
  std::array<std::atomic<std::uint64_t>, kSoakClientsMost> acknowledged{};  ///< by each client
  std::array<char, 80> digest{};
  // The first failure of a child: claimed, then written, then told.
  std::atomic<bool> claimed{false};
  std::atomic<int> failed{-1};  ///< an ErrorKind
  std::array<char, 1024> message{};

  void fail_with(const Error& error) {
    if (claimed.exchange(true)) return;
    error.message().copy(message.data(), message.size() - 1);
    failed.store(static_cast<int>(error.kind()));
    stop.store(true);
  }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace assay
