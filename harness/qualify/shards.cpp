#include "harness/qualify/shards.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "adapters/registry.h"
#include "harness/ledger/durable_file.h"

namespace assay::qualify {
namespace {

std::string shard_text(const Shard& shard) {
  return fmt::format("{}/{}", shard.index + 1, shard.count);
}

/// Of the store, the machine or the file system, and so the same in every shard.
bool is_common(const std::string& name) {
  static const std::set<std::string> kCommon{"calls_of_a_life", "file_system", "first_failure",
                                             "at_level_B"};
  return kCommon.contains(name);
}

/// Numbers add up, what is exhaustive is so when it is in every shard.
void add_counts(nlohmann::json& sum, const nlohmann::json& more) {
  for (const auto& [name, value] : more.items()) {
    if (is_common(name) && sum.contains(name)) continue;
    nlohmann::json& known = sum[name];
    if (known.is_null())
      known = value;
    else if (known.is_object() && value.is_object())
      add_counts(known, value);
    else if (known.is_boolean() && value.is_boolean())
      known = known.get<bool>() && value.get<bool>();
    else if (known.is_number_unsigned() && value.is_number_unsigned())
      known = known.get<std::uint64_t>() + value.get<std::uint64_t>();
    else if (known.is_number() && value.is_number())
      known = known.get<double>() + value.get<double>();
  }
}

std::vector<LevelOutcome> of_level(const std::vector<ShardFound>& shards,
                                   const LevelOutcome& like) {
  std::vector<LevelOutcome> found;
  for (const ShardFound& shard : shards)
    for (const LevelOutcome& one : shard.levels)
      if (one.level == like.level && one.profile == like.profile) found.push_back(one);
  return found;
}

}  // namespace

Result<ShardFound> read_shard(const std::string& place) {
  const std::string path = place + "/campaign.json";
  Result<std::string> text = read_whole_file(path);
  if (!text) return fail(text.error());
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  const auto bad = [&](const std::string& what, const std::string& hint) {
    return fail(Error(ErrorKind::bad_input, what).at(path).hint(hint));
  };
  if (!json.is_object() || !json.contains("identity") || !json.contains("levels"))
    return bad("this is not the state of a campaign", "give the --out of each shard");
  if (!json.value("recorded", false))
    return bad("this shard has not ended", "the command that began it goes on with it");
  ShardFound found;
  found.place = place;
  try {
    found.identity = json.at("identity");
    found.shard.index = found.identity.at("shard").at("index");
    found.shard.count = found.identity.at("shard").at("count");
    found.budget = json.value("budget", nlohmann::json());
  } catch (const nlohmann::json::exception& exception) {
    return bad(exception.what(), "was this file changed?");
  }
  found.identity["shard"] = {{"index", 0}, {"count", 1}};
  for (const nlohmann::json& level : json["levels"]) {
    Result<LevelOutcome> outcome = level_outcome_from_json(level);
    if (!outcome) return bad(outcome.error().message(), "was this file changed?");
    found.levels.push_back(std::move(*outcome));
  }
  return found;
}

Status check_shards(const std::vector<ShardFound>& shards) {
  const auto bad = [](const std::string& what, const std::string& place, const std::string& hint) {
    return fail(Error(ErrorKind::bad_input, what).at(place).hint(hint));
  };
  if (shards.empty()) return bad("no shard is given", {}, "give the --out of each shard");
  const ShardFound& first = shards.front();
  std::set<std::uint64_t> seen;
  for (const ShardFound& shard : shards) {
    for (const auto& [name, value] : first.identity.items())
      if (shard.identity.value(name, nlohmann::json()) != value)
        return bad(
            fmt::format("another campaign than {}: '{}' is {} here and {} there", first.place, name,
                        shard.identity.value(name, nlohmann::json()).dump(), value.dump()),
            shard.place, "shards differ in --shard and --out alone");
    if (shard.identity != first.identity || shard.shard.count != first.shard.count)
      return bad(fmt::format("shard {} here, and {} in {}", shard_text(shard.shard),
                             shard_text(first.shard), first.place),
                 shard.place, "shards differ in --shard and --out alone");
    if (shard.budget != first.budget)
      return bad(fmt::format("the budget is {} here and {} in {}", shard.budget.dump(),
                             first.budget.dump(), first.place),
                 shard.place, "a budget in cases is that of all shards together");
    if (!seen.insert(shard.shard.index).second)
      return bad(fmt::format("shard {} is given twice", shard_text(shard.shard)), shard.place,
                 "give each shard once");
  }
  for (std::uint64_t index = 0; index < first.shard.count; ++index)
    if (!seen.contains(index))
      return bad(fmt::format("shard {} is missing", shard_text({index, first.shard.count})), {},
                 "give the --out of each shard");
  return {};
}

Result<CampaignPlan> plan_of_identity(const nlohmann::json& identity, const Driver& driver) {
  CampaignPlan plan;
  try {
    plan.store = identity.at("store");
    plan.settings = identity.at("settings").get<Settings>();
    plan.seed = identity.at("seed");
    plan.open_timeout_ms = identity.at("open_timeout_ms");
    plan.file_systems = identity.value("file_systems", plan.file_systems);
    const auto durability = parse_durability(identity.at("durability").get<std::string>());
    if (!durability) return fail(durability.error());
    plan.durability = *durability;
    for (const nlohmann::json& name : identity.at("levels")) {
      const Result<Level> level = parse_level(name.get<std::string>());
      if (!level) return fail(level.error());
      plan.levels.push_back(*level);
    }
    const Result<HistoryShape> shape = history_shape_from_json(identity.at("shape"));
    if (!shape) return fail(shape.error());
    plan.shape = *shape;
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input,
                fmt::format("not what a campaign is told by: {}", exception.what()));
  }
  const auto in_force = resolve_settings(driver, plan.durability, plan.settings);
  if (!in_force) return fail(in_force.error());
  plan.settings_in_force = *in_force;
  const auto claimed = given_durability(driver, plan.durability, plan.settings);
  if (!claimed) return fail(claimed.error());
  plan.claimed = claimed->given;
  return plan;
}

