// assay run: a declared experiment, from its file or by its name below ledgers/.
#include <memory>

#include <fmt/format.h>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"
#include "harness/cli/run_small.h"

namespace assay::cli {
namespace {

struct RunOptions {
  std::string experiment;
  bool all = false;
  std::string scale;
  std::uint64_t trials = 0;
  OutputOptions output;
};

/// --scale small, of one experiment or of all.
Result<ExitStatus> run_at_small_scale(const RunOptions& options) {
  if (options.trials != 0 || !options.output.google_benchmark_json.empty()) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("--{} is refused with --scale small",
                                  options.trials != 0 ? "trials" : "google-benchmark-json"))
                    .hint("a small run shows that experiments work and has no figures to keep"));
  }
  SmallRunOptions small;
  small.out = options.output.out;
  small.json = options.output.json;
  small.no_report = options.output.no_report;
  small.fresh = options.output.fresh;
  std::vector<std::string> names = {options.experiment};
  if (options.all) names = declared_experiments();
  for (const std::string& name : names) {
    const auto file = experiment_file(name);
    if (!file) return fail(file.error());
    small.files.push_back(*file);
  }
  if (small.files.empty()) {
    return fail(Error(ErrorKind::bad_input, "no experiment is declared below ledgers/")
                    .hint("run it where the folder ledgers/ is"));
  }
  return run_small(small);
}

Result<ExitStatus> run(const RunOptions& options) {
  if (options.all == !options.experiment.empty()) {
    return fail(Error(ErrorKind::bad_input,
                      options.all ? "--all and the name of an experiment exclude each other"
                                  : "which experiment?")
                    .hint("name one of ledgers/, or all of them with --all --scale small"));
  }
  if (!options.scale.empty()) return run_at_small_scale(options);
  if (options.all) {
    return fail(Error(ErrorKind::bad_input, "--all needs --scale small")
                    .hint("at full scale an experiment wants the machine for itself: run each by "
                          "its name"));
  }
  const auto file = experiment_file(options.experiment);
  if (!file) return fail(file.error());
  auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  auto request = request_of(*file, *plan);
  if (!request) return fail(request.error());
  if (options.trials != 0) {
    if (request->registered) {
      return fail(Error(ErrorKind::bad_input, "--trials is refused for a registered experiment")
                      .at(*file)
                      .hint("its number of trials is part of the plan; copy the file to explore"));
    }
    plan->set_trials(options.trials);
  }
  return run_and_show(*plan, *request, options.output);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand(
      "run", "Run a declared experiment as it is registered; resumes what was stopped");
  verb->add_option("experiment", options->experiment,
                   "experiment.toml, or NAME of ledgers/NAME/experiment.toml");
  verb->add_flag("--all", options->all, "every experiment below ledgers/; needs --scale small");
  verb->add_option("--scale", options->scale,
                   "small: two trials of few keys, in minutes, recorded apart in runs/small-TIME; "
                   "shows that experiments run, and judges nothing")
      ->check(CLI::IsMember({"small"}));
  verb->add_option("--trials", options->trials,
                   "trials an arm instead of the plan's (never for a registered experiment)")
      ->check(whole_number(2, 100'000));
  add_output_flags(*verb, options->output);
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

}  // namespace assay::cli
