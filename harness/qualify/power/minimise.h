// Makes a failing crash state small: as few lost calls as still fail.
//
// Calls that were lost are given back in halves, quarters and so on down to one by one, as long as
// the store still loses more than it may. What is left is the story: these calls, and no sync that
// covered them.
// Threads: as CheckPool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/qualify/power/explore.h"

namespace assay::qualify::power {

struct MinimalFailure {
  Tree state;
  Acknowledgements known;
  Judgement judgement;
  std::uint32_t cut = 0;
  std::vector<std::uint32_t> lost;  ///< events that the power cut took, in order
  bool torn = false;                ///< the last of them in part only
  std::uint32_t checks = 0;
  bool reproduced = true;  ///< false: the failure did not show again; nothing is minimal
};

/// `checks_max` states are looked at, at most.
[[nodiscard]] Result<MinimalFailure> minimise(const Trace& trace, const Acknowledgements& receipts,
                                              const ExplorePlan& plan, const Failure& failure,
                                              std::uint32_t checks_max = 150);

/// A sentence a step: what was acknowledged, what the cut took, which sync was missing.
[[nodiscard]] std::vector<std::string> story_of(const Trace& trace, Profile profile,
                                                const MinimalFailure& failure);

}  // namespace assay::qualify::power
