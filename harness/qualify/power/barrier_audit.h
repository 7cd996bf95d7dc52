// Which syncs does a store need? Each place in its code that syncs is switched off in the model,
// and the crash states are explored again.
//
// A place whose syncs can be switched off without anything worse than the contract is redundant, or
// the model or the budget does not reach what it is for; one that cannot is necessary, and the
// failure shows that the harness has power there. Nothing is recorded again: a suppressed sync
// stays a call that the store made, and covers nothing.
// Threads: as CheckPool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/qualify/power/explore.h"

namespace assay::qualify::power {

struct SyncSite {
  std::uint64_t site = 0;
  std::string call;                ///< "fdatasync log-1", of its first use
  std::vector<std::string> stack;  ///< innermost first: library, symbol where it has one, offset
  std::uint64_t uses = 0;
  bool necessary = false;
  std::uint64_t states = 0;  ///< looked at for it
  Loss worst = Loss::intact;
  std::string finding;  ///< of the first failure
};
[[nodiscard]] nlohmann::json to_json(const SyncSite& site);

/// `plan.states_max` is for each site. Sites in the order of their first use.
[[nodiscard]] Result<std::vector<SyncSite>> audit_barriers(const Trace& trace,
                                                           const Acknowledgements& receipts,
                                                           const ExplorePlan& plan);

/// "libsqlite3.so.0.8.6+0x1234 (sqlite3_step)", for an address of this process.
[[nodiscard]] std::string name_of_address(std::uint64_t address);

}  // namespace assay::qualify::power
