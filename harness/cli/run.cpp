// assay run: a declared experiment, from its file or by its name below ledgers/.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "harness/cli/experiment_run.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string experiment;
  std::uint64_t trials = 0;
  OutputOptions output;
};

std::vector<std::string> declared_experiments() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("ledgers", error)) {
    if (fs::exists(entry.path() / "experiment.toml", error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The file that a path or a name means.
Result<std::string> plan_file(const std::string& given) {
  std::error_code error;
  if (given.empty()) {
    return fail(
        Error(ErrorKind::bad_input, "the experiment's name is empty")
            .hint("give the path of a .toml file, or NAME of ledgers/NAME/experiment.toml"));
  }
  if (given.ends_with(".toml") || fs::is_regular_file(given, error)) return given;
  const std::string named = "ledgers/" + given + "/experiment.toml";
  if (fs::exists(named, error)) return named;
  if (fs::exists(fs::path(given) / "experiment.toml", error)) {
    return (fs::path(given) / "experiment.toml").string();
  }
  if (given.find('/') != std::string::npos) {
    return fail(Error(ErrorKind::bad_input, "there is no experiment.toml here")
                    .at(given)
                    .hint("give the path of a .toml file or of the folder of an experiment.toml"));
  }
  Error refused(ErrorKind::bad_input,
                fmt::format("no experiment is called '{}': there is no {} below {}", given, named,
                            fs::current_path(error).string()));
  const auto names = declared_experiments();
  const std::string near = nearest_name(given, names);
  if (!near.empty()) {
    refused.hint(fmt::format("did you mean '{}'?", near));
  } else if (!names.empty()) {
    refused.hint(fmt::format("there are: {}", fmt::join(names, ", ")));
  } else {
    refused.hint("run it where the folder ledgers/ is, or give the path of a .toml file");
  }
  return fail(refused);
}

/// An experiment in its place, TREE/ledgers/NAME/experiment.toml, has a ledger beside it.
Result<RunRequest> request_for(const std::string& file, const Plan& plan) {
  RunRequest request;
  const fs::path path = fs::absolute(file).lexically_normal();
  const fs::path folder = path.parent_path();
  const bool in_place =
      path.filename() == "experiment.toml" && folder.parent_path().filename() == "ledgers";
  if (!in_place) return request;
  if (folder.filename() != plan.name) {
    return fail(
        Error(ErrorKind::bad_input, fmt::format("the experiment is called '{}' but its folder '{}'",
                                                plan.name, folder.filename().string()))
            .at(file)
            .hint("both must have the same name"));
  }
  const fs::path tree = folder.parent_path().parent_path();
  const fs::path here = fs::current_path();
  request.tree = tree == here ? "." : tree.string();
  request.registered = true;
  return request;
}

Result<ExitStatus> run(const RunOptions& options) {
  const auto file = plan_file(options.experiment);
  if (!file) return fail(file.error());
  auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  auto request = request_for(*file, *plan);
  if (!request) return fail(request.error());
  if (options.trials != 0) {
    if (request->registered) {
      return fail(Error(ErrorKind::bad_input, "--trials is refused for a registered experiment")
                      .at(*file)
                      .hint("its number of trials is part of the plan; copy the file to explore"));
    }
    plan->trials = options.trials;
  }
  return run_and_show(*plan, *request, options.output);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand("run", "Run a declared experiment; resumes what was stopped");
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
