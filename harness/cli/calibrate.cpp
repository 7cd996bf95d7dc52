// assay calibrate: the pipeline's own error rate, measured on this machine. Runs many small A/A
// experiments of one store (or, with --delay-ns, of a store and itself delayed) through the whole
// pipeline, and holds the number of differences that it "found" against the binomial interval of
// alpha.
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/assignment.h"
#include "harness/cli/experiment_run.h"
#include "harness/cli/print_json.h"
#include "harness/experiment/calibration.h"
#include "harness/experiment/progress.h"
#include "harness/experiment/stop_signal.h"

namespace assay::cli {
namespace {

struct CalibrateOptions {
  std::string store = "null";
  std::string workload;
  std::string durability = "process";
  std::string design = "random";
  std::uint64_t experiments = 200;
  std::uint64_t trials = 5;
  std::uint64_t seed = 1;
  double alpha = 0.05;
  std::uint64_t delay_ns = 0;
  std::string root;
  std::string out;
  std::vector<std::string> assignments;
  bool as_json = false;
};

Result<Plan> plan_of(const CalibrateOptions& options) {
  nlohmann::json declaration = {{"name", "calibrate"},
                                {"workload", options.workload},
                                {"durability", options.durability},
                                {"design", options.design},
                                {"trials", options.trials},
                                {"seed", options.seed},
                                {"alpha", options.alpha},
                                {"effect_percent", 10'000.0},  // the gate is what is calibrated
                                {"foreign_cpus_max", 0.0},
                                {"frequency_change_max", 0.0},
                                {"steal_share_max", 0.0},
                                {"references", nlohmann::json::array()},
                                {"arms", {{{"store", options.store}}}}};
  if (!options.root.empty()) declaration["root"] = options.root;
  if (options.delay_ns != 0) declaration["positive_control"] = {{"delay_ns", options.delay_ns}};
  for (const std::string& assignment : options.assignments) {
    ASSAY_TRY(assign(assignment, {options.store}, declaration));
  }
  PlanEnvironment environment = plan_environment();
  environment.references_as_arms = true;
  return plan_from_json(declaration, environment);
}

Result<ExitStatus> calibrate(const CalibrateOptions& options) {
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  CalibrationRequest request;
  request.experiments = options.experiments;
  request.out = options.out;
  const StopOnSignal stop;
  ProgressLine progress = ProgressLine::standard_error();
  const auto done =
      calibrate_on_trials(*plan, request, RunServices::real(command_line()), stop.flag(), progress);
  if (!done) return fail(done.error());
  const ExitStatus status = done->body["ok"] == true ? ExitStatus::done : ExitStatus::rejected;
  if (options.as_json) {
    print_json({{"schema", 1},
                {"calibration", done->body},
                {"ledger", done->ledger_path},
                {"head", done->head}});
    return status;
  }
  fmt::print("{}\nledger  {}\nhead    {}\n", done->body["sentence"].get<std::string>(),
             done->ledger_path, done->head);
  return status;
}

}  // namespace

void add_calibrate(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb = app.add_subcommand(
      "calibrate", "Measure the pipeline's own rate of false positives on real trials");
  verb->add_option("--store", options->store, "the store that is compared with itself")
      ->capture_default_str();
  verb->add_option("--workload", options->workload, "a shipped workload or a .toml file")
      ->required();
  verb->add_option("--durability", options->durability, "class the store is opened with")
      ->capture_default_str();
  verb->add_option("--design", options->design, "random, blocks or windows")->capture_default_str();
  verb->add_option("--experiments", options->experiments, "A/A experiments")
      ->check(whole_number(2, 100'000))
      ->capture_default_str();
  verb->add_option("--trials", options->trials, "trials an arm in each")
      ->check(whole_number(2, 100'000))
      ->capture_default_str();
  add_seed_flag(*verb, options->seed, "seed of streams and orders");
  verb->add_option("--alpha", options->alpha, "level of each test")
      ->check(number(1e-6, 0.5))
      ->capture_default_str();
  verb->add_option("--delay-ns", options->delay_ns,
                   "also delay one arm by this much a call, and count how often that is seen");
  verb->add_option("--root", options->root, "benchmark root directory");
  verb->add_option("--set", options->assignments,
                   "a workload's KEY=VALUE or STORE.SETTING=VALUE; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--out", options->out,
                   "new directory for ledger and raw records, or that of the same calibration, "
                   "stopped, to go on with")
      ->required();
  verb->add_flag("--json", options->as_json, "print the figures as JSON and nothing else");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return calibrate(*options); }; });
}

}  // namespace assay::cli
