// The canonical form of a plan and what two of them differ in.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/experiment/plan.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

std::string arm_role(const Plan& plan, const Arm& arm) {
  if (arm.reference) return "reference";
  if (plan.is_control(arm)) return "positive_control";
  return plan.is_a_a_twin(arm) ? "a_a" : "arm";
}

/// Left out where nothing is swept: such plans keep the digest that they had before.
void add_sweep(const Plan& plan, nlohmann::json& canonical) {
  canonical["sweep"] = nlohmann::json::array();
  for (const SweepAxis& axis : plan.sweep) {
    nlohmann::json values = nlohmann::json::array();
    for (const std::string& value : axis.values) values.push_back(nlohmann::json::parse(value));
    canonical["sweep"].push_back({{"key", axis.key}, {"label", axis.label}, {"values", values}});
  }
  canonical["cells"] = nlohmann::json::array();
  for (const Cell& cell : plan.cells) {
    nlohmann::json values = nlohmann::json::object();
    for (std::size_t i = 0; i < plan.sweep.size(); ++i) {
      values[plan.sweep[i].key] = nlohmann::json::parse(cell.values[i]);
    }
    canonical["cells"].push_back({{"name", cell.name},
                                  {"values", std::move(values)},
                                  {"workload", to_json(cell.plan.workload)},
                                  {"a_a", cell.plan.a_a}});
  }
}

/// Keys of a phase that came with schema 2, by what was done before: every operation was timed by
/// itself, a restart was a clean close, and no bytes were exempt from the limit of residency.
void migrate_phase(nlohmann::json& phase) {
  if (!phase.is_object()) return;
  const auto add = [&phase](const char* key, nlohmann::json value) {
    if (!phase.contains(key)) phase[key] = std::move(value);
  };
  if (phase.value("kind", "") == "run") add("timed_batch", 1);
  if (phase.value("kind", "") == "restart") add("how", "close");
  if (phase.contains("max_resident")) add("max_resident_bytes", 0);
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json arms = nlohmann::json::array();
  for (const Arm& arm : plan.arms) {
    arms.push_back({{"name", arm.name},
                    {"store", arm.store},
                    {"durability", to_string(arm.durability)},
                    {"settings", arm.settings},
                    {"delay_ns", arm.delay_ns},
                    {"role", arm_role(plan, arm)}});
    if (!arm.cell.empty()) arms.back()["cell"] = arm.cell;
  }
  nlohmann::json hypotheses = nlohmann::json::array();
  for (const Hypothesis& hypothesis : plan.hypotheses) {
    hypotheses.push_back({{"a", hypothesis.a},
                          {"b", hypothesis.b},
                          {"kind", to_string(hypothesis.kind)},
                          {"margin_percent", hypothesis.margin_percent},
                          {"corridor", hypothesis.corridor},
                          {"relative_to", hypothesis.relative_to},
                          {"declared", hypothesis.declared}});
  }
  nlohmann::json canonical = {
      {"schema", 3},
      {"name", plan.name},
      {"question", plan.question},
      {"workload", to_json(plan.workload)},
      {"arms", std::move(arms)},
      {"a_a", plan.a_a},
      {"design", to_string(plan.design)},
      {"trials", plan.trials},
      {"seed", plan.seed},
      {"alpha", plan.alpha},
      {"metric",
       {{"kind", plan.metric.latency ? "latency" : "throughput"},
        {"class", plan.metric.operation_class},
        {"percentile", plan.metric.percentile}}},
      {"hypotheses", std::move(hypotheses)},
      {"family_adjustment", "holm"},
      {"aggregation",
       {{"of_process", to_string(plan.aggregation.of_process)},
        {"phases", plan.aggregation.phases},
        {"warm_up_runs", plan.aggregation.warm_up_runs},
        {"of_trials", plan.aggregation.median_of_trials ? "median" : "geometric-mean"},
        {"warm_up_trials", plan.aggregation.warm_up_trials}}},
      {"mixed_durability", plan.mixed_durability},
      {"root", plan.root},
      {"trial_timeout_ms", plan.trial_timeout_ms},
      {"void_trials_max", plan.void_trials_max},
      {"foreign_cpus_max", plan.foreign_cpus_max},
      {"frequency_change_max", plan.frequency_change_max},
      {"steal_share_max", plan.steal_share_max},
      {"effect_percent", plan.effect_percent},
      {"cv_percent", plan.cv_percent},
      {"windows",
       {{"operations", plan.windows.operations},
        {"windows", plan.windows.windows},
        {"idle_cpu_fraction_max", plan.windows.max_idle_cpu_fraction},
        {"value_of_a_set", "geometric mean"}}}};
  // Left out where nothing is demanded: plans from before there were demands keep their digest.
  if (!plan.machine_demands.empty()) canonical["machine_demands"] = plan.machine_demands;
  if (!plan.cells.empty()) add_sweep(plan, canonical);
  return canonical;
}

