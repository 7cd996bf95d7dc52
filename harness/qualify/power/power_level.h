// Level F: power loss at file level, as a level of a campaign.
//
// Short histories are recorded one after the other until the budget is spent; the crash states of
// each are explored under all profiles, `ordered` first and
// with half of the budget, for it is the one that verdicts rest on (ext4 with a journal, XFS). The
// outcome names the profile with the fewest guarantees that passes; what each profile showed is in
// its coverage. Then some recoveries are recorded and cut, too.
// Threads: the caller must not have started any.
#pragma once

#include <atomic>
#include <vector>

#include "harness/qualify/campaign.h"

namespace assay::qualify::power {

/// Distinct states under `ordered` below which nothing is said, unless there are no more.
inline constexpr std::uint64_t kLeastStates = 300;
/// States from which on a lossy control must have reached what it has to.
inline constexpr std::uint64_t kStandardStates = 5'000;

/// As RunLevel: one outcome.
[[nodiscard]] Result<std::vector<LevelOutcome>> run_power_level(
    const CampaignPlan& plan, const std::vector<LevelOutcome>& from, const std::atomic<bool>& stop,
    CampaignObserver& observer);

/// As MergeLevel. With a budget in cases and a store that makes the same calls each time, what is
/// merged has checked the states of the unsharded campaign and no others, unless one has failed:
/// a shard that finds a failure ends there.
[[nodiscard]] Result<LevelOutcome> merge_power_level(const CampaignPlan& whole,
                                                     const std::vector<LevelOutcome>& shards);

}  // namespace assay::qualify::power
