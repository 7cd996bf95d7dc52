// What parent and child of a trial tell each other.
//
// The parent writes a request file (JSON) and starts `assay worker FILE`. The child writes lines of
// JSON to its standard output: {"progress":{"what","fraction"}}, and in the windows design
// {"ready":true} and {"window":{"operations","wall_ns"}} in answer to "window N"; "end" ends the
// windows. At last it writes an outcome file. A child that leaves none has died.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "workloads/model.h"
#include "workloads/workload.h"

namespace assay {

enum class WorkerTask : std::uint8_t { run, validate };

struct WorkerRequest {
  WorkerTask task = WorkerTask::run;
  std::string store;
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  Workload workload;
  std::uint64_t seed = 1;
  std::string directory;     ///< the store's
  std::string outcome_path;  ///< where the outcome is written
  std::string memory_group;  ///< directory of the control group to join; empty = none
  std::vector<int> cpus;  ///< to take back before all else (ParentElsewhere); empty = as inherited
  // run
  std::size_t first_phase = 0;  ///< [first, last) of workload.phases
  std::size_t last_phase = 0;
  std::uint64_t delay_ns = 0;  ///< injected into every call of a session
  bool windows = false;        ///< the measured phase is run in windows that the parent hands out
  // validate
  std::vector<Executed> executed;
};

[[nodiscard]] nlohmann::json to_json(const WorkerRequest& request);
[[nodiscard]] Result<WorkerRequest> worker_request_from_json(const nlohmann::json& json);

/// An Error as JSON and back.
[[nodiscard]] nlohmann::json error_to_json(const Error& error);
[[nodiscard]] Error error_from_json(const nlohmann::json& json);

/// {"unknown": why}: a figure that could not be had.
[[nodiscard]] nlohmann::json unknown_figure(const std::string& why);

/// Index of the phase whose throughput is the metric; the last timed run phase by default. Equal to
/// phases.size() when no phase qualifies.
[[nodiscard]] std::size_t measured_phase_index(const Workload& workload);

/// A run of phases for one process. A restart phase ends a process; a cold cache policy begins one.
struct PhaseSegment {
  std::size_t first = 0;
  std::size_t last = 0;  ///< behind the last phase
};
[[nodiscard]] std::vector<PhaseSegment> segments_of(const Workload& workload);

}  // namespace assay
