#include "harness/experiment/power_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/stats/trials_text.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr double kPower = 0.8;
/// Quiet, usual and noisy: windows, pinned pairs and plain durable runs on a small virtual machine.
constexpr std::array<double, 3> kUnknownCvs = {0.02, 0.10, 0.50};
/// Fewer values say next to nothing about a deviation.
constexpr std::size_t kLeastRecorded = 3;

double log_effect(const Plan& plan) {
  return std::log1p(plan.effect_percent / 100.0);
}

/// The coefficient of variation, in percent, that belongs to a log deviation.
double cv_percent_of(double deviation) {
  return std::sqrt(std::expm1(deviation * deviation)) * 100.0;
}

std::vector<double> logs_of(const json& row) {
  std::vector<double> logs;
  for (const json& value : row.value("values", json::array())) {
    if (value.is_number() && value.get<double>() > 0.0)
      logs.push_back(std::log(value.get<double>()));
  }
  return logs;
}

double variance(const std::vector<double>& values) {
  return std::pow(stats::summarize(values).standard_deviation, 2);
}

/// Variance of one arm's values (random), mean over `arms`; or of the differences within a round,
/// mean over all pairs of `arms`. Nothing when no arm or pair has enough values.
std::optional<double> mean_variance(bool paired, const std::vector<std::vector<double>>& arms) {
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (!paired) {
      sum += variance(arms[i]);
      count += 1.0;
      continue;
    }
    for (std::size_t j = i + 1; j < arms.size(); ++j) {
      if (arms[i].size() != arms[j].size()) continue;
      std::vector<double> differences;
      for (std::size_t k = 0; k < arms[i].size(); ++k) {
        differences.push_back(arms[i][k] - arms[j][k]);
      }
      sum += variance(differences);
      count += 1.0;
    }
  }
  if (count == 0.0) return std::nullopt;
  return sum / count;
}

/// What of a canonical plan decides about the scatter of its values.
json what_is_measured(json canonical) {
  canonical = migrated_plan(std::move(canonical));
  json same;
  for (const char* key :
       {"workload", "arms", "a_a", "design", "metric", "root", "windows", "cells"}) {
    same[key] = canonical.value(key, json());
  }
  return same;
}

std::string fingerprint_of(const json& plan_body) {
  const json found = plan_body.value("provenance", json::object()).value("fingerprint", json());
  return found.is_string() ? found.get<std::string>() : found.dump();
}

/// "4.1 %", "220 %", "a factor of 230".
std::string difference_text(double ratio) {
  const double percent = (ratio - 1.0) * 100.0;
  if (percent < 10.0) return fmt::format("{:.2g} %", percent);
  return percent < 1000.0 ? fmt::format("{:.0f} %", percent)
                          : fmt::format("a factor of {:.3g}", ratio);
}

/// "5 would do", "82 are needed", where the plan has `trials`.
std::string enough(std::uint64_t needed, std::uint64_t trials) {
  return fmt::format("{} {}", stats::trials_text(needed),
                     needed <= trials ? "would do" : "are needed");
}

/// Two digits without an exponent: "0.85 %", "3.2 %", "150 %".
std::string scatter_text(double percent) {
  return percent < 10.0 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

bool has_twins(const Plan& plan) {
  return !plan.parts().front()->a_a.empty();
}

std::string gate_sentence(const Plan& plan, const json& power) {
  if (!has_twins(plan)) return "";
  std::string text =
      fmt::format("; the A/A gate asks for a scatter of at most {}",
                  scatter_text(cv_percent_of(stats::largest_deviation(
                      log_effect(plan), plan.trials, plan.alpha, is_paired(plan.design)))));
  const auto needed = power.find("gate_trials_needed");
  if (needed == power.end() || needed->get<std::uint64_t>() <= plan.trials) return text;
  return text + fmt::format(", so that it will hardly be passed: that takes {}{} {}",
                            needed->get<std::uint64_t>() < stats::kMostTrials ? "about " : "",
                            stats::trials_text(needed->get<std::uint64_t>()),
                            unit_of_trials(plan.design));
}

}  // namespace

double deviation_of_cv(double cv) {
  return std::sqrt(std::log1p(cv * cv));
}

