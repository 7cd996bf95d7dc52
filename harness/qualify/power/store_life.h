// A store's recorded life: it is created, commits once and is closed; from there on a history is
// performed and everything it does to its files is recorded.
//
// For commits, what was there before the recording counts as durable, names included: that a first
// creation may be cut in the middle is another question (`creation`: nothing is there before, and
// losses of that time are told apart by the oracle).
// Threads: the caller must not have started any.
#pragma once

#include <chrono>
#include <cstdint>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/perform.h"
#include "harness/qualify/power/check_pool.h"
#include "harness/qualify/power/record.h"

namespace assay::qualify::power {

struct LifeOfStore {
  const Driver* driver = nullptr;
  OpenOptions options;  ///< directory: empty, ours
  const History* history = nullptr;
  std::uint64_t transactions = 40;  ///< of each writer, recorded
  std::uint32_t checkpoint_every = 16;
  std::uint32_t sync_every = 0;
  bool creation = false;
  std::uint64_t fail_sync = 0;           ///< as RecordPlan
  std::uint32_t transactions_after = 1;  ///< in each check, to see whether the store still works
  std::chrono::milliseconds timeout{120'000};
};

struct RecordedLife {
  Trace trace;
  Acknowledgements receipts;
  std::chrono::nanoseconds recorded{};  ///< how long the recorded process took
};

[[nodiscard]] Result<RecordedLife> record_store(const LifeOfStore& life);

/// Opens a state as the store and asks the oracle. `life` must outlive it.
[[nodiscard]] Check check_of(const LifeOfStore& life);

/// Records how the store recovers from `state`, which becomes the initial directory; what was known
/// then stays known. For cuts during recovery.
[[nodiscard]] Result<RecordedLife> record_recovery(const LifeOfStore& life, const Tree& state,
                                                   const Acknowledgements& known,
                                                   const std::string& directory);

/// A writer's state after its first `transactions` transactions.
[[nodiscard]] Baseline baseline_after(const History& history, std::uint32_t writer,
                                      std::uint64_t transactions);

}  // namespace assay::qualify::power
