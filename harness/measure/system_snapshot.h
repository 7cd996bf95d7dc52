// The machine's state at the edges of a trial, and which differences make the trial void.
// No state; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/result.h"
#include "harness/measure/process_counters.h"

namespace assay {

struct SystemSnapshot {
  std::uint64_t taken_ns = 0;   ///< CLOCK_BOOTTIME, which runs on while the machine is suspended
  std::uint64_t active_ns = 0;  ///< CLOCK_MONOTONIC, which does not
  std::string boot_id;
  std::vector<std::uint64_t> frequency_khz;  ///< by CPU; empty where the kernel shows none
  std::map<std::string, std::uint64_t> throttle_events;  ///< counter's path -> count
  std::vector<std::string> governors;                    ///< by CPU; empty where there are none
  std::string online_cpus;                               ///< "0-1"
  double load_average = 0.0;  ///< of the last minute, our own load included
  MachineCpu cpu;
};

/// What is tolerated between two snapshots.
struct SnapshotLimits {
  double frequency_change = 0.2;   ///< relative change of the mean frequency
  double foreign_cpu_share = 0.1;  ///< of the CPU time all CPUs could give
  double steal_share = 0.1;        ///< the same, of time taken by the hypervisor
};

[[nodiscard]] Result<SystemSnapshot> system_snapshot();
/// One sentence a difference that makes what was measured between the two void; empty when all is
/// well. Foreign CPU is judged only over 100 ms and more: the kernel counts in steps of 10 ms.
[[nodiscard]] std::vector<std::string> disturbances(const SystemSnapshot& before,
                                                    const SystemSnapshot& after,
                                                    const SnapshotLimits& limits = {});

}  // namespace assay
