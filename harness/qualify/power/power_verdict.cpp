#include "harness/qualify/power/power_verdict.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/controls.h"
#include "harness/qualify/power/power_level.h"
#include "harness/qualify/shards.h"

namespace assay::qualify::power {
namespace {

/// Profiles from the fewest guarantees to the most, for the report.
constexpr std::array<Profile, 4> kByGuarantees{Profile::strict, Profile::btrfs, Profile::ordered,
                                               Profile::prefix};

/// Few states that were all right show nothing, unless there are no more.
bool says_something(const Exploration& result) {
  return result.checked >= kLeastStates || (result.checked == result.mine && !result.stopped);
}

/// What each profile showed, in words.
struct Words {
  std::string fails;
  std::string few;
  std::optional<Profile> weakest;  ///< that passes
  Loss reached = Loss::intact;     ///< under any
};

Words words_of(const PowerTotals& total) {
  Words words;
  const auto add = [](std::string& to, const std::string& what) {
    to += (to.empty() ? "" : ", ") + what;
  };
  for (const Profile profile : kByGuarantees) {
    const Exploration* const result = total.of(profile);
    if (result == nullptr) continue;
    words.reached = std::max(words.reached, result->worst);
    if (result->failures != 0)
      add(words.fails, fmt::format("{} ({})", to_string(profile), to_string(result->worst)));
    else if (!says_something(*result))
      add(words.few,
          fmt::format("{} ({} of {})", to_string(profile), result->checked, result->mine));
    else if (result->checked != 0 && !words.weakest)
      words.weakest = profile;
  }
  return words;
}

}  // namespace

const Exploration* PowerTotals::of(Profile profile) const {
  const auto found = profiles.find(profile);
  return found == profiles.end() ? nullptr : &found->second;
}

std::uint64_t PowerTotals::failures() const {
  const Exploration* const ordered = of(Profile::ordered);
  return nested_failures + (ordered == nullptr ? 0 : ordered->failures);
}

void tell_profiles(const PowerTotals& total, nlohmann::json& coverage) {
  for (const auto& [profile, result] : total.profiles) {
    nlohmann::json json = to_json(result);
    json["passes"] = result.failures == 0 && says_something(result);
    coverage["profiles"][std::string(to_string(profile))] = std::move(json);
  }
}

void judge_power(const CampaignPlan& plan, const PowerTotals& total, LevelOutcome& outcome) {
  const Exploration* const ordered = total.of(Profile::ordered);
  if (ordered == nullptr) return;
  const auto control = find_control(plan.store, plan.settings_in_force, Crash::power);
  outcome.proven.reset();
  outcome.observed = std::max(ordered->worst, total.nested_worst);
  outcome.lost_most = ordered->lost_most;
  outcome.failures = total.failures();
  const Words words = words_of(total);
  const auto tell = [&](const char* name, const std::string& text) {
    if (!text.empty())
      outcome.coverage[name] = text;
    else
      outcome.coverage.erase(name);
  };
  tell("weakest_profile_that_passes",
       words.weakest ? std::string(to_string(*words.weakest)) : std::string());
  tell("profiles_that_fail", words.fails);
  tell("profiles_too_little_looked_at", words.few);
  const bool all_seen =
      ordered->checked == ordered->mine && !ordered->stopped && total.histories > 1;
  if (outcome.failures != 0) {
    outcome.verdict = Verdict::fail;
    outcome.reason =
        fmt::format("worse than '{}' was reached under: {}", to_string(outcome.allowed),
                    words.fails.empty() ? "a crash during recovery" : words.fails);
  } else if (ordered->checked < kLeastStates && !all_seen) {
    outcome.verdict = Verdict::inconclusive;
    outcome.reason = fmt::format("{} states are too few to say anything; give a larger budget",
                                 ordered->checked);
  } else if (control && control->must_reach && words.reached < *control->must_reach &&
             (ordered->checked >= kStandardStates || all_seen)) {
    outcome.verdict = Verdict::harness_error;
    outcome.reason = fmt::format(
        "these settings lose '{}' by their own documentation ({}), but '{}' was the worst: the "
        "harness does not see what it must",
        to_string(*control->must_reach), control->source, to_string(words.reached));
  } else {
    outcome.verdict = Verdict::pass;
    outcome.reason = words.fails.empty() ? "" : "worse under: " + words.fails;
    outcome.proven = class_proven_by(outcome.observed);
  }
}

Result<LevelOutcome> merge_power_level(const CampaignPlan& whole,
                                       const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = add_up(shards);
  if (sum.verdict == Verdict::skipped) return sum;
  const nlohmann::json& first = shards.front().coverage;
  PowerTotals total;
  bool same = true;
  nlohmann::json& recoveries = sum.coverage["recoveries"];
  for (const LevelOutcome& shard : shards) {
    // What could not be recorded was not looked at; its sentence stands.
    if (!shard.coverage.contains("profiles")) {
      sum.verdict = shard.verdict;
      sum.reason = shard.reason;
      return sum;
    }
    for (const auto& [name, json] : shard.coverage.at("profiles").items()) {
      const Result<Profile> profile = parse_profile(name);
      if (!profile) return fail(profile.error());
      const Result<Exploration> found = exploration_from_json(json);
      if (!found) return fail(found.error());
      add_shard(total.profiles[*profile], *found);
    }
    // Every shard records the same histories and recoveries.
    for (const char* const common : {"histories", "events", "acknowledged_commits"}) {
      same = same && shard.coverage.value(common, 0) == first.value(common, 0);
      sum.coverage[common] = first.value(common, 0);
    }
    if (shard.coverage.contains("recoveries"))
      for (const char* const common : {"recorded", "without_a_change"})
        recoveries[common] = shard.coverage["recoveries"].value(common, 0);
    total.nested_worst = std::max(total.nested_worst, shard.observed);
  }
  if (recoveries.is_null()) sum.coverage.erase("recoveries");
  total.nested_failures = recoveries.is_object() ? recoveries.value("failures", 0U) : 0;
  total.histories = first.value("histories", std::uint64_t{0});
  sum.coverage["shards_recorded_the_same"] = same;
  tell_profiles(total, sum.coverage);
  judge_power(whole, total, sum);
  return sum;
}

}  // namespace assay::qualify::power
