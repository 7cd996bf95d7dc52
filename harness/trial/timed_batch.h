// How many operations one latency sample has to cover, where a plan leaves it open (timed_batch =
// "auto"): decided once, before the first trial, for every arm alike.
//
// Two readings of the clock cost as much as a fast operation. Over the store `null` everything
// between the two readings but the call itself is the clock; the fewest operations a sample are
// chosen with which a call of `null` takes at most 1.1 times what it takes with 256 of them. A real
// store's operation is slower, so that the clock adds less than 10 % to any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "adapters/result.h"
#include "workloads/workload.h"

namespace assay {

struct TimedBatchChoice {
  std::string phase;
  std::uint32_t operations = 1;
  /// What was measured: operations a sample -> store time of an operation of `null`, ns.
  std::vector<std::pair<std::uint32_t, double>> null_ns;
};

/// The fewest operations a sample whose figure is at most 1.1 times the least one. `null_ns` is
/// sorted by operations and not empty.
[[nodiscard]] std::uint32_t fewest_operations(
    const std::vector<std::pair<std::uint32_t, double>>& null_ns);

/// Measures for each phase that leaves it open; some 50 ms each. Nothing where none does.
[[nodiscard]] Result<std::vector<TimedBatchChoice>> choose_timed_batches(const Workload& workload,
                                                                         std::uint64_t seed);
/// Puts the choices into the workload.
void apply_timed_batches(const std::vector<TimedBatchChoice>& choices, Workload& workload);

}  // namespace assay
