#include "harness/experiment/plan_declaration.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "adapters/plain_name.h"
#include "harness/doctor/checks.h"
#include "harness/experiment/plan_spelling.h"

namespace assay {
namespace {

constexpr std::array<std::pair<std::string_view, DurabilityClass>, 5> kClasses = {
    {{"volatile", DurabilityClass::volatile_},
     {"process", DurabilityClass::process},
     {"power-prefix", DurabilityClass::power_prefix},
     {"power-last", DurabilityClass::power_last},
     {"power", DurabilityClass::power}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kMetrics = {
    {{"throughput", false}, {"latency", true}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPercentiles = {
    {{"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"p999", "p999"}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kOfTrials = {
    {{"geometric-mean", false}, {"median", true}}};

void check_name(TomlTable& table, const std::string& name) {
  const std::string fault = plain_name_fault(name);
  if (!fault.empty()) table.reject("name", fault, plain_name_rule());
}

void read_arms(TomlTable& root, Declaration& declaration) {
  const auto durability =
      root.choice<DurabilityClass>("durability", DurabilityClass::power, kClasses);
  declaration.arm_tables = root.tables("arms");
  for (TomlTable& table : declaration.arm_tables) {
    Arm arm;
    arm.store = table.required_text("store");
    arm.name = table.text("name", std::filesystem::path(arm.store).stem().string());
    arm.durability = table.choice<DurabilityClass>("durability", durability, kClasses);
    for (auto& [key, value] : table.settings("settings")) arm.settings.emplace(key, value);
    check_name(table, arm.name);
    declaration.plan.arms.push_back(std::move(arm));
  }
  if (declaration.arm_tables.empty()) {
    root.reject("arms", "a plan needs at least one [[arms]] table");
  }
}

void read_metric(TomlTable& root, Metric& metric) {
  metric.latency = root.choice<bool>("metric", false, kMetrics);
  if (metric.latency) {
    metric.operation_class = root.required_text("latency_class");
    metric.percentile =
        std::string(root.choice<std::string_view>("latency_percentile", "p50", kPercentiles));
  } else {
    for (const std::string_view key : {"latency_class", "latency_percentile"}) {
      if (root.take(key)) root.reject(key, fmt::format("'{}' needs metric = \"latency\"", key));
    }
  }
}

/// The key that this kind of claim needs beside its arms; the others are refused.
void read_bounds(TomlTable& table, Hypothesis& hypothesis) {
  const bool margin = hypothesis.kind == HypothesisKind::equivalence ||
                      hypothesis.kind == HypothesisKind::non_inferiority;
  const bool regression = hypothesis.kind == HypothesisKind::regression;
  if (margin) {
    hypothesis.margin_percent = table.required_number("margin_percent", 0.001, 10'000.0);
  } else if (table.take("margin_percent")) {
    table.reject("margin_percent",
                 "only kind = \"equivalence\" and kind = \"non-inferiority\" take a margin");
  }
  if (regression) {
    hypothesis.corridor = table.required_number("corridor", 1.0, 1000.0);
    hypothesis.relative_to = table.text("relative_to");
    if (table.take("b")) {
      table.reject("b", "a regression is one from the accepted baseline of 'a': leave 'b' out",
                   "`assay accept` names the result that is the baseline");
    }
    return;
  }
  for (const std::string_view key : {"corridor", "relative_to"}) {
    if (table.take(key)) table.reject(key, fmt::format("'{}' needs kind = \"regression\"", key));
  }
  hypothesis.b = table.required_text("b");
}

void read_hypotheses(TomlTable& root, Declaration& declaration) {
  declaration.hypothesis_tables = root.tables("hypotheses");
  for (TomlTable& table : declaration.hypothesis_tables) {
    Hypothesis hypothesis;
    hypothesis.a = table.required_text("a");
    hypothesis.kind =
        table.choice<HypothesisKind>("kind", HypothesisKind::superiority, kHypotheses);
    hypothesis.declared = true;
    read_bounds(table, hypothesis);
    declaration.plan.hypotheses.push_back(std::move(hypothesis));
  }
}

void read_aggregation(TomlTable& root, Plan& plan) {
  TomlTable table = root.table("aggregation");
  Aggregation& aggregation = plan.aggregation;
  aggregation.of_process =
      table.choice<ProcessValue>("of_process", ProcessValue::phase, kProcessValues);
  aggregation.median_of_trials = table.choice<bool>("of_trials", false, kOfTrials);
  aggregation.warm_up_trials = table.integer("warm_up_trials", 0, 0, 1000);
  aggregation.warm_up_runs = table.integer("warm_up_runs", 0, 0, 1000);
  const bool hot = aggregation.of_process == ProcessValue::restart_hot;
  if (aggregation.warm_up_runs != 0 && !hot) {
    table.reject("warm_up_runs", "'warm_up_runs' needs of_process = \"restart-hot\"",
                 "warm_up_trials leaves out whole trials");
  }
  if (aggregation.of_process == ProcessValue::median_of_windows && plan.design != Design::windows) {
    table.reject("of_process", "a median of windows needs design = \"windows\"");
  }
  if (aggregation.of_process == ProcessValue::median_of_windows && plan.metric.latency) {
    table.reject("of_process", "windows have a throughput each, no latencies of their own");
  }
  if (hot && plan.design == Design::windows) {
    table.reject("of_process", "restart-hot runs need design = \"random\" or \"blocks\"",
                 "in the design windows a process lives as long as its set");
  }
}

void read_control(TomlTable& root, Declaration& declaration) {
  TomlTable table = root.table("positive_control");
  declaration.control_wanted = table.present();
  if (!table.present()) return;
  declaration.plan.control.arm = table.text("arm");
  declaration.plan.control.delay_ns =
      table.required_integer("delay_ns", 1, std::uint64_t{60} * 1'000'000'000);
}

void read_windows(TomlTable& root, Plan& plan) {
  const bool given = root.has("windows");
  TomlTable windows = root.table("windows");
  plan.windows.operations = windows.integer("operations", 10, 1, 1'000'000);
  plan.windows.windows = windows.integer("windows", 20, 2, 100'000);
  if (windows.has("sets")) plan.trials = windows.integer("sets", plan.trials, 2, 100'000);
  plan.windows.max_idle_cpu_fraction =
      windows.number("idle_cpu_fraction_max", plan.windows.max_idle_cpu_fraction, 0.0, 1.0);
  if (given && plan.design != Design::windows) {
    root.reject("windows", "[windows] needs design = \"windows\"");
  }
  if (given && windows.has("sets") && root.has("trials")) {
    root.reject("trials", "'trials' and 'windows.sets' are the same figure: give one of them");
  }
}

/// In the doctor's order and once each, so that two spellings of one plan are one plan.
void read_demands(TomlTable& root, Plan& plan) {
  const std::vector<std::string> given = root.texts("machine_demands");
  if (const auto error = doctor::unknown_id(given)) {
    root.reject("machine_demands", error->what(), error->hint_text());
  }
  for (const std::string& id : doctor::check_ids()) {
    if (std::find(given.begin(), given.end(), id) != given.end()) {
      plan.machine_demands.push_back(id);
    }
  }
}

}  // namespace

Declaration read_declaration(TomlTable& root) {
  Declaration declaration;
  Plan& plan = declaration.plan;
  plan.name = root.required_text("name");
  if (root.has("name")) check_name(root, plan.name);
  plan.question = root.text("question");
  declaration.workload = root.required_text("workload");
  for (auto& pair : root.settings("workload_overrides", true))
    declaration.overrides.push_back(pair);
  read_arms(root, declaration);
  declaration.references = {"null", "raw-file"};
  if (root.has("references")) declaration.references = root.texts("references");
  plan.design = root.choice<Design>("design", Design::random, kDesigns);
  plan.trials = root.integer("trials", plan.trials, 2, 100'000);
  plan.seed = root.integer("seed", 1);
  plan.alpha = root.number("alpha", 0.05, 1e-9, 0.5);
  read_metric(root, plan.metric);
  read_hypotheses(root, declaration);
  declaration.a_a_wanted = root.boolean("a_a", true);
  declaration.a_a_name = root.text("a_a_arm");
  if (!declaration.a_a_name.empty() && !declaration.a_a_wanted) {
    root.reject("a_a_arm", "'a_a_arm' needs a_a = true");
  }
  plan.mixed_durability = root.boolean("mixed_durability", false);
  plan.root = root.text("root", kDefaultRoot);
  if (plan.root.empty()) root.reject("root", "the benchmark root must be a directory");
  plan.trial_timeout_ms = root.integer("trial_timeout_ms", 600'000, 1);
  plan.void_trials_max = root.integer("void_trials_max", 10, 0, 1'000'000);
  plan.foreign_cpus_max = root.number("foreign_cpus_max", plan.foreign_cpus_max, 0.0, 10'000.0);
  plan.frequency_change_max =
      root.number("frequency_change_max", plan.frequency_change_max, 0.0, 1.0);
  plan.steal_share_max = root.number("steal_share_max", plan.steal_share_max, 0.0, 1.0);
  plan.effect_percent = root.number("effect_percent", 10.0, 0.01, 10'000.0);
  plan.cv_percent = root.number("cv_percent", 0.0, 0.0, 1'000.0);
  read_demands(root, plan);
  read_windows(root, plan);
  read_aggregation(root, plan);
  read_control(root, declaration);
  return declaration;
}

std::unexpected<Error> refuse(Error error, const TomlTable& table, std::string_view key) {
  // A plug-in's path is the place of its own fault; the plan's line must not hide it.
  if (!error.where().empty()) error.in(error.where());
  return fail(error.at(table.where(key)));
}

std::unexpected<Error> refuse(std::string what, const TomlTable& table, std::string_view key) {
  return refuse(Error(ErrorKind::bad_input, std::move(what)), table, key);
}

}  // namespace assay
