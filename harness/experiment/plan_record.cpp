#include "harness/experiment/plan_record.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/experiment/plan_spelling.h"

namespace assay {
namespace {

using nlohmann::json;

/// Keys that are the same in a declaration.
constexpr const char* kSame[] = {"name",
                                 "question",
                                 "design",
                                 "trials",
                                 "seed",
                                 "alpha",
                                 "mixed_durability",
                                 "root",
                                 "trial_timeout_ms",
                                 "void_trials_max",
                                 "foreign_cpus_max",
                                 "frequency_change_max",
                                 "steal_share_max",
                                 "effect_percent",
                                 "cv_percent",
                                 "machine_demands"};

/// Arms by what they are for: those declared, the references' names, the control.
void add_arms(const json& canonical, json& declaration) {
  declaration["arms"] = json::array();
  declaration["references"] = json::array();
  for (const json& arm : canonical.at("arms")) {
    const std::string role = arm.at("role").get<std::string>();
    const std::string name = arm.at("name").get<std::string>();
    if (role == "reference") {
      declaration["references"].push_back(arm.at("store"));
    } else if (role == "positive_control") {
      constexpr std::string_view kDelayed = "-delayed";
      declaration["positive_control"] = {{"arm", name.substr(0, name.size() - kDelayed.size())},
                                         {"delay_ns", arm.at("delay_ns")}};
    } else if (role == "arm") {
      declaration["arms"].push_back({{"name", name},
                                     {"store", arm.at("store")},
                                     {"durability", arm.at("durability")},
                                     {"settings", arm.at("settings")}});
    }
  }
  const std::string again = canonical.at("a_a").get<std::string>();
  declaration["a_a"] = !again.empty();
  if (!again.empty()) declaration["a_a_arm"] = again;
}

/// Of those that no declaration wrote there is one for every pair, and the reader makes them anew.
void add_hypotheses(const json& canonical, json& declaration) {
  for (const json& one : canonical.at("hypotheses")) {
    if (one.at("declared") != true) continue;
    json made = {{"a", one.at("a")}, {"kind", one.at("kind")}};
    const std::string kind = one.at("kind").get<std::string>();
    if (kind == "regression") {
      made["corridor"] = one.at("corridor");
      if (!one.at("relative_to").get<std::string>().empty())
        made["relative_to"] = one.at("relative_to");
    } else {
      made["b"] = one.at("b");
    }
    if (kind == "equivalence" || kind == "non-inferiority") {
      made["margin_percent"] = one.at("margin_percent");
    }
    declaration["hypotheses"].push_back(std::move(made));
  }
}

/// NAME of the arm's "NAME@CELL".
std::string name_in_cell(const json& arm) {
  Arm named;
  named.name = arm.at("name").get<std::string>();
  named.cell = arm.value("cell", "");
  return name_without_cell(named);
}

/// The plan that was swept: the first cell's, with its names and settings as they were written.
json without_cells(const json& canonical) {
  json base = canonical;
  if (!canonical.contains("cells")) return base;
  const std::string first = canonical.at("cells").at(0).at("name").get<std::string>();
  const std::string tail = "@" + first;
  const auto plain = [&tail](const json& name) {
    std::string text = name.get<std::string>();
    if (text.ends_with(tail)) text.resize(text.size() - tail.size());
    return text;
  };
  base["arms"] = json::array();
  for (json arm : canonical.at("arms")) {
    if (arm.at("cell") != first) continue;
    const std::string name = name_in_cell(arm);
    for (const json& axis : canonical.at("sweep")) {
      const std::string key = axis.at("key").get<std::string>();
      const std::string head = "settings." + name + ".";
      if (key.starts_with(head)) arm["settings"].erase(key.substr(head.size()));
    }
    arm["name"] = name;
    base["arms"].push_back(std::move(arm));
  }
  base["hypotheses"] = json::array();
  for (json claim : canonical.at("hypotheses")) {
    if (!claim.at("a").get<std::string>().ends_with(tail)) continue;
    for (const char* key : {"a", "b", "relative_to"}) claim[key] = plain(claim.at(key));
    base["hypotheses"].push_back(std::move(claim));
  }
  base["a_a"] = plain(canonical.at("cells").at(0).at("a_a"));
  return base;
}

/// The workload of the cell whose values `overrides` hold; the only one where nothing was swept.
Result<Workload> recorded_workload(const json& canonical, const Overrides& overrides) {
  if (!canonical.contains("cells")) return workload_from_json(canonical.at("workload"));
  const auto as_json = [](const std::string& text) {
    const json value = json::parse(text, nullptr, false);
    return value.is_discarded() ? json(text) : value;
  };
  for (const json& cell : canonical.at("cells")) {
    const bool fits = std::all_of(overrides.begin(), overrides.end(), [&](const auto& one) {
      const auto value = cell.at("values").find("workload." + one.first);
      return value != cell.at("values").end() &&
             (*value == as_json(one.second) || *value == json(one.second));
    });
    if (fits) return workload_from_json(cell.at("workload"));
  }
  return fail(ErrorKind::ledger, "no cell of the record has these values");
}

json declaration_of(const json& whole) {
  const json canonical = without_cells(whole);
  json declaration = json::object();
  for (const char* key : kSame) {
    if (canonical.contains(key)) declaration[key] = canonical[key];
  }
  declaration["workload"] = "recorded";
  const json& metric = canonical.at("metric");
  declaration["metric"] = metric.at("kind");
  if (metric.at("kind") == "latency") {
    declaration["latency_class"] = metric.at("class");
    declaration["latency_percentile"] = metric.at("percentile");
  }
  const json& aggregation = canonical.at("aggregation");
  for (const char* key : {"of_process", "of_trials", "warm_up_runs", "warm_up_trials"}) {
    declaration["aggregation"][key] = aggregation.at(key);
  }
  if (canonical.at("design") == "windows") {
    const json& windows = canonical.at("windows");
    declaration["windows"] = {{"operations", windows.at("operations")},
                              {"windows", windows.at("windows")},
                              {"idle_cpu_fraction_max", windows.at("idle_cpu_fraction_max")}};
  }
  add_arms(canonical, declaration);
  add_hypotheses(canonical, declaration);
  for (const json& axis : whole.value("sweep", json::array())) {
    declaration["sweep"][axis.at("key").get<std::string>()] = axis.at("values");
  }
  return declaration;
}

template <class Table>
auto spelled(const Table& spellings, const json& text) {
  const std::string name = text.get<std::string>();
  for (const auto& [known, value] : spellings) {
    if (known == name) return value;
  }
  return spellings.front().second;
}

/// The cell of that name, made where it is not there yet; the plan itself for none.
Plan& part_named(const std::string& cell, Plan& plan) {
  if (cell.empty()) return plan;
  for (Cell& known : plan.cells) {
    if (known.name == cell) return known.plan;
  }
  plan.cells.push_back({cell, {}, {}});
  return plan.cells.back().plan;
}

void read_judged_arms(const json& canonical, Plan& plan) {
  for (const json& one : canonical.at("arms")) {
    Arm arm;
    arm.name = one.at("name").get<std::string>();
    arm.store = one.at("store").get<std::string>();
    const std::string role = one.at("role").get<std::string>();
    arm.reference = role == "reference";
    arm.cell = one.value("cell", "");
    Plan& part = part_named(arm.cell, plan);
    if (role == "a_a") part.a_a_twin = arm.name;
    if (role == "positive_control") part.control.delayed = arm.name;
    plan.arms.push_back(std::move(arm));
  }
}

void read_judged_claims(const json& canonical, Plan& plan) {
  for (const json& one : canonical.at("hypotheses")) {
    Hypothesis claim;
    claim.a = one.at("a").get<std::string>();
    claim.b = one.at("b").get<std::string>();
    claim.kind = spelled(kHypotheses, one.at("kind"));
    claim.margin_percent = one.at("margin_percent").get<double>();
    claim.declared = one.at("declared").get<bool>();
    claim.corridor = one.at("corridor").get<double>();
    claim.relative_to = one.at("relative_to").get<std::string>();
    plan.hypotheses.push_back(std::move(claim));
  }
}

}  // namespace

Result<Plan> judging_plan(const json& canonical) {
  try {
    const json whole = migrated_plan(canonical);
    Plan plan;
    plan.name = whole.at("name").get<std::string>();
    plan.question = whole.at("question").get<std::string>();
    plan.a_a = whole.at("a_a").get<std::string>();
    plan.design = spelled(kDesigns, whole.at("design"));
    plan.trials = whole.at("trials").get<std::uint64_t>();
    plan.alpha = whole.at("alpha").get<double>();
    plan.metric.latency = whole.at("metric").at("kind") == "latency";
    plan.metric.operation_class = whole.at("metric").at("class").get<std::string>();
    plan.metric.percentile = whole.at("metric").at("percentile").get<std::string>();
    plan.aggregation.median_of_trials = whole.at("aggregation").at("of_trials") == "median";
    plan.effect_percent = whole.at("effect_percent").get<double>();
    read_judged_arms(whole, plan);
    read_judged_claims(whole, plan);
    return plan;
  } catch (const json::exception& error) {
    return fail(ErrorKind::ledger,
                fmt::format("the record holds no plan that can be read: {}", error.what()));
  }
}

Result<Plan> plan_from_record(const json& canonical, const PlanEnvironment& environment) {
  try {
    const json whole = migrated_plan(canonical);
    PlanEnvironment recorded = environment;
    recorded.find_workload = [&](const std::string&, const Overrides& values) -> Result<Workload> {
      auto workload = recorded_workload(whole, values);
      if (workload) return workload;
      Error error = workload.error();
      return fail(error.in("the recorded workload"));
    };
    const json declaration = declaration_of(whole);
    for (const json& arm : declaration["arms"]) {  // a calibration's, which says nothing of stores
      const auto driver = environment.find_store(arm["store"].get<std::string>());
      if (driver && (*driver)->capabilities().reference) recorded.references_as_arms = true;
    }
    auto plan = plan_from_json(declaration, recorded);
    if (plan) return plan;
    Error error = plan.error();
    return fail(error.in("the recorded plan cannot be run here"));
  } catch (const json::exception& error) {
    return fail(ErrorKind::ledger,
                fmt::format("the record holds no plan that can be read: {}", error.what()));
  }
}

}  // namespace assay
