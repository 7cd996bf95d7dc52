#include "harness/qualify/budget_meter.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::qualify {
namespace {

constexpr std::chrono::milliseconds kTimeOfNoBudget{60'000};
constexpr std::chrono::milliseconds kBetweenSentences{200};

}  // namespace

BudgetMeter::BudgetMeter(const CampaignPlan& plan, double spent_before_s, unsigned share)
    : failures_max_(plan.failures_max), before_s_(spent_before_s) {
  if (plan.budget.cases) {
    // Those of them whose number is this shard's.
    const std::uint64_t all = *plan.budget.cases / share;
    const std::uint64_t before = std::min(all, plan.shard.index);
    cases_ = std::max<std::uint64_t>((all - before + plan.shard.count - 1) / plan.shard.count, 1);
  }
  if (plan.budget.time || !plan.budget.cases)
    time_ =
        std::max(plan.budget.time.value_or(kTimeOfNoBudget) / share, std::chrono::milliseconds(1));
}

double BudgetMeter::elapsed_s() const {
  return before_s_ + std::chrono::duration<double>(Clock::now() - began_).count();
}

double BudgetMeter::fraction(std::uint64_t cases) const {
  double most = 0.0;
  if (cases_ > 0) most = static_cast<double>(cases) / static_cast<double>(cases_);
  if (time_.count() > 0)
    most = std::max(most, elapsed_s() * 1000.0 / static_cast<double>(time_.count()));
  return std::min(1.0, most);
}

bool BudgetMeter::spent(const LevelOutcome& outcome) const {
  return fraction(outcome.cases) >= 1.0 || outcome.failures >= failures_max_;
}

void BudgetMeter::tell(const LevelOutcome& outcome, std::string_view cases,
                       CampaignObserver& observer) {
  const auto now = Clock::now();
  if (now - told_ < kBetweenSentences) return;
  told_ = now;
  observer.progress(
      fraction(outcome.cases),
      fmt::format(
          "{} {} ({:.0f}/s), worst so far: {}{}", outcome.cases, cases,
          static_cast<double>(outcome.cases) / std::max(0.1, elapsed_s()),
          to_string(outcome.observed),
          outcome.failures == 0 ? std::string() : fmt::format(", {} failures", outcome.failures)));
}

}  // namespace assay::qualify
