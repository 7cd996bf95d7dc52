// Level R, the parent's side: does a store notice that its files are not as it left them?
//
// Verdicts are apart from durability: a store whose settings claim checksums fails when it gives
// back wrong data, crashes or hangs; one that claims none is reported as it is, and not failed.
#pragma once

#include <atomic>
#include <vector>

#include "harness/qualify/campaign.h"

namespace assay::qualify::rot {

/// Damages below which nothing is said.
inline constexpr std::uint64_t kLeastDamages = 100;

[[nodiscard]] Result<std::vector<LevelOutcome>> run_rot_level(const CampaignPlan& plan,
                                                              const std::vector<LevelOutcome>& from,
                                                              const std::atomic<bool>& stop,
                                                              CampaignObserver& observer);

/// As MergeLevel.
[[nodiscard]] Result<LevelOutcome> merge_rot_level(const CampaignPlan& whole,
                                                   const std::vector<LevelOutcome>& shards);

}  // namespace assay::qualify::rot
