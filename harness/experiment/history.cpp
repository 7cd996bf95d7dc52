#include "harness/experiment/history.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/experiment/comparison.h"
#include "harness/stats/stats.h"

namespace assay {
namespace {

using nlohmann::json;

std::vector<double> values_at(const HistoryPoint& point, const std::string& arm,
                              const std::string& relative_to) {
  const auto found = point.values.find(arm);
  if (found == point.values.end()) return {};
  if (relative_to.empty()) return found->second;
  const auto whole = point.values.find(relative_to);
  std::vector<double> shares;
  if (whole == point.values.end() || whole->second.size() != found->second.size()) return shares;
  for (std::size_t i = 0; i < found->second.size(); ++i) {
    shares.push_back(found->second[i] / whole->second[i]);
  }
  return shares;
}

std::string commit_of(const HistoryPoint& point) {
  return point.commit.empty() ? "an unknown commit" : fmt::format("commit {:.12}", point.commit);
}

struct Level {
  std::vector<double> values;
  const HistoryPoint* last = nullptr;
};

json step(const Plan& plan, const std::vector<double>& now, const Level& level, double corridor,
          std::size_t tests) {
  const LogComparison compared(plan, now, level.values, false);
  const double bound = std::log(corridor);
  const double one_sided = std::min(compared.p_above(bound), compared.p_below(-bound));
  const double p = std::min(1.0, 2.0 * one_sided * static_cast<double>(tests));
  const auto& test = compared.test();
  return {{"ratio", std::exp(test.difference)},
          {"interval", {std::exp(test.low), std::exp(test.high)}},
          {"p_adjusted", p},
          {"changed", p < plan.alpha}};
}

/// `relative_to` of an arm of a sweep is the reference of its cell.
std::string reference_of(const Plan& plan, const Arm& arm, const std::string& relative_to) {
  if (relative_to.empty()) return {};
  const Arm* beside = plan.find_arm_beside(arm, relative_to);
  return beside == nullptr ? relative_to : beside->name;
}

json arm_history(const std::vector<HistoryPoint>& points, const Plan& plan, const Arm& of,
                 double corridor, const std::string& relative_to, std::size_t tests) {
  const std::string& arm = of.name;
  json made = {
      {"arm", arm}, {"store", of.store}, {"points", json::array()}, {"changes", json::array()}};
  Level level;
  for (const HistoryPoint& point : points) {
    const std::vector<double> now = values_at(point, arm, relative_to);
    if (now.size() < 2) continue;
    const auto mean = stats::geometric_mean(now, 1.0 - plan.alpha);
    json one = {{"result", point.result},    {"record", point.record}, {"commit", point.commit},
                {"time", point.time},        {"n", now.size()},        {"value", mean.value},
                {"low", mean.low},           {"high", mean.high},      {"ratio", nullptr},
                {"interval", nullptr},       {"p_adjusted", nullptr},  {"changed", false},
                {"accepted", point.accepted}};
    if (level.last != nullptr) one.update(step(plan, now, level, corridor, tests));
    if (one["changed"] == true) {
      made["changes"].push_back(fmt::format(
          "{} changed at {}: {:.3g}x ({:.3g} to {:.3g}) what it was until {}, adjusted p = "
          "{:.2g}{}",
          arm, commit_of(point), one["ratio"].get<double>(), one["interval"][0].get<double>(),
          one["interval"][1].get<double>(), commit_of(*level.last), one["p_adjusted"].get<double>(),
          point.commit == level.last->commit
              ? "; the commit is the same, so the cause is elsewhere (machine, libraries, settings)"
              : ""));
      level.values.clear();
    }
    level.values.insert(level.values.end(), now.begin(), now.end());
    level.last = &point;
    made["points"].push_back(std::move(one));
  }
  return made;
}

}  // namespace

json history_of(const std::vector<HistoryPoint>& points, const Plan& plan, double corridor,
                const std::string& relative_to) {
  std::vector<const Arm*> arms;
  for (const Arm& arm : plan.arms) {
    if (plan.is_subject(arm)) arms.push_back(&arm);
  }
  std::size_t tests = 0;
  for (const Arm* arm : arms) {
    const std::string reference = reference_of(plan, *arm, relative_to);
    const auto measured = std::count_if(points.begin(), points.end(), [&](const auto& point) {
      return values_at(point, arm->name, reference).size() >= 2;
    });
    tests += measured > 1 ? static_cast<std::size_t>(measured - 1) : 0;
  }
  json all = json::array();
  for (const Arm* arm : arms) {
    all.push_back(
        arm_history(points, plan, *arm, corridor, reference_of(plan, *arm, relative_to), tests));
  }
  return all;
}

}  // namespace assay
