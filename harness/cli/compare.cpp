// assay compare: an exploratory experiment from flags.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/assignment.h"
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
    ASSAY_TRY(assign(assignment, options.stores, declaration));
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
