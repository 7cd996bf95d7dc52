// Performs a history on an open store, noting each step before and after.
//
// Each writer is a thread with a session of its own; writer 0 runs in the calling thread, so that a
// history of one writer is a single-threaded program (as far as the store is). A writer stops at
// its first error: the outcome of that transaction stays unknown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify {

struct LifePlan {
  std::vector<std::uint64_t> first;    ///< number of the first transaction, a writer each
  std::uint64_t transactions = 0;      ///< of each writer
  std::uint32_t checkpoint_every = 0;  ///< transactions of writer 0 between checkpoints; 0 = none
  std::uint32_t sync_every = 0;        ///< ... between syncs of the whole store; 0 = none
  std::uint32_t read_every = 0;        ///< ... of each writer between reads of its own keys
};

/// How every process of a qualification opens its store: small caches, so that what a store does
/// when they are full happens soon.
[[nodiscard]] OpenOptions qualification_options(const std::string& directory,
                                                DurabilityClass durability,
                                                const Settings& settings, KeyKind key_kind);

/// Errors are the store's own; ErrorKind::wrong_contents when a writer does not find what it wrote.
[[nodiscard]] Status perform(Store& store, const History& history, const LifePlan& plan,
                             ReceiptSink& sink);

/// One transaction, as its shape demands: a batch, single puts and erases, or a rollback.
[[nodiscard]] Status perform_transaction(Session& session, const History& history,
                                         const Transaction& transaction);

}  // namespace assay::qualify
