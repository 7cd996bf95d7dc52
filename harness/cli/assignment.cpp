#include "harness/cli/assignment.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

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

}  // namespace

std::string arm_name(const std::string& store) {
  return std::filesystem::path(store).stem().string();
}

Status assign(const std::string& assignment, const std::vector<std::string>& stores,
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
  for (std::size_t i = 0; i < stores.size(); ++i) {
    names.push_back(arm_name(stores[i]));
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

}  // namespace assay::cli
