// assay compare: an exploratory experiment from flags.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_run.h"
#include "harness/cli/text_flags.h"

namespace assay::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> stores;
  std::string workload;
  std::string name = "compare";
  std::string durability = "power";
  std::vector<std::string> assignments;
  std::uint64_t trials = 5;
  std::uint64_t seed = 1;
  std::string design = "random";
  std::string root;
  std::string latency;
  double effect_percent = 50.0;
  bool mixed_durability = false;
  bool no_a_a = false;
  double cv_percent = 0.0;
  double foreign_cpus_max = Plan{}.foreign_cpus_max;
  double frequency_change_max = Plan{}.frequency_change_max;
  double steal_share_max = Plan{}.steal_share_max;
  std::uint64_t void_trials_max = Plan{}.void_trials_max;
  OutputOptions output;
};

std::string arm_name(const std::string& store) {
  return std::filesystem::path(store).stem().string();
}

/// The first part of a workload's key, so that "keys.count=1000" needs no "workload." before it.
bool names_workload_key(std::string_view part) {
  constexpr std::array<std::string_view, 6> kTop = {
      "keys", "values", "phases", "measured_phase", "memory_bytes", "best_effort"};
  return std::ranges::find(kTop, part) != kTop.end();
}

/// One value a key: of two the last would win in silence.
Status put_once(nlohmann::json& into, const std::string& key, const std::string& assignment) {
  if (into.contains(key)) {
    return fail(Error(ErrorKind::bad_input, fmt::format("--set gives '{}' twice", key))
                    .hint("leave one of the two out"));
  }
  into[key] = assignment.substr(assignment.find('=') + 1);
  return {};
}

/// "keys.count=1000" or "workload.keys.count=1000" goes to the workload, "sqlite.cache_bytes=1" to
/// that store's arm.
Status assign(const std::string& assignment, const CompareOptions& options,
              nlohmann::json& declaration) {
  const std::size_t dot = assignment.find('.');
  const std::size_t equals = assignment.find('=');
  if (equals != std::string::npos &&
      names_workload_key(std::string_view(assignment).substr(0, std::min(dot, equals)))) {
    return put_once(declaration["workload_overrides"], assignment.substr(0, equals), assignment);
  }
  if (dot == std::string::npos || equals == std::string::npos || dot > equals) {
    return fail(Error(ErrorKind::bad_input, fmt::format("--set {} is no assignment", assignment))
                    .hint("write --set keys.count=1000 (a key of the workload) or --set "
                          "STORE.SETTING=VALUE"));
  }
  const std::string target = assignment.substr(0, dot);
  const std::string key = assignment.substr(dot + 1, equals - dot - 1);
  if (target == "workload") return put_once(declaration["workload_overrides"], key, assignment);
  std::vector<std::string> names = {"workload"};
  for (std::size_t i = 0; i < options.stores.size(); ++i) {
    names.push_back(arm_name(options.stores[i]));
    if (names.back() != target) continue;
    return put_once(declaration["arms"][i]["settings"], key, assignment);
  }
  Error error(ErrorKind::bad_input, fmt::format("--set {}: '{}' is neither 'workload' nor one of "
                                                "the stores",
                                                assignment, target));
  const std::string near = nearest_name(target, names);
  error.hint(near.empty() ? fmt::format("valid here: {}", fmt::join(names, ", "))
                          : fmt::format("did you mean '{}'?", near));
  return fail(error);
}

/// Of two arms with one name, which flags cannot rename.
Error same_name(const std::string& before, const std::string& store) {
  Error error(ErrorKind::bad_input,
              before == store
                  ? fmt::format("--stores names '{}' twice", store)
                  : fmt::format("--stores holds '{}' and '{}', which would both be called '{}'",
                                before, store, arm_name(store)));
  error.hint(
      before == store
          ? "the first store is run twice anyway, as the A/A arm; to compare one store under "
            "two settings, write an experiment.toml whose [[arms]] have a name each, and "
            "`assay run` it"
          : "give the files different names, or write an experiment.toml whose [[arms]] have "
            "a name each, and `assay run` it");
  return error;
}

