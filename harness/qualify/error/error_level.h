// Level E, the parent's side: servers on several CPUs, one case each at a time, until the budget is
// spent. Errors prove no durability class: the verdict says whether the store keeps its word when
// the system fails it.
#pragma once

#include <atomic>
#include <vector>

#include "harness/qualify/campaign.h"

namespace assay::qualify::error {

/// Faults that were reached below which nothing is said.
inline constexpr std::uint64_t kLeastFaults = 100;

[[nodiscard]] Result<std::vector<LevelOutcome>> run_error_level(
    const CampaignPlan& plan, const std::vector<LevelOutcome>& from, const std::atomic<bool>& stop,
    CampaignObserver& observer);

/// As MergeLevel.
[[nodiscard]] Result<LevelOutcome> merge_error_level(const CampaignPlan& whole,
                                                     const std::vector<LevelOutcome>& shards);

}  // namespace assay::qualify::error
