// From TOML to a Plan, in two steps: first the declaration is read strictly, with the place of each
// part; then stores, settings, workload and machine are asked whether it can be done.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "harness/experiment/order.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/plan_check.h"
#include "harness/trial/precheck.h"
#include "workloads/toml_reader.h"

namespace assay {
namespace {

constexpr std::array<std::pair<std::string_view, Design>, 3> kDesigns = {
    {{"random", Design::random}, {"blocks", Design::blocks}, {"windows", Design::windows}}};
constexpr std::array<std::pair<std::string_view, DurabilityClass>, 5> kClasses = {
    {{"volatile", DurabilityClass::volatile_},
     {"process", DurabilityClass::process},
     {"power-prefix", DurabilityClass::power_prefix},
     {"power-last", DurabilityClass::power_last},
     {"power", DurabilityClass::power}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kMetrics = {
    {{"throughput", false}, {"latency", true}}};
constexpr std::array<std::pair<std::string_view, HypothesisKind>, 2> kHypotheses = {
    {{"superiority", HypothesisKind::superiority}, {"equivalence", HypothesisKind::equivalence}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPercentiles = {
    {{"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"p999", "p999"}}};

/// What was written, and where each part stands.
struct Declaration {
  Plan plan;
  std::string workload;
  Overrides overrides;
  std::vector<std::string> references;
  bool a_a_wanted = true;
  std::string a_a_name;
  std::vector<TomlTable> arm_tables;
  std::vector<TomlTable> hypothesis_tables;
};

std::unexpected<Error> refuse(Error error, const TomlTable& table, std::string_view key) {
  // A plug-in's path is the place of its own fault; the plan's line must not hide it.
  if (!error.where().empty()) error.in(error.where());
  return fail(error.at(table.where(key)));
}

std::unexpected<Error> refuse(std::string what, const TomlTable& table, std::string_view key) {
  return refuse(Error(ErrorKind::bad_input, std::move(what)), table, key);
}

bool is_file_name(std::string_view text) {
  return !text.empty() && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
         });
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
    if (!is_file_name(arm.name)) {
      table.reject("name", fmt::format("'{}' cannot be an arm's name", arm.name),
                   "letters, digits, '-', '_' and '.'; it becomes part of file names");
    }
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

void read_hypotheses(TomlTable& root, Declaration& declaration) {
  declaration.hypothesis_tables = root.tables("hypotheses");
  for (TomlTable& table : declaration.hypothesis_tables) {
    Hypothesis hypothesis;
    hypothesis.a = table.required_text("a");
    hypothesis.b = table.required_text("b");
    hypothesis.kind =
        table.choice<HypothesisKind>("kind", HypothesisKind::superiority, kHypotheses);
    hypothesis.declared = true;
    if (hypothesis.kind == HypothesisKind::equivalence) {
      hypothesis.margin_percent = table.required_number("margin_percent", 0.001, 10'000.0);
    } else if (table.take("margin_percent")) {
      table.reject("margin_percent", "only kind = \"equivalence\" takes a margin");
    }
    declaration.plan.hypotheses.push_back(std::move(hypothesis));
  }
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

Declaration read_declaration(TomlTable& root) {
  Declaration declaration;
  Plan& plan = declaration.plan;
  plan.name = root.required_text("name");
  if (root.has("name") && !is_file_name(plan.name)) {
    root.reject("name", fmt::format("'{}' cannot be an experiment's name", plan.name),
                "letters, digits, '-', '_' and '.'; it becomes a folder's name");
  }
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
  read_windows(root, plan);
  return declaration;
}

std::vector<std::string_view> arm_names(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const Arm& arm : plan.arms) names.emplace_back(arm.name);
  return names;
}

std::unexpected<Error> no_such_arm(const Plan& plan, std::string_view given, const TomlTable& table,
                                   std::string_view key) {
  Error error(ErrorKind::bad_input, fmt::format("no arm is named '{}'", given));
  const std::string near = nearest_name(given, arm_names(plan));
  error.hint(near.empty() ? fmt::format("the arms: {}", fmt::join(arm_names(plan), ", "))
                          : fmt::format("did you mean '{}'?", near));
  return refuse(std::move(error), table, key);
}

/// The workload's reader calls every override a --set; of a plan in a file it is a line there.
Error placed_override(Error error, const Declaration& declaration, const TomlTable& root) {
  if (declaration.plan.file.empty()) return error;
  for (const auto& [path, value] : declaration.overrides) {
    if (error.where() != "--set " + path) continue;
    return error.in("workload_overrides, " + path)
        .at(root.where_setting("workload_overrides", path));
  }
  return error;
}

Status resolve_workload(Declaration& declaration, const TomlTable& root,
                        const PlanEnvironment& environment) {
  Plan& plan = declaration.plan;
  std::string which = declaration.workload;
  const bool path = which.ends_with(".toml") || which.find('/') != std::string::npos;
  if (path && which.front() != '/') {
    which = (std::filesystem::path(plan.file).parent_path() / which).string();
  }
  auto workload = environment.find_workload(which, declaration.overrides);
  if (!workload) {
    Error error = placed_override(workload.error(), declaration, root);
    return error.where().empty() ? refuse(std::move(error), root, "workload") : fail(error);
  }
  plan.workload = std::move(*workload);
  const bool pins_overridden =
      std::any_of(declaration.overrides.begin(), declaration.overrides.end(),
                  [](const auto& one) { return one.first.find("cpus") != std::string::npos; });
  const std::string pins_in = path && !pins_overridden ? which : "";
  if (auto error = impossible_pins(plan.workload, environment.cpus, pins_in)) {
    if (!error->where().empty()) return fail(*error);
    return refuse(*error, root, pins_overridden ? "workload_overrides" : "workload");
  }
  if (auto error = impossible_metric(plan.workload, plan.metric)) {
    return refuse(*error, root, plan.metric.latency ? "latency_class" : "workload");
  }
  return {};
}

/// What the store would refuse when it is opened is refused here, before the first trial.
Status check_settings(const Workload& workload, const Arm& arm, const Driver& driver,
                      const TomlTable& table) {
  OpenOptions options;
  options.durability = arm.durability;
  options.settings = arm.settings;
  options.key_kind = workload.keys.kind;
  options.memory_bytes = workload.memory_bytes;
  options.expected_bytes = expected_data_bytes(workload);
  const Status checked = driver.check_settings(options, most_threads(workload));
  if (checked) return {};
  TomlTable settings = TomlTable(table).table("settings");
  for (const auto& [name, value] : arm.settings) {
    const bool named = checked.error().what().find("\"" + name + "\"") != std::string::npos;
    if (named && settings.has(name)) return refuse(checked.error(), settings, name);
  }
  return refuse(checked.error(), table, "settings");
}

/// An arm whose settings break its own promise is refused, or shown as what it gives.
Status check_promise(Plan& plan, Arm& arm, const Driver& driver, const TomlTable& table) {
  const auto weak = weakened_arm(arm, driver, plan.file.empty());
  if (!weak) return {};
  const auto key = table.has("durability") ? "durability" : "store";
  if (!plan.mixed_durability) {
    const Error error = Error(ErrorKind::bad_input, weak->what).hint(weak->hint);
    TomlTable settings = TomlTable(table).table("settings");
    return settings.has(weak->setting) ? refuse(error, settings, weak->setting)
                                       : refuse(error, table, key);
  }
  if (Status kills = check_kills(plan.workload, weak->given, driver.capabilities()); !kills) {
    return refuse(kills.error(), table, key);
  }
  arm.weakened_to = weak->given;
  plan.notes.push_back(weak->what);
  return {};
}

Status check_arm(Declaration& declaration, std::size_t number, const PlanEnvironment& environment) {
  Plan& plan = declaration.plan;
  Arm& arm = plan.arms[number];
  const TomlTable& table = declaration.arm_tables[number];
  for (std::size_t i = 0; i < number; ++i) {
    if (plan.arms[i].name != arm.name) continue;
    return refuse(Error(ErrorKind::bad_input, fmt::format("two arms are named '{}'", arm.name))
                      .hint("give one of them a name = of its own"),
                  table, "name");
  }
  const auto driver = environment.find_store(arm.store);
  if (!driver) return refuse(driver.error(), table, "store");
  if ((*driver)->capabilities().reference) {
    return refuse(
        Error(ErrorKind::bad_input, fmt::format("'{}' is a reference, never an arm", arm.store))
            .hint("it is shown beside the arms anyway, as a row below them: leave it out here"),
        table, "store");
  }
  if (auto error = missing_durability(arm.durability, **driver)) {
    return refuse(*error, table, table.has("durability") ? "durability" : "store");
  }
  if (Status kills = check_kills(plan.workload, arm.durability, (*driver)->capabilities());
      !kills) {
    return refuse(kills.error(), table, table.has("durability") ? "durability" : "store");
  }
  if (auto error = missing_capability(plan.workload, **driver)) {
    return refuse(*error, table, "store");
  }
  ASSAY_TRY(check_settings(plan.workload, arm, **driver, table));
  return check_promise(plan, arm, **driver, table);
}

Status check_durability(const Declaration& declaration) {
  const Plan& plan = declaration.plan;
  if (plan.mixed_durability) return {};
  for (std::size_t i = 1; i < plan.arms.size(); ++i) {
    if (plan.arms[i].durability == plan.arms[0].durability) continue;
    return refuse(
        Error(ErrorKind::bad_input,
              fmt::format(
                  "arm {} has durability {}, arm {} has {}: unequal promises are not compared",
                  plan.arms[i].name, to_string(plan.arms[i].durability), plan.arms[0].name,
                  to_string(plan.arms[0].durability)))
            .hint("mixed_durability = true allows it and is stamped on every table"),
        declaration.arm_tables[i], "durability");
  }
  return {};
}

Status add_a_a(Declaration& declaration, const TomlTable& root) {
  Plan& plan = declaration.plan;
  if (!declaration.a_a_wanted) return {};
  plan.a_a = declaration.a_a_name.empty() ? plan.arms[0].name : declaration.a_a_name;
  const Arm* original = plan.find_arm(plan.a_a);
  if (original == nullptr) return no_such_arm(plan, plan.a_a, root, "a_a_arm");
  Arm twin = *original;
  twin.name += "-again";
  plan.a_a_twin = twin.name;
  if (plan.find_arm(twin.name) != nullptr) {
    return refuse(fmt::format("the A/A arm is named '{}', which an arm has already", twin.name),
                  root, "a_a_arm");
  }
  plan.arms.push_back(std::move(twin));
  return {};
}

Status add_references(Declaration& declaration, const TomlTable& root,
                      const PlanEnvironment& environment) {
  Plan& plan = declaration.plan;
  const DurabilityClass wanted = plan.arms[0].durability;
  for (const std::string& name : declaration.references) {
    const auto driver = environment.find_store(name);
    if (!driver) return refuse(driver.error(), root, "references");
    if (!(*driver)->capabilities().reference) {
      return refuse(Error(ErrorKind::bad_input, fmt::format("'{}' is no reference", name))
                        .hint("make it an arm with [[arms]]"),
                    root, "references");
    }
    if (plan.find_arm(name) != nullptr) {
      return refuse(fmt::format("'{}' is there twice", name), root, "references");
    }
    if (const auto error = missing_capability(plan.workload, **driver)) {
      plan.notes.push_back(fmt::format("reference {} is left out: {}", name, error->what()));
      continue;
    }
    Arm arm;
    arm.name = name;
    arm.store = name;
    arm.durability = reference_durability(wanted, **driver);
    arm.reference = true;
    plan.arms.push_back(std::move(arm));
  }
  return {};
}

Status resolve_hypotheses(Declaration& declaration) {
  Plan& plan = declaration.plan;
  for (std::size_t i = 0; i < plan.hypotheses.size(); ++i) {
    const Hypothesis& one = plan.hypotheses[i];
    const TomlTable& table = declaration.hypothesis_tables[i];
    if (plan.find_arm(one.a) == nullptr) return no_such_arm(plan, one.a, table, "a");
    if (plan.find_arm(one.b) == nullptr) return no_such_arm(plan, one.b, table, "b");
    if (one.a == one.b) return refuse("an arm cannot be compared with itself", table, "b");
  }
  if (!plan.hypotheses.empty()) return {};
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.arms.size(); ++j) {
      plan.hypotheses.push_back({plan.arms[i].name, plan.arms[j].name});
    }
  }
  return {};
}

void note_unbalanced_blocks(Plan& plan) {
  const std::size_t rows = williams_rows(plan.arms.size()).size();
  if (plan.design != Design::blocks || plan.trials % rows == 0) return;
  plan.notes.push_back(
      fmt::format("{} blocks are no multiple of the {} rows of Williams' design for {} arms: which "
                  "arm follows which is balanced only roughly",
                  plan.trials, rows, plan.arms.size()));
}

/// A limit that is off shows in the record and in every report, not only in the plan.
void note_limits_off(Plan& plan) {
  std::vector<std::string_view> off;
  if (plan.foreign_cpus_max == 0.0) off.push_back("foreign load (foreign_cpus_max)");
  if (plan.frequency_change_max == 0.0) off.push_back("frequency (frequency_change_max)");
  if (plan.steal_share_max == 0.0) off.push_back("steal (steal_share_max)");
  if (off.empty()) return;
  plan.notes.push_back(
      fmt::format("the plan turns off what would make a trial void: {}", fmt::join(off, ", ")));
}

Result<Plan> read_plan(TomlDocument& document, const std::string& file,
                       const PlanEnvironment& environment) {
  TomlTable root = document.root();
  Declaration declaration = read_declaration(root);
  ASSAY_TRY(document.finish());
  declaration.plan.file = file;
  ASSAY_TRY(resolve_workload(declaration, root, environment));
  for (std::size_t i = 0; i < declaration.plan.arms.size(); ++i) {
    ASSAY_TRY(check_arm(declaration, i, environment));
  }
  ASSAY_TRY(check_durability(declaration));
  ASSAY_TRY(resolve_hypotheses(declaration));  // before the twin and the references join the arms
  ASSAY_TRY(add_a_a(declaration, root));
  ASSAY_TRY(add_references(declaration, root, environment));
  note_unbalanced_blocks(declaration.plan);
  note_limits_off(declaration.plan);
  return std::move(declaration.plan);
}

}  // namespace

std::string_view to_string(Design design) {
  return kDesigns[static_cast<std::size_t>(design)].first;
}

bool is_paired(Design design) {
  return design != Design::random;
}

std::string_view unit_of_trials(Design design) {
  if (design == Design::random) return "trials an arm";
  return design == Design::blocks ? "blocks" : "sets";
}

std::string_view to_string(HypothesisKind kind) {
  return kHypotheses[static_cast<std::size_t>(kind)].first;
}

std::string Metric::name() const {
  return latency ? fmt::format("latency {} of {}", percentile, operation_class) : "throughput";
}

std::string Metric::unit() const {
  return latency ? "ns" : "operations/s";
}

const Arm* Plan::find_arm(std::string_view arm_name) const {
  const auto found =
      std::find_if(arms.begin(), arms.end(), [&](const Arm& arm) { return arm.name == arm_name; });
  return found == arms.end() ? nullptr : &*found;
}

std::string benchmark_root(const Plan& plan) {
  return plan.root == kDefaultRoot ? fmt::format("{}-{}", plan.root, ::getuid()) : plan.root;
}

PlanEnvironment PlanEnvironment::real() {
  PlanEnvironment environment;
  environment.find_store = find_driver;
  environment.find_workload = load_workload;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) environment.cpus.push_back(cpu);
    }
  }
  return environment;
}

Result<Plan> parse_plan(std::string_view toml, const std::string& file,
                        const PlanEnvironment& environment) {
  auto document = TomlDocument::parse(toml, file);
  if (!document) return fail(document.error());
  return read_plan(*document, file, environment);
}

Result<Plan> load_plan(const std::string& path, const PlanEnvironment& environment) {
  auto document = TomlDocument::load(path);
  if (!document) return fail(document.error());
  return read_plan(*document, path, environment);
}

Result<Plan> plan_from_json(const nlohmann::json& declaration, const PlanEnvironment& environment) {
  auto document = TomlDocument::from_json(declaration, "command line");
  if (!document) return fail(document.error());
  return read_plan(*document, "", environment);
}

}  // namespace assay
