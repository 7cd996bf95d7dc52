// A soak: many clients move money between accounts for a long time, beside a process that keeps the
// disk busy; the store is closed and killed in turn; the sum of all accounts must never change.
//
// A store of keys and values has no transaction that reads, so the clients of one process lock the
// two accounts of a transfer among themselves; the transfer is one atomic batch, which also counts
// the client's transfers. So three things can be told from the contents alone: that no batch was
// half made (the sum), that none that was acknowledged is gone, and that none was made that nobody
// asked for (the counts).
//
// Invariant: every process of a soak is gone when run_soak() returns, and so is its directory.
// One soak at a time in a process, which must have one thread: its children are forked.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"

namespace assay {

inline constexpr std::uint32_t kSoakClientsMost = 1024;
inline constexpr std::uint64_t kSoakAccountsLeast = 2;

struct SoakPlan {
  const Driver* driver = nullptr;
  DurabilityClass durability = DurabilityClass::power;  ///< at least `process`
  Settings settings;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;
  std::string root;  ///< below which the soak makes its directory
  std::vector<std::uint32_t> clients{16, 32, 64, 128, 256};
  double seconds = 20;  ///< under load, shared by the rounds: two for each number of clients
  std::uint64_t accounts = 1000;
  std::uint64_t seed = 1;
  bool disk_writer = true;
  bool own_process = false;  ///< the store works in one: what ours uses of memory is not its
};

/// One time with the store open, with so many clients.
struct SoakRound {
  std::uint32_t clients = 0;
  bool killed = false;  ///< ended by SIGKILL under load, else closed
  double open_s = 0;    ///< to open what the round before left, recovery included
  double load_s = 0;
  std::uint64_t transfers = 0;   ///< acknowledged
  std::uint64_t operations = 0;  ///< two reads and a batch for each transfer
  std::uint64_t checks = 0;      ///< of the invariant: whole scans, one at the opening
  std::uint64_t peak_memory_bytes = 0;
};

struct SoakReport {
  std::vector<SoakRound> rounds;
  std::uint64_t written_beside_bytes = 0;  ///< by the disk writer
  std::uint64_t written_beside_syncs = 0;
  double checkpoint_s = 0;
  double backup_s = 0;
  double restore_s = 0;  ///< to open the backup's copy
  std::uint64_t backup_bytes = 0;
  std::uint64_t final_memory_bytes = 0;
  std::string digest;           ///< of every key and value, before the backup
  std::string restored_digest;  ///< of the restored backup
  std::string violation;        ///< what was broken; empty: nothing was
};

/// Error `bad_input` for a plan that no store could follow, `unsupported` for one that this store
/// cannot, `store` or `child` where it fails; a broken promise is no error but `violation`, and
/// ends the soak. `on_round` is called when one has ended; `stop` ends the soak with `interrupted`.
[[nodiscard]] Result<SoakReport> run_soak(const SoakPlan& plan, const std::atomic<bool>& stop,
                                          const std::function<void(const SoakRound&)>& on_round);

/// Plan and report, as FORMATS.md has them.
[[nodiscard]] nlohmann::json soak_json(const SoakPlan& plan, const SoakReport& report);

}  // namespace assay
