#include "harness/cli/experiment_place.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

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

Result<std::string> experiment_file(const std::string& given) {
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

Result<RunRequest> request_of(const std::string& file, const Plan& plan) {
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

Result<std::string> registered_ledger(const std::string& file, const Plan& plan) {
  const auto request = request_of(file, plan);
  if (!request) return fail(request.error());
  if (!request->registered) {
    return fail(Error(ErrorKind::bad_input, "this experiment has no ledger of its own")
                    .at(file)
                    .hint(fmt::format("put the file into its place, ledgers/{}/experiment.toml",
                                      plan.name)));
  }
  return (fs::path(request->tree) / "ledgers" / plan.name / "ledger.jsonl")
      .lexically_normal()
      .string();
}

}  // namespace assay::cli
