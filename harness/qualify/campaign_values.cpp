// Names, flags and JSON of the campaign's values.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/campaign.h"

namespace assay::qualify {
namespace {

constexpr std::array<std::pair<Level, std::string_view>, 5> kLevelNames{{
    {Level::kill, "K"},
    {Level::power_files, "F"},
    {Level::power_blocks, "B"},
    {Level::errors, "E"},
    {Level::rot, "R"},
}};

constexpr std::array<std::pair<Verdict, std::string_view>, 5> kVerdictNames{{
    {Verdict::pass, "PASS"},
    {Verdict::fail, "FAIL"},
    {Verdict::inconclusive, "INCONCLUSIVE"},
    {Verdict::harness_error, "HARNESS-ERROR"},
    {Verdict::skipped, "SKIPPED"},
}};

/// The whole number that `text` is; nothing else, and not 0.
std::optional<std::uint64_t> positive(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number == 0)
    return std::nullopt;
  return number;
}

}  // namespace

std::string_view to_string(Level level) {
  for (const auto& [value, name] : kLevelNames)
    if (value == level) return name;
  return "?";
}

Result<Level> parse_level(std::string_view text) {
  for (const auto& [value, name] : kLevelNames)
    if (name == text) return value;
  return fail(Error(ErrorKind::bad_input, fmt::format("there is no level '{}'", text))
                  .hint("valid: K (kill), F (power loss, files), B (power loss, blocks), E "
                        "(errors), R (rot)"));
}

std::string_view to_string(Verdict verdict) {
  for (const auto& [value, name] : kVerdictNames)
    if (value == verdict) return name;
  return "?";
}

Result<Budget> parse_budget(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kUnits{
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  constexpr std::uint64_t kMost = 1'000'000'000;
  Budget budget;
  std::string_view count = text;
  if (count.ends_with(" cases")) count.remove_suffix(6);
  if (const auto cases = positive(count); cases && *cases <= kMost) {
    budget.cases = cases;
    return budget;
  }
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = positive(text.substr(0, text.size() - unit.size()));
    if (!number || *number > 1'000'000) continue;
    budget.time = std::chrono::milliseconds(static_cast<std::int64_t>(*number) * factor);
    return budget;
  }
  return fail(Error(ErrorKind::bad_input, fmt::format("'{}' is no budget", text))
                  .hint("write a time (500ms, 60s, 5m, 1h) or a number of cases (1000)"));
}

nlohmann::json to_json(const Budget& budget) {
  return {{"cases", budget.cases ? nlohmann::json(*budget.cases) : nullptr},
          {"time_ms", budget.time ? nlohmann::json(budget.time->count()) : nullptr}};
}

Result<Shard> parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = positive(text.substr(0, slash));
  const auto of = slash == std::string_view::npos ? std::nullopt : positive(text.substr(slash + 1));
  if (!index || !of || *index > *of || *of > 100'000)
    return fail(Error(ErrorKind::bad_input, fmt::format("'{}' is no shard", text))
                    .hint("write I/N with I from 1 to N, as 2/4"));
  return Shard{*index - 1, *of};
}

nlohmann::json identity_json(const CampaignPlan& plan) {
  nlohmann::json levels = nlohmann::json::array();
  for (const Level level : plan.levels) levels.push_back(to_string(level));
  nlohmann::json identity = {{"store", plan.store},
                             {"durability", to_string(plan.durability)},
                             {"settings", plan.settings},
                             {"levels", std::move(levels)},
                             {"seed", plan.seed},
                             {"shape", to_json(plan.shape)},
                             {"shard", {{"index", plan.shard.index}, {"count", plan.shard.count}}},
                             {"open_timeout_ms", plan.open_timeout_ms}};
  // Other levels do not depend on it, and what they have recorded stays what it is.
  if (std::ranges::find(plan.levels, Level::power_blocks) != plan.levels.end())
    identity["file_systems"] = plan.file_systems;
  return identity;
}

void count(nlohmann::json& coverage, const std::string& name, std::uint64_t more) {
  if (coverage.is_null()) coverage = nlohmann::json::object();
  coverage[name] = coverage.value(name, std::uint64_t{0}) + more;
}

nlohmann::json to_json(const LevelOutcome& outcome) {
  return {{"level", to_string(outcome.level)},
          {"profile", outcome.profile},
          {"verdict", to_string(outcome.verdict)},
          {"reason", outcome.reason},
          {"allowed", to_string(outcome.allowed)},
          {"observed", to_string(outcome.observed)},
          {"lost_most", outcome.lost_most},
          {"proven", outcome.proven ? nlohmann::json(to_string(*outcome.proven)) : nullptr},
          {"cases", outcome.cases},
          {"failures", outcome.failures},
          {"elapsed_s", outcome.elapsed_s},
          {"store", outcome.store},
          {"coverage", outcome.coverage},
          {"bundles", outcome.bundles},
          {"finished", outcome.finished},
          {"resume", outcome.resume}};
}

Result<LevelOutcome> level_outcome_from_json(const nlohmann::json& json) {
  LevelOutcome outcome;
  try {
    const Result<Level> level = parse_level(json.at("level").get<std::string>());
    if (!level) return fail(level.error());
    outcome.level = *level;
    outcome.profile = json.at("profile");
    for (const auto& [value, name] : kVerdictNames)
      if (json.at("verdict") == name) outcome.verdict = value;
    outcome.reason = json.at("reason");
    const Result<Loss> allowed = parse_loss(json.at("allowed").get<std::string>());
    const Result<Loss> observed = parse_loss(json.at("observed").get<std::string>());
    if (!allowed) return fail(allowed.error());
    if (!observed) return fail(observed.error());
    outcome.allowed = *allowed;
    outcome.observed = *observed;
    outcome.lost_most = json.at("lost_most");
    if (!json.at("proven").is_null()) {
      const auto proven = parse_durability(json.at("proven").get<std::string>());
      if (!proven) return fail(proven.error());
      outcome.proven = *proven;
    }
    outcome.cases = json.at("cases");
    outcome.failures = json.at("failures");
    outcome.elapsed_s = json.at("elapsed_s");
    outcome.store = json.at("store");
    outcome.coverage = json.at("coverage");
    outcome.bundles = json.at("bundles").get<std::vector<std::string>>();
    outcome.finished = json.at("finished");
    outcome.resume = json.at("resume");
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input,
                fmt::format("not the outcome of a level: {}", exception.what()));
  }
  return outcome;
}

std::optional<DurabilityClass> class_proven_by(Loss worst) {
  switch (worst) {
    case Loss::intact:
      return DurabilityClass::power;
    case Loss::last:
      return DurabilityClass::power_last;
    case Loss::suffix:
      return DurabilityClass::power_prefix;
    case Loss::hole:
    case Loss::torn:
    case Loss::unopenable:
      return std::nullopt;
  }
  return std::nullopt;
}

Verdict worst_verdict(const std::vector<LevelOutcome>& levels) {
  constexpr std::array<Verdict, 5> kOrder = {Verdict::harness_error, Verdict::fail,
                                             Verdict::inconclusive, Verdict::skipped,
                                             Verdict::pass};
  for (const Verdict verdict : kOrder)
    for (const LevelOutcome& level : levels)
      if (level.verdict == verdict) return verdict;
  return Verdict::inconclusive;
}

}  // namespace assay::qualify
