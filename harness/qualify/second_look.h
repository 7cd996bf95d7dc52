// A failure of level F tried again at level B: the same history, cut about where the model's state
// was cut, under a real file system. It tells what a store does wrong from what the model has
// wrong, for where the two disagree the file system is right. Threads: as run_campaign().
#pragma once

#include <atomic>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

/// Adds `at_level_B` to the coverage of a failed outcome of level F, a clause to its reason and
/// what bundle there is; `outcome` ("fails", "passes" or "not tried") says what came of it. The
/// verdict stays: cuts that passed are few. Other outcomes are left as they are.
void look_again_under_a_file_system(const CampaignPlan& plan, LevelOutcome& outcome,
                                    const std::atomic<bool>& stop, CampaignObserver& observer);

}  // namespace assay::qualify
