// The real services of a run: trials in child processes, this machine's provenance and device.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "harness/experiment/runner.h"
#include "harness/measure/flush_plausibility.h"
#include "harness/measure/memory_group.h"
#include "harness/provenance/provenance.h"
#include "harness/trial/cache_policy.h"
#include "workloads/stream.h"

namespace assay {

namespace {

/// What a driver says of an arm before it is opened; why not where it cannot say it.
nlohmann::json arm_conditions(const Arm& arm) {
  const auto driver = find_driver(arm.store);
  if (!driver) return {{"unknown", driver.error().message()}};
  nlohmann::json found = {{"version", (*driver)->version()}};
  if (const auto given = given_durability(**driver, arm.durability, arm.settings)) {
    found["durability"] = to_string(given->given);
  }
  if (const auto settings = resolve_settings(**driver, arm.durability, arm.settings)) {
    found["settings"] = *settings;
  }
  return found;
}

/// Whether what the plan asks of caches and memory can be done here, now, by this user.
nlohmann::json cache_conditions(const Workload& workload) {
  const auto group = MemoryGroup::make(workload.memory_bytes + kHarnessMemoryBytes);
  nlohmann::json found = {{"memory", group ? "held to the budget" : "not held to the budget"}};
  Workload demanding = workload;
  demanding.best_effort = false;
  const bool cold =
      std::any_of(workload.phases.begin(), workload.phases.end(),
                  [](const Phase& phase) { return phase.cache == CachePolicy::cold; });
  if (cold) found["cold"] = check_cold(demanding) ? "caches can be dropped" : "best effort only";
  return found;
}

}  // namespace

RunServices RunServices::real(std::vector<std::string> command_line) {
  RunServices services;
  services.run_trial = assay::run_trial;
  services.run_window_set = assay::run_window_set;
  services.remove_stale_trials = assay::remove_stale_trials;
  services.provenance = [command_line = std::move(command_line)](const Plan& plan) {
    ProvenanceOptions options;
    options.benchmark_root = benchmark_root(plan);
    options.command_line = command_line;
    return collect_provenance(options);
  };
  services.flush_warning = [](const std::string& root) -> std::string {
    const auto probe = probe_flush(root);
    if (!probe) return "the device's flushes could not be probed: " + probe.error().message();
    return probe->plausible ? std::string() : probe->verdict;
  };
  services.conditions = [](const Plan& plan) {
    nlohmann::json found = {{"arms", nlohmann::json::object()}};
    if (plan.cells.empty()) found["cache"] = cache_conditions(plan.workload);
    for (const Cell& cell : plan.cells) {
      found["cache"][cell.name] = cache_conditions(cell.plan.workload);
    }
    for (const Arm& arm : plan.arms) found["arms"][arm.name] = arm_conditions(arm);
    return found;
  };
  services.look_at_machine = [](const Plan& plan, bool watching) {
    doctor::Options options;
    options.benchmark_root = benchmark_root(plan);
    options.demanded = plan.machine_demands;
    const bool worth_it = std::any_of(options.demanded.begin(), options.demanded.end(),
                                      [](const auto& id) { return doctor::needs_watching(id); });
    if (!watching || !worth_it) options.watch = std::chrono::milliseconds(0);
    return doctor::examine(options);
  };
  services.choose_timed_batches = assay::choose_timed_batches;
  services.stream_digest = [](const Workload& workload, std::uint64_t seed) {
    return assay::stream_digest(workload, seed);
  };
  return services;
}

}  // namespace assay
