// assay run: a declared experiment, from its file or by its name below ledgers/.
#include <memory>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"

namespace assay::cli {
namespace {

struct RunOptions {
  std::string experiment;
  std::uint64_t trials = 0;
  OutputOptions output;
};

Result<ExitStatus> run(const RunOptions& options) {
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
                   "experiment.toml, or NAME of ledgers/NAME/experiment.toml")
      ->required();
  verb->add_option("--trials", options->trials,
                   "trials an arm instead of the plan's (never for a registered experiment)")
      ->check(whole_number(2, 100'000));
  add_output_flags(*verb, options->output);
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

}  // namespace assay::cli
