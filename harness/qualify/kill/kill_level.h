// Level K, the parent's side: servers on several CPUs, one case each at a time, until the budget
// is spent. Kills prove the class `process` at most.
#pragma once

#include <atomic>
#include <vector>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

/// Kills below which nothing is said.
inline constexpr std::uint64_t kLeastKills = 100;
/// Kills from which on a lossy control must have reached what it has to.
inline constexpr std::uint64_t kStandardKills = 1000;

[[nodiscard]] Result<std::vector<LevelOutcome>> run_kill_level(
    const CampaignPlan& plan, const std::vector<LevelOutcome>& from, const std::atomic<bool>& stop,
    CampaignObserver& observer);

/// As MergeLevel.
[[nodiscard]] Result<LevelOutcome> merge_kill_level(const CampaignPlan& whole,
                                                    const std::vector<LevelOutcome>& shards);

/// What one round, as a server tells it, adds to an outcome.
void add_round(const nlohmann::json& round, LevelOutcome& outcome);
/// The verdict of all rounds so far.
void judge_kills(const CampaignPlan& plan, LevelOutcome& outcome);

}  // namespace assay::qualify
