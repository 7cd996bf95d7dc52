// The parent's side of a level whose cases are run by servers (kill_request.h), one a CPU.
//
// It hands out the numbers of cases until the budget is spent, adds up what the servers tell, and
// keeps what a stopped campaign needs to go on: a case is counted when it is done, not before.
// Threads: as run_campaign().
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

/// What makes a level of its own of it.
struct ServedLevel {
  Level level = Level::errors;
  std::string_view cases;  ///< "faults": what is counted
  /// The request to a server whose scratch directory is given.
  std::function<nlohmann::json(const std::string& directory)> request;
  /// What a server said of its store when it was ready; false: the level cannot be run here.
  std::function<bool(const nlohmann::json& description, LevelOutcome& outcome)> begins;
  std::function<void(const nlohmann::json& round, LevelOutcome& outcome)> add_round;
  /// The verdict, at the end; `can`: what `begins` said.
  std::function<void(bool can, LevelOutcome& outcome)> judge;
};

/// Runs from `outcome` (`allowed` set, else new or what was returned when it was stopped).
[[nodiscard]] Result<LevelOutcome> run_served_level(const ServedLevel& how,
                                                    const CampaignPlan& plan, LevelOutcome outcome,
                                                    const std::atomic<bool>& stop,
                                                    CampaignObserver& observer);

}  // namespace assay::qualify
