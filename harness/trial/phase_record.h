// Figures of a phase as the JSON of harness/FORMATS.md.
#pragma once

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "harness/trial/cache_policy.h"
#include "harness/trial/phase_figures.h"
#include "workloads/workload.h"

namespace assay {

/// An entry of "phases" without the meters (phase_meters.h adds those).
[[nodiscard]] nlohmann::json phase_record(const Phase& phase, const PhaseFigures& figures);
/// "cache" of a run phase.
[[nodiscard]] nlohmann::json cache_record(const Phase& phase, const CacheFigures& figures);
/// Test for a monotonic trend of the rate over the timed part: Mann-Kendall; flagged when p < 0.05
/// and the fitted line changes by more than 5 % of the mean from start to end.
[[nodiscard]] nlohmann::json trend_record(const std::vector<double>& rates);

}  // namespace assay
