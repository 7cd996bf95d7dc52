// The real services of a run: trials in child processes, this machine's provenance and device.
#include <nlohmann/json.hpp>

#include "harness/experiment/runner.h"
#include "harness/measure/flush_plausibility.h"
#include "harness/provenance/provenance.h"
#include "workloads/stream.h"

namespace assay {

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
  services.choose_timed_batches = assay::choose_timed_batches;
  services.stream_digest = [](const Workload& workload, std::uint64_t seed) {
    return assay::stream_digest(workload, seed);
  };
  return services;
}

}  // namespace assay
