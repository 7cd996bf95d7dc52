// What level F says of a store, from what was explored of all histories under all profiles.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>

#include <nlohmann/json_fwd.hpp>

#include "harness/qualify/campaign.h"
#include "harness/qualify/power/explore.h"

namespace assay::qualify::power {

struct PowerTotals {
  std::map<Profile, Exploration> profiles;
  std::uint64_t nested_failures = 0;  ///< of crashes during recovery
  Loss nested_worst = Loss::intact;
  std::uint64_t histories = 0;  ///< whole ones

  /// Null where nothing was looked at under it.
  [[nodiscard]] const Exploration* of(Profile profile) const;
  /// Of those that the verdict rests on.
  [[nodiscard]] std::uint64_t failures() const;
};

/// Sets `coverage["profiles"]`.
void tell_profiles(const PowerTotals& total, nlohmann::json& coverage);

/// Verdict, reason, losses and proven class of `outcome`, whose `allowed` is set.
void judge_power(const CampaignPlan& plan, const PowerTotals& total, LevelOutcome& outcome);

}  // namespace assay::qualify::power