namespace {

void migrate_from_1(nlohmann::json& canonical) {
  // Frequency and steal were judged with these limits when foreign load had one, else not at all.
  const bool judged = canonical.value("foreign_cpus_max", 0.0) > 0.0;
  canonical["frequency_change_max"] = judged ? 0.2 : 0.0;
  canonical["steal_share_max"] = judged ? 0.1 : 0.0;
  canonical["cv_percent"] = 0.0;
  if (canonical.contains("workload") && canonical["workload"].contains("phases")) {
    for (nlohmann::json& phase : canonical["workload"]["phases"]) migrate_phase(phase);
  }
  canonical["schema"] = 2;
}

/// Before schema 3 no arm was delayed, nothing was compared with a baseline, and there was one way
/// to aggregate.
void migrate_from_2(nlohmann::json& canonical) {
  for (nlohmann::json& arm : canonical["arms"]) arm["delay_ns"] = 0;
  for (nlohmann::json& hypothesis : canonical["hypotheses"]) {
    hypothesis["corridor"] = 0.0;
    hypothesis["relative_to"] = "";
  }
  canonical["aggregation"] = {{"of_process", to_string(ProcessValue::phase)},
                              {"phases", nlohmann::json::array()},
                              {"warm_up_runs", 0},
                              {"of_trials", "geometric-mean"},
                              {"warm_up_trials", 0}};
  canonical["schema"] = 3;
}

}  // namespace

nlohmann::json migrated_plan(nlohmann::json canonical) {
  if (!canonical.is_object()) return canonical;
  if (canonical.value("schema", 0) == 1) migrate_from_1(canonical);
  if (canonical.value("schema", 0) == 2) migrate_from_2(canonical);
  return canonical;
}

std::string plan_digest(const nlohmann::json& canonical) {
  return sha256_hex(canonical.dump());
}

namespace {

/// Digests and texts of some length are told apart by their beginning.
std::string short_value(const nlohmann::json& value) {
  constexpr std::size_t kMostLetters = 48;
  std::string text = value.dump();
  if (text.size() > kMostLetters) text = text.substr(0, kMostLetters - 3) + "...";
  return text;
}

void add_differences(const std::string& path, const nlohmann::json& before,
                     const nlohmann::json& now, std::vector<std::string>& found) {
  if (before == now) return;
  const auto below = [&path](const std::string& key) {
    return path.empty() ? key : path + "." + key;
  };
  if (before.is_object() && now.is_object()) {
    nlohmann::json keys = before;
    keys.update(now);
    for (const auto& [key, ignored] : keys.items()) {
      if (!before.contains(key)) {
        found.push_back(fmt::format("{}: (none) -> {}", below(key), short_value(now[key])));
      } else if (!now.contains(key)) {
        found.push_back(fmt::format("{}: {} -> (none)", below(key), short_value(before[key])));
      } else {
        add_differences(below(key), before[key], now[key], found);
      }
    }
    return;
  }
  if (before.is_array() && now.is_array()) {
    for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
      add_differences(below(fmt::format("{}", i)), before[i], now[i], found);
    }
    if (before.size() != now.size()) {
      found.push_back(fmt::format("{}: {} entries -> {} entries", path, before.size(), now.size()));
    }
    return;
  }
  found.push_back(fmt::format("{}: {} -> {}", path, short_value(before), short_value(now)));
}

}  // namespace

std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> found;
  add_differences("", before, now, found);
  return found;
}

std::string difference_text(const std::vector<std::string>& found, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), most); ++i) {
    text += (text.empty() ? "" : "; ") + found[i];
  }
  return found.size() > most ? fmt::format("{}; and {} more", text, found.size() - most) : text;
}

}  // namespace assay
