// From TOML to a Plan, in two steps: first the declaration is read strictly, with the place of each
// part; then stores, settings, workload and machine are asked whether it can be done.
#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/experiment/order.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/plan_check.h"
#include "harness/experiment/plan_declaration.h"
#include "harness/experiment/plan_sweep.h"
#include "harness/trial/precheck.h"
#include "workloads/toml_reader.h"

namespace assay {
namespace {

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
  if ((*driver)->capabilities().reference && !environment.references_as_arms) {
    return refuse(
        Error(ErrorKind::bad_input, fmt::format("'{}' is a reference, never an arm", arm.store))
            .hint("it is shown beside the arms anyway, as a row below them: leave it out here"),
        table, "store");
  }
  if (Status known = check_class(**driver, arm.durability); !known) {
    return refuse(known.error(), table, table.has("durability") ? "durability" : "store");
  }
  if (Status kills = check_kills(plan.workload, arm.durability, (*driver)->capabilities());
      !kills) {
    return refuse(kills.error(), table, table.has("durability") ? "durability" : "store");
  }
  if (Status can = check_capabilities(**driver, plan.workload); !can) {
    return refuse(can.error(), table, "store");
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
    if (const Status can = check_capabilities(**driver, plan.workload); !can) {
      plan.notes.push_back(fmt::format("reference {} is left out: {}", name, can.error().what()));
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

Status check_hypothesis(const Plan& plan, const Hypothesis& one, const TomlTable& table) {
  if (plan.find_arm(one.a) == nullptr) return no_such_arm(plan, one.a, table, "a");
  if (one.kind == HypothesisKind::regression) return {};
  if (plan.find_arm(one.b) == nullptr) return no_such_arm(plan, one.b, table, "b");
  if (one.a == one.b) return refuse("an arm cannot be compared with itself", table, "b");
  return {};
}

/// A reference is known only once the references have joined the arms.
Status check_relative(const Declaration& declaration) {
  const Plan& plan = declaration.plan;
  for (std::size_t i = 0; i < declaration.hypothesis_tables.size(); ++i) {
    const std::string& name = plan.hypotheses[i].relative_to;
    if (name.empty()) continue;
    const Arm* arm = plan.find_arm(name);
    if (arm == nullptr) {
      return no_such_arm(plan, name, declaration.hypothesis_tables[i], "relative_to");
    }
    if (!arm->reference) {
      return refuse(fmt::format("'{}' is no reference row", name), declaration.hypothesis_tables[i],
                    "relative_to");
    }
  }
  return {};
}

Status resolve_hypotheses(Declaration& declaration) {
  Plan& plan = declaration.plan;
  for (std::size_t i = 0; i < plan.hypotheses.size(); ++i) {
    ASSAY_TRY(check_hypothesis(plan, plan.hypotheses[i], declaration.hypothesis_tables[i]));
  }
  if (!plan.hypotheses.empty()) return {};
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.arms.size(); ++j) {
      plan.hypotheses.push_back({plan.arms[i].name, plan.arms[j].name});
    }
  }
  return {};
}

/// The arm of the positive control: an arm of the plan with a delay in every call.
Status add_control(Declaration& declaration, TomlTable& root) {
  Plan& plan = declaration.plan;
  if (!declaration.control_wanted) return {};
  const TomlTable table = root.table("positive_control");
  if (plan.control.arm.empty()) plan.control.arm = plan.arms[0].name;
  const Arm* original = plan.find_arm(plan.control.arm);
  if (original == nullptr) return no_such_arm(plan, plan.control.arm, table, "arm");
  Arm delayed = *original;
  delayed.name += "-delayed";
  delayed.delay_ns = plan.control.delay_ns;
  plan.control.delayed = delayed.name;
  if (plan.find_arm(delayed.name) != nullptr) {
    return refuse(
        fmt::format("the positive control is named '{}', which an arm has already", delayed.name),
        table, "arm");
  }
  plan.arms.push_back(std::move(delayed));
  return {};
}

/// The phases whose median is a process's value: timed runs of a fresh process on warm files.
Status resolve_hot_phases(Declaration& declaration, TomlTable& root) {
  Plan& plan = declaration.plan;
  if (plan.aggregation.of_process != ProcessValue::restart_hot) return {};
  bool fresh = false;
  for (const Phase& phase : plan.workload.phases) {
    const bool warm = phase.cache == CachePolicy::warm || phase.cache == CachePolicy::as_is;
    if (phase.kind == PhaseKind::run && phase.timed && fresh && warm) {
      plan.aggregation.phases.push_back(phase.name);
    }
    fresh = phase.kind == PhaseKind::restart;
  }
  const std::size_t found = plan.aggregation.phases.size();
  if (found > plan.aggregation.warm_up_runs) return {};
  return refuse(
      Error(ErrorKind::bad_input,
            fmt::format("workload {} has {} timed run phases right after a restart on warm files, "
                        "and {} of them warm up",
                        plan.workload.name, found, plan.aggregation.warm_up_runs))
          .hint("a restart-hot run is a restart phase followed by a run phase with cache = "
                "\"warm\" or \"as-is\""),
      root.table("aggregation"), "of_process");
}

Status check_median(const Plan& plan, TomlTable& root) {
  if (!plan.aggregation.median_of_trials) return {};
  const std::uint64_t needed = least_trials_of_median(plan.alpha, plan.design);
  if (plan.trials >= needed) return {};
  return refuse(fmt::format("a rank test of medians at alpha {:g} takes at least {} {}, the plan "
                            "has {}",
                            plan.alpha, needed, unit_of_trials(plan.design), plan.trials),
                root.table("aggregation"), "of_trials");
}

void note_unbalanced_blocks(Plan& plan) {
  const std::size_t rows = williams_rows(plan.arms.size()).size();
  if (plan.design != Design::blocks || plan.rounds() % rows == 0) return;
  plan.notes.push_back(
      fmt::format("{} blocks are no multiple of the {} rows of Williams' design for {} arms: which "
                  "arm follows which is balanced only roughly",
                  plan.rounds(), rows, plan.arms.size()));
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

/// A plan without a sweep, or one cell of one.
Result<Plan> read_cell(TomlDocument& document, const std::string& file,
                       const PlanEnvironment& environment) {
  TomlTable root = document.root();
  (void)root.take("sweep");
  Declaration declaration = read_declaration(root);
  ASSAY_TRY(document.finish());
  declaration.plan.file = file;
  ASSAY_TRY(resolve_workload(declaration, root, environment));
  for (std::size_t i = 0; i < declaration.plan.arms.size(); ++i) {
    ASSAY_TRY(check_arm(declaration, i, environment));
  }
  ASSAY_TRY(check_durability(declaration));
  ASSAY_TRY(resolve_hypotheses(declaration));  // before the twin and the references join the arms
  ASSAY_TRY(resolve_hot_phases(declaration, root));
  ASSAY_TRY(check_median(declaration.plan, root));
  ASSAY_TRY(add_a_a(declaration, root));
  ASSAY_TRY(add_control(declaration, root));
  ASSAY_TRY(add_references(declaration, root, environment));
  ASSAY_TRY(check_relative(declaration));
  note_unbalanced_blocks(declaration.plan);
  note_limits_off(declaration.plan);
  return std::move(declaration.plan);
}

/// The same text once more, for each cell of a sweep.
using MakeDocument = std::function<Result<TomlDocument>()>;

Result<Plan> read_plan(const MakeDocument& make, const std::string& file,
                       const PlanEnvironment& environment) {
  auto document = make();
  if (!document) return fail(document.error());
  TomlTable root = document->root();
  if (!root.has("sweep")) return read_cell(*document, file, environment);
  const Declaration declaration = read_declaration(root);
  std::vector<SweepAxis> axes = read_sweep(root, declaration);
  ASSAY_TRY(document->finish());
  const std::vector<Arm>& arms = declaration.plan.arms;
  std::vector<Cell> cells = cells_of(axes);
  for (Cell& cell : cells) {
    auto own = make();
    if (!own) return fail(own.error());
    ASSAY_TRY(put_values(axes, cell, arms, *own));
    auto plan = read_cell(*own, file, environment);
    if (!plan) return fail(placed_in_sweep(plan.error(), axes, cell, arms, root));
    cell.plan = std::move(*plan);
  }
  return joined(std::move(axes), std::move(cells));
}

}  // namespace

Result<Plan> parse_plan(std::string_view toml, const std::string& file,
                        const PlanEnvironment& environment) {
  return read_plan([&] { return TomlDocument::parse(toml, file); }, file, environment);
}

Result<Plan> load_plan(const std::string& path, const PlanEnvironment& environment) {
  const auto text = read_text_file(path);
  if (!text) return fail(text.error());
  return parse_plan(*text, path, environment);
}

Result<Plan> plan_from_json(const nlohmann::json& declaration, const PlanEnvironment& environment) {
  return read_plan([&] { return TomlDocument::from_json(declaration, "command line"); }, "",
                   environment);
}

}  // namespace assay
