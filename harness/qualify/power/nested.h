// Crashes during the recovery from a crash: the recovery of some states is recorded and cut again.
//
// Which states: seeded, spread over the cuts; those from which the store recovers without touching
// its files count as looked at and have nothing to cut. A state from which recovery fails is not a
// matter of this part: the first exploration has told of it.
// Threads: as CheckPool.
#pragma once

#include "harness/qualify/power/explore.h"
#include "harness/qualify/power/store_life.h"

namespace assay::qualify::power {

struct NestedPlan {
  ExplorePlan explore;  ///< states_max: of each recovery
  std::uint64_t recoveries = 20;
  std::string directory;  ///< where recoveries are recorded; empty, ours
};

struct NestedFailure {
  RecordedLife recovery;
  Failure failure;
  Choice first;  ///< the crash before it
};

struct NestedExploration {
  std::uint64_t recoveries = 0;         ///< recorded
  std::uint64_t untouched = 0;          ///< of them, without any change to a file
  Exploration sum;                      ///< of the explorations of all recoveries
  std::vector<NestedFailure> failures;  ///< the first only
};

[[nodiscard]] Result<NestedExploration> explore_nested(const LifeOfStore& life, const Trace& trace,
                                                       const Acknowledgements& receipts,
                                                       const NestedPlan& plan);

}  // namespace assay::qualify::power
