#include "harness/trial/worker_request.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr std::array<std::pair<ErrorKind, std::string_view>, 11> kErrorNames{{
    {ErrorKind::bad_input, "bad_input"},
    {ErrorKind::environment, "environment"},
    {ErrorKind::store, "store"},
    {ErrorKind::wrong_contents, "wrong_contents"},
    {ErrorKind::unsupported, "unsupported"},
    {ErrorKind::child, "child"},
    {ErrorKind::ledger, "ledger"},
    {ErrorKind::plan_changed, "plan_changed"},
    {ErrorKind::void_experiment, "void_experiment"},
    {ErrorKind::interrupted, "interrupted"},
    {ErrorKind::internal, "internal"},
}};

bool is_cold(const Phase& phase) {
  return (phase.kind == PhaseKind::run || phase.kind == PhaseKind::table) &&
         (phase.cache == CachePolicy::cold || phase.cache == CachePolicy::cold_files);
}

}  // namespace

nlohmann::json to_json(const WorkerRequest& request) {
  nlohmann::json executed = nlohmann::json::array();
  for (const Executed& phase : request.executed)
    executed.push_back({{"phase", phase.phase}, {"operations", phase.operations}});
  return {{"task", request.task == WorkerTask::run ? "run" : "validate"},
          {"store", request.store},
          {"durability", std::string(to_string(request.durability))},
          {"settings", request.settings},
          {"workload", to_json(request.workload)},
          {"seed", request.seed},
          {"directory", request.directory},
          {"outcome", request.outcome_path},
          {"memory_group", request.memory_group},
          {"cpus", request.cpus},
          {"first_phase", request.first_phase},
          {"last_phase", request.last_phase},
          {"delay_ns", request.delay_ns},
          {"windows", request.windows},
          {"executed", std::move(executed)}};
}

Result<WorkerRequest> worker_request_from_json(const nlohmann::json& json) {
  WorkerRequest request;
  try {
    request.task = json.at("task") == "run" ? WorkerTask::run : WorkerTask::validate;
    request.store = json.at("store");
    const Result<DurabilityClass> durability =
        parse_durability(json.at("durability").get<std::string>());
    if (!durability) return fail(durability.error());
    request.durability = *durability;
    request.settings = json.at("settings").get<Settings>();
    Result<Workload> workload = workload_from_json(json.at("workload"));
    if (!workload) return fail(workload.error());
    request.workload = std::move(*workload);
    request.seed = json.at("seed");
    request.directory = json.at("directory");
    request.outcome_path = json.at("outcome");
    request.memory_group = json.at("memory_group");
    request.cpus = json.at("cpus").get<std::vector<int>>();
    request.first_phase = json.at("first_phase");
    request.last_phase = json.at("last_phase");
    request.delay_ns = json.at("delay_ns");
    request.windows = json.at("windows");
    for (const nlohmann::json& phase : json.at("executed"))
      request.executed.push_back({phase.at("phase").get<std::size_t>(),
                                  phase.at("operations").get<std::vector<std::uint64_t>>()});
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input, fmt::format("not a worker request: {}", exception.what()));
  }
  return request;
}

nlohmann::json error_to_json(const Error& error) {
  std::string_view kind = "internal";
  for (const auto& [value, name] : kErrorNames)
    if (value == error.kind()) kind = name;
  return {{"kind", std::string(kind)},
          {"what", error.what()},
          {"where", error.where()},
          {"hint", error.hint_text()}};
}

Error error_from_json(const nlohmann::json& json) {
  ErrorKind kind = ErrorKind::internal;
  for (const auto& [value, name] : kErrorNames)
    if (json.value("kind", "") == name) kind = value;
  Error error(kind, json.value("what", "an error without words"));
  error.at(json.value("where", "")).hint(json.value("hint", ""));
  return error;
}

nlohmann::json unknown_figure(const std::string& why) {
  return {{"unknown", why}};
}

std::size_t measured_phase_index(const Workload& workload) {
  std::size_t measured = workload.phases.size();
  for (std::size_t index = 0; index < workload.phases.size(); ++index) {
    const Phase& phase = workload.phases[index];
    if (phase.kind != PhaseKind::run) continue;
    if (!workload.measured_phase.empty()) {
      if (phase.name == workload.measured_phase) return index;
    } else if (phase.timed) {
      measured = index;
    }
  }
  return measured;
}

std::vector<PhaseSegment> segments_of(const Workload& workload) {
  std::vector<PhaseSegment> segments{{0, 0}};
  for (std::size_t index = 0; index < workload.phases.size(); ++index) {
    const Phase& phase = workload.phases[index];
    // A cold phase right after a restart needs no second one, and the first phase has nothing to
    // restart from.
    if (is_cold(phase) && segments.back().last > segments.back().first)
      segments.push_back({index, index});
    segments.back().last = index + 1;
    if (ends_process(phase.kind)) segments.push_back({index + 1, index + 1});
  }
  return segments;
}

}  // namespace assay
