// Explores the crash states of a trace under one profile and says what they lose.
//
// In two passes. The first builds the states of all classes at all cuts in memory and keeps one
// choice for each distinct image, with the latest event at which it was legal: later, more is
// acknowledged and the demand on the same image is the highest. The second puts images on the disk
// and has them looked at until the budget is spent: first, at every cut, nothing and everything of
// what is pending, then classes of few lost calls, then pairs, then seeded ones.
// Invariants: seed and the order of calls decide which states there are and in which order,
// whatever random numbers the store puts into its files; a shard looks at those that fall to it by
// cut and class, so that the union of shards is the unsharded set. Threads: as CheckPool.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/qualify/power/check_pool.h"
#include "harness/qualify/power/choices.h"

namespace assay::qualify::power {

struct ExplorePlan {
  Profile profile = Profile::ordered;
  std::uint64_t seed = 1;
  std::uint64_t states_max = 20'000;
  std::optional<std::chrono::milliseconds> time;
  std::uint64_t shard = 0;
  std::uint64_t shards = 1;
  Limits limits;
  Loss allowed = Loss::intact;
  std::uint32_t failures_kept = 3;
  bool stop_at_failure = false;
  const std::set<std::uint64_t>* suppressed = nullptr;  ///< sync sites that do nothing
  CheckPool::Plan pool;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::uint64_t done, std::uint64_t of, Loss worst)> on_progress;
};

struct Failure {
  Choice choice;
  std::uint32_t known_at = 0;  ///< event up to which receipts count
  Judgement judgement;
};

struct Exploration {
  std::uint64_t cuts = 0;
  std::uint64_t built = 0;     ///< states built in memory
  std::uint64_t distinct = 0;  ///< distinct images among them
  std::uint64_t selected = 0;  ///< of them, within the budget; the same in every shard
  std::uint64_t mine = 0;      ///< of these, this shard's
  std::uint64_t checked = 0;
  std::uint64_t pending_most = 0;  ///< calls pending at one cut, at most
  bool singles_exhaustive = true;  ///< all states with one call lost were built, and looked at
  bool pairs_exhaustive = true;
  double legal_log2 = 0.0;  ///< bound on the number of legal states at the widest cut, as log2
  std::array<std::uint64_t, 6> by_loss{};  ///< states, by Loss
  /// Sum over the checked states of a digest of how each came about and what it lost, so that the
  /// shards' sum is the unsharded one exactly when together they saw the same and found the same.
  std::uint64_t checked_digest = 0;
  std::uint64_t creation_not_atomic = 0;
  std::uint64_t failures = 0;
  Loss worst = Loss::intact;
  std::uint64_t lost_most = 0;
  std::optional<Loss> worst_legal;  ///< the worst among what was allowed
  std::vector<Failure> kept_failures;
  double seconds_building = 0.0;
  double seconds_checking = 0.0;
  bool stopped = false;
};
[[nodiscard]] nlohmann::json to_json(const Exploration& exploration);
/// What to_json() says, hence without `kept_failures` and `worst_legal`, so that a sum can be gone
/// on with. Error: bad_input.
[[nodiscard]] Result<Exploration> exploration_from_json(const nlohmann::json& json);
/// Adds what another exploration found; its failures are not taken over.
void add(Exploration& sum, const Exploration& one);
/// Adds what another shard found of the same traces.
void add_shard(Exploration& sum, const Exploration& other);

/// `receipts`: receipts_of(trace, ...). Errors: the machine's (no space, no processes).
[[nodiscard]] Result<Exploration> explore(const Trace& trace, const Acknowledgements& receipts,
                                          const ExplorePlan& plan);

}  // namespace assay::qualify::power
