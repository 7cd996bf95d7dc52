// A verdict in the JSON form of Google Benchmark, for its compare.py and what else reads it.
// Stateless; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace assay {

/// One "iteration" entry a trial, named EXPERIMENT/ARM: real_time is the time of an operation (or
/// the latency that is the metric) in ns, cpu_time the arm's median CPU time of an operation
/// (real_time where that is unknown). `provenance` fills the context.
[[nodiscard]] nlohmann::json google_benchmark_json(const nlohmann::json& verdict,
                                                   const nlohmann::json& provenance);

}  // namespace assay
