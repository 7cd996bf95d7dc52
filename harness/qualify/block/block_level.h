// Level B: power loss under a real file system, as a level of a campaign.
//
// Short histories are performed on a store that lives on a disk of ours (FUSE, loop device, ext4,
// XFS or btrfs), and every write and flush that the disk gets is logged. Then crash states of the
// log are served as disks of their own: mounted, so that the file system recovers, opened by a
// fresh process, judged by the oracle. One outcome a file system, whose name is the profile.
// A disk that loses what was flushed, and a file system that cannot be mounted after a legal cut,
// is the harness's failure and not the store's.
// Threads: the caller must not have started any.
#pragma once

#include <atomic>
#include <vector>

#include "harness/qualify/block/disk_server.h"
#include "harness/qualify/campaign.h"

namespace assay::qualify::block {

/// Distinct states of one file system below which nothing is said, unless there are no more.
inline constexpr std::uint64_t kLeastCuts = 100;
/// States from which on a lossy control must have reached what it has to.
inline constexpr std::uint64_t kStandardCuts = 500;

/// As RunLevel: one outcome a file system of the plan.
[[nodiscard]] Result<std::vector<LevelOutcome>> run_block_level(
    const CampaignPlan& plan, const std::vector<LevelOutcome>& from, const std::atomic<bool>& stop,
    CampaignObserver& observer);

/// As MergeLevel.
[[nodiscard]] Result<LevelOutcome> merge_block_level(const CampaignPlan& whole,
                                                     const std::vector<LevelOutcome>& shards);

/// The same on a disk that misbehaves: the control of the level itself.
[[nodiscard]] Result<std::vector<LevelOutcome>> run_block_level_on(
    const DiskFault& fault, const CampaignPlan& plan, const std::vector<LevelOutcome>& from,
    const std::atomic<bool>& stop, CampaignObserver& observer);

}  // namespace assay::qualify::block