namespace {

/// The mean over the cells: values of two of them are of two things.
std::optional<Scatter> scatter_of_cells(const Plan& plan, const json& rows, std::size_t least,
                                        const std::string& where) {
  double sum = 0.0;
  std::size_t count = 0;
  std::string source;
  for (const Cell& cell : plan.cells) {
    json own = json::array();
    for (const json& row : rows) {
      if (row.value("cell", "") == cell.name) own.push_back(row);
    }
    const auto found = scatter_of_rows(cell.plan, own, least, where);
    if (!found) continue;
    sum += found->deviation * found->deviation;
    source = found->source;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Scatter{std::sqrt(sum / static_cast<double>(count)), source + ", mean of the cells"};
}

}  // namespace

std::optional<Scatter> scatter_of_rows(const Plan& plan, const json& rows, std::size_t least,
                                       const std::string& where) {
  if (!plan.cells.empty()) return scatter_of_cells(plan, rows, least, where);
  std::vector<std::vector<double>> twins;
  std::vector<std::vector<double>> arms;
  for (const json& row : rows) {
    if (row.value("reference", false) || row.value("disqualified", false)) continue;
    std::vector<double> values = logs_of(row);
    if (values.size() < least) continue;
    const std::string arm = row.value("arm", "");
    if (!plan.a_a.empty() && (arm == plan.a_a || arm == plan.a_a_twin)) twins.push_back(values);
    arms.push_back(std::move(values));
  }
  const bool a_a = twins.size() == 2;
  const auto found = mean_variance(is_paired(plan.design), a_a ? twins : arms);
  if (!found) return std::nullopt;
  return Scatter{std::sqrt(*found), (a_a ? "the A/A arm" : "the arms") + where};
}

std::optional<Scatter> recorded_scatter(const Plan& plan, const std::vector<LedgerRecord>& records,
                                        const std::string& fingerprint) {
  const json ours = what_is_measured(to_json(plan));
  std::map<std::string, const json*> plans;
  for (const LedgerRecord& record : records) {
    if (record.kind == "plan") plans[record.body.value("result", "")] = &record.body;
  }
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (record->kind != "verdict") continue;
    const std::string result = record->body.value("result", "");
    const auto theirs = plans.find(result);
    if (theirs == plans.end() || fingerprint_of(*theirs->second) != fingerprint ||
        what_is_measured(theirs->second->value("experiment", json::object())) != ours) {
      continue;
    }
    auto scatter = scatter_of_rows(plan, record->body.value("rows", json::array()), kLeastRecorded,
                                   " of result " + result);
    if (scatter) return scatter;
  }
  return std::nullopt;
}

json power_of(const Plan& plan, const Scatter& scatter) {
  const bool paired = is_paired(plan.design);
  json power = {
      {"deviation", scatter.deviation},
      {"source", scatter.source},
      {"power", kPower},
      {"trials", plan.trials},
      {"effect_percent", plan.effect_percent},
      {"smallest_detectable_ratio", std::exp(stats::smallest_effect(scatter.deviation, plan.trials,
                                                                    plan.alpha, kPower, paired))},
      {"trials_needed",
       stats::trials_needed(log_effect(plan), scatter.deviation, plan.alpha, kPower, paired)}};
  if (has_twins(plan)) {
    power["gate_trials_needed"] =
        stats::trials_for_width(log_effect(plan), scatter.deviation, plan.alpha, paired);
  }
  return power;
}

json power_before(const Plan& plan, const std::optional<Scatter>& recorded) {
  if (recorded) return power_of(plan, *recorded);
  if (plan.cv_percent > 0.0) {
    return power_of(plan, {deviation_of_cv(plan.cv_percent / 100.0), "cv_percent of the plan"});
  }
  json cases = json::array();
  for (const double cv : kUnknownCvs) {
    json one = power_of(plan, {deviation_of_cv(cv), "an example"});
    one["cv_percent"] = cv * 100.0;
    cases.push_back(std::move(one));
  }
  return {{"source", "nothing: no earlier result here, and the plan declares no cv_percent"},
          {"cases", std::move(cases)}};
}

std::string power_sentence(const Plan& plan, const json& power, std::string_view effect_from) {
  const std::string chance = fmt::format("alpha {:g}, power {:g}", plan.alpha, kPower);
  if (power.contains("cases")) {
    std::vector<std::string> seen;
    std::vector<std::string> needed;
    for (const json& one : power["cases"]) {
      seen.push_back(fmt::format("{} at a scatter of {:g} %",
                                 difference_text(one["smallest_detectable_ratio"].get<double>()),
                                 one["cv_percent"].get<double>()));
      needed.push_back(stats::trials_text(one["trials_needed"].get<std::uint64_t>()));
    }
    return fmt::format(
        "power: the scatter here is not known (no earlier result, no cv_percent in the plan). {} "
        "{} see differences from {} ({}); {:g} % takes {} {}{}",
        plan.trials, unit_of_trials(plan.design), fmt::join(seen, ", "), chance,
        plan.effect_percent, fmt::join(needed, ", "), unit_of_trials(plan.design),
        gate_sentence(plan, power));
  }
  return fmt::format(
      "power: {} {} see differences from {} ({}) at a scatter of {} (from {}); for the "
      "{:g} % {} {}{}",
      plan.trials, unit_of_trials(plan.design),
      difference_text(power["smallest_detectable_ratio"].get<double>()), chance,
      scatter_text(cv_percent_of(power["deviation"].get<double>())),
      power["source"].get<std::string>(), plan.effect_percent, effect_from,
      enough(power["trials_needed"].get<std::uint64_t>(), plan.trials), gate_sentence(plan, power));
}

}  // namespace assay
