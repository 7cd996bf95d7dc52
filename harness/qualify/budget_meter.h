// How much of a campaign's budget a level has spent, and when it is time to say so.
//
// A budget is a number of cases, a time, or both, whichever ends first; without either it is a
// minute. A number of cases is that of all shards together. A level that was stopped goes on with
// the time that it had spent before. Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

class BudgetMeter {
 public:
  /// `spent_before_s`: seconds of earlier runs of the same level. `share`: one of so many parts of
  /// the budget is this level's.
  explicit BudgetMeter(const CampaignPlan& plan, double spent_before_s = 0.0, unsigned share = 1);

  [[nodiscard]] double elapsed_s() const;
  /// Cases that are this level's and shard's, where the budget counts them; else 0.
  [[nodiscard]] std::uint64_t cases() const { return cases_; }
  /// 0 to 1, by what ends first.
  [[nodiscard]] double fraction(std::uint64_t cases) const;
  /// Nothing is left, or there are as many failures as the plan wants.
  [[nodiscard]] bool spent(const LevelOutcome& outcome) const;

  /// Hands the observer a sentence about the cases ("kills") of `outcome`, five times a second.
  void tell(const LevelOutcome& outcome, std::string_view cases, CampaignObserver& observer);

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t cases_ = 0;
  std::chrono::milliseconds time_{0};  ///< 0 = not bounded by time
  std::uint64_t failures_max_;
  double before_s_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point told_ = began_;
};

}  // namespace assay::qualify
