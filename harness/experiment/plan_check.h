// The rules of a plan that need to know stores, workloads and the machine. For the plan reader, and
// for who warns before there is a plan; each returns what is wrong as an Error without a place,
// which the reader adds.
#pragma once

#include <optional>
#include <string>

#include "harness/experiment/plan.h"

namespace assay {

/// Why an arm cannot stand under the class that it declares: its settings give less.
struct WeakenedArm {
  DurabilityClass given = DurabilityClass::volatile_;
  std::string setting;  ///< the first that lowers it
  std::string what;     ///< store, settings, the class given and the one declared, in words
  std::string hint;     ///< how to declare it
};
/// Nothing when the settings keep the class. `from_flags`: the hint speaks of flags instead of the
/// keys of a plan's file.
[[nodiscard]] std::optional<WeakenedArm> weakened_arm(const Arm& arm, const Driver& driver,
                                                      bool from_flags);
/// A pin on a CPU that is not there, or more pinned threads than CPUs; with its place in `file`,
/// which the workload was read from (empty: it was not).
[[nodiscard]] std::optional<Error> impossible_pins(const Workload& workload,
                                                   const std::vector<int>& cpus,
                                                   const std::string& file);
/// Threads that use the store at once in the busiest phase.
[[nodiscard]] std::uint32_t most_threads(const Workload& workload);
/// The metric asks for an operation class that the measured phase never does.
[[nodiscard]] std::optional<Error> impossible_metric(const Workload& workload,
                                                     const Metric& metric);
/// Strongest class that a reference arm claims and that is no stronger than `wanted`; `wanted`
/// itself when it claims none.
[[nodiscard]] DurabilityClass reference_durability(DurabilityClass wanted, const Driver& driver);
/// The measured phase; null when the workload has none.
[[nodiscard]] const Phase* measured_phase(const Workload& workload);

/// Ranks of few values cannot reach alpha however far apart they are: the least number of trials
/// with which a rank test of medians can.
[[nodiscard]] std::uint64_t least_trials_of_median(double alpha, Design design);

}  // namespace assay
