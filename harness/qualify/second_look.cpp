#include "harness/qualify/second_look.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace assay::qualify {
namespace {

constexpr std::uint64_t kCuts = 80;
constexpr std::chrono::milliseconds kTime{30'000};

CampaignPlan plan_of_second_look(const CampaignPlan& plan, const nlohmann::json& where) {
  CampaignPlan again = plan;
  again.levels = {Level::power_blocks};
  again.seed = where.at("history_seed");
  again.shard = {};
  again.file_systems.resize(std::min<std::size_t>(again.file_systems.size(), 1));
  const std::uint64_t acknowledged = where.at("acknowledged");
  // A cut of the disk is no cut of the model's: one commit on either side of it.
  again.region =
      CutRegion{acknowledged - std::min<std::uint64_t>(acknowledged, 1), acknowledged + 1};
  again.budget = {.time = kTime, .cases = kCuts};
  again.failures_max = 1;
  again.bundles_max = 1;
  return again;
}

}  // namespace

void look_again_under_a_file_system(const CampaignPlan& plan, LevelOutcome& outcome,
                                    const std::atomic<bool>& stop, CampaignObserver& observer) {
  if (outcome.verdict != Verdict::fail || !outcome.coverage.contains("first_failure") || stop)
    return;
  const CampaignPlan again = plan_of_second_look(plan, outcome.coverage["first_failure"]);
  const auto ran = find_level(Level::power_blocks)(again, {}, stop, observer);
  nlohmann::json told = {{"outcome", "not tried"}, {"cuts", 0}};
  const auto not_tried = [&](const std::string& why) {
    told["why"] = why;
    outcome.reason += "; it could not be tried again at level B: " + why;
  };
  if (!ran || ran->empty()) {
    not_tried(ran ? "no file system" : ran.error().message());
  } else if (const LevelOutcome& found = ran->front();
             found.verdict == Verdict::skipped || found.verdict == Verdict::harness_error) {
    not_tried(found.reason);
  } else if (found.failures == 0 && found.cases == 0) {
    not_tried("no cut of the disk lies there");
  } else {
    const bool fails = found.failures > 0;
    told = {{"outcome", fails ? "fails" : "passes"},
            {"cuts", found.cases},
            {"observed", to_string(found.observed)},
            {"file_system", found.profile}};
    outcome.bundles.insert(outcome.bundles.end(), found.bundles.begin(), found.bundles.end());
    outcome.reason +=
        fails ? fmt::format("; the same history fails at that place on {}, too (level B)",
                            found.profile)
              : fmt::format(
                    "; {} cuts of the same history at that place on {} (level B) show nothing "
                    "worse: it may be that this file system promises more than the model",
                    found.cases, found.profile);
  }
  outcome.coverage["at_level_B"] = std::move(told);
}

}  // namespace assay::qualify