Result<std::vector<LevelOutcome>> merge_shards(const CampaignPlan& whole,
                                               const std::vector<ShardFound>& shards) {
  std::vector<LevelOutcome> merged;
  for (const LevelOutcome& like : shards.front().levels) {
    const std::vector<LevelOutcome> parts = of_level(shards, like);
    if (parts.size() != shards.size())
      return fail(ErrorKind::bad_input, fmt::format("level {} {} is not in every shard",
                                                    to_string(like.level), like.profile));
    for (const LevelOutcome& part : parts)
      if (part.store != like.store || part.allowed != like.allowed)
        return fail(Error(ErrorKind::bad_input,
                          fmt::format("level {}: the shards ran {} and {}", to_string(like.level),
                                      like.store.dump(), part.store.dump()))
                        .hint("give with --set what a store otherwise chooses by itself"));
    const MergeLevel merge = find_merge(like.level);
    Result<LevelOutcome> one = merge(whole, parts);
    if (!one) return fail(one.error());
    one->coverage["merged_shards"] = shards.size();
    merged.push_back(std::move(*one));
  }
  return merged;
}

LevelOutcome add_up(const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = shards.front();
  for (std::size_t at = 1; at < shards.size(); ++at) {
    const LevelOutcome& more = shards[at];
    sum.observed = std::max(sum.observed, more.observed);
    sum.lost_most = std::max(sum.lost_most, more.lost_most);
    sum.cases += more.cases;
    sum.failures += more.failures;
    sum.elapsed_s += more.elapsed_s;
    add_counts(sum.coverage, more.coverage);
    sum.bundles.insert(sum.bundles.end(), more.bundles.begin(), more.bundles.end());
    // The sentence of the first failure, not that of a shard which saw too little.
    if (sum.failures == more.failures) sum.reason = more.reason;
    if (more.verdict == Verdict::skipped && sum.verdict != Verdict::skipped) {
      sum.verdict = Verdict::skipped;
      sum.reason = more.reason;
    }
  }
  for (const char* const rate : {"cases_per_second", "cuts_per_second"})
    if (sum.coverage.contains(rate) && sum.elapsed_s > 0.0)
      sum.coverage[rate] = static_cast<double>(sum.cases) / sum.elapsed_s;
  sum.proven.reset();
  return sum;
}

}  // namespace assay::qualify
