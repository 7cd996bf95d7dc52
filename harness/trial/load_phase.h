// The load phase: `load_threads` threads put every key, `load_batch` keys an atomic batch.
#pragma once

#include <cstdint>

#include "adapters/store.h"
#include "harness/trial/phase_figures.h"
#include "harness/trial/run_phase.h"
#include "workloads/workload.h"

namespace assay {

/// Runs phase number `phase`, of kind load. The latencies are those of one put() or apply().
[[nodiscard]] Result<PhaseFigures> run_load(Store& store, const Workload& workload,
                                            std::uint64_t seed, std::size_t phase,
                                            const OnFraction& progress);

}  // namespace assay