Result<nlohmann::json> declaration_of(const CompareOptions& options) {
  nlohmann::json declaration = {{"name", options.name},
                                {"workload", options.workload},
                                {"durability", options.durability},
                                {"design", options.design},
                                {"trials", options.trials},
                                {"seed", options.seed},
                                {"effect_percent", options.effect_percent},
                                {"a_a", !options.no_a_a},
                                {"mixed_durability", options.mixed_durability},
                                {"cv_percent", options.cv_percent},
                                {"foreign_cpus_max", options.foreign_cpus_max},
                                {"frequency_change_max", options.frequency_change_max},
                                {"steal_share_max", options.steal_share_max},
                                {"void_trials_max", options.void_trials_max},
                                {"arms", nlohmann::json::array()}};
  for (const std::string& store : options.stores) {
    for (const auto& before : declaration["arms"]) {
      if (before["name"] == arm_name(store)) return fail(same_name(before["store"], store));
    }
    declaration["arms"].push_back({{"store", store}, {"name", arm_name(store)}});
  }
  if (!options.root.empty()) declaration["root"] = options.root;
  if (!options.latency.empty()) {
    const std::size_t dot = options.latency.find('.');
    declaration["metric"] = "latency";
    declaration["latency_class"] = options.latency.substr(0, dot);
    if (dot != std::string::npos) {
      declaration["latency_percentile"] = options.latency.substr(dot + 1);
    }
  }
  for (const std::string& assignment : options.assignments) {
    ASSAY_TRY(assign(assignment, options, declaration));
  }
  return declaration;
}

Result<ExitStatus> compare(const CompareOptions& options) {
  const auto declaration = declaration_of(options);
  if (!declaration) return fail(declaration.error());
  const auto plan = plan_from_json(*declaration, plan_environment());
  if (!plan) return fail(plan.error());
  return run_and_show(*plan, RunRequest{}, options.output);
}

}  // namespace

void add_compare(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = app.add_subcommand("compare", "Compare stores under a workload (exploratory)");
  add_list_flag(*verb, "--stores,--store", options->stores,
                "stores of `assay store list` or paths of plug-ins, separated by commas")
      ->required();
  verb->add_option("--workload", options->workload, "a shipped workload or a .toml file")
      ->required();
  verb->add_option("--name", options->name, "name of the run's folder below runs/");
  verb->add_option("--durability", options->durability,
                   "volatile, process, power-prefix, power-last or power");
  verb->add_option(
          "--set", options->assignments,
          "a workload's KEY=VALUE (keys.count=1000) or STORE.SETTING=VALUE; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--trials", options->trials, "trials an arm (or blocks, or sets)")
      ->check(whole_number(2, 100'000));
  add_seed_flag(*verb, options->seed, "seed of streams and order");
  verb->add_option("--design", options->design, "random, blocks or windows");
  verb->add_option(
      "--root", options->root,
      "benchmark root directory (/var/tmp/assay-bench-UID, UID the number of the user)");
  verb->add_option("--latency", options->latency,
                   "compare a latency instead of throughput: CLASS.PERCENTILE, as read.p99");
  verb->add_option("--effect-percent", options->effect_percent,
                   "the smallest effect of interest; the A/A gate is void when it cannot be seen")
      ->check(number(0.01, 10'000.0));
  verb->add_option("--cv-percent", options->cv_percent,
                   "scatter to expect between trials, for the power told before the run")
      ->check(number(0.0, 1'000.0));
  verb->add_option(
          "--foreign-cpus-max", options->foreign_cpus_max,
          "a trial is void when other processes use more CPUs than this; 0 = recorded only")
      ->check(number(0.0, 10'000.0))
      ->capture_default_str();
  verb->add_option(
          "--frequency-change-max", options->frequency_change_max,
          "... when the CPUs' frequency changes by more than this share; 0 = recorded only")
      ->check(number(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--steal-share-max", options->steal_share_max,
                   "... when the hypervisor takes more than this share; 0 = recorded only")
      ->check(number(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--void-trials-max", options->void_trials_max,
                   "void trials that are repeated before the experiment is void")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  verb->add_flag(
      "--mixed-durability", options->mixed_durability,
      "run stores whose settings give less than the class too; rows show what they give");
  verb->add_flag("--no-a-a", options->no_a_a, "leave the A/A arm out");
  add_output_flags(*verb, options->output);
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return compare(*options); }; });
}

}  // namespace assay::cli
