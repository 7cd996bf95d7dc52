// The figures of one arm over its trials: the row of a table. Internal to the verdict.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/experiment/plan.h"

namespace assay {

/// The records whose values count, in the order of their rounds.
struct ArmSample {
  const Arm* arm = nullptr;
  std::vector<nlohmann::json> raws;  ///< without their histograms and series, which are large
  std::vector<double> values;        ///< of the plan's metric
  std::vector<double> throughputs;   ///< operations a second, whatever the metric
  std::vector<std::string> missing;  ///< why a trial has no value
  /// Latencies of every operation of every trial in one count: highest value of a bucket -> count.
  std::map<std::uint64_t, std::uint64_t> latency_counts;
  double latency_ns_max = 0.0;
  std::vector<double> store_ns;  ///< inside store calls, an operation; a value a trial
};

/// Adds a trial's record to `raws` and its latencies to the counts.
void add_record(const Plan& plan, nlohmann::json raw, ArmSample& sample);

/// The measured phase of a raw record; null JSON when it is not there.
[[nodiscard]] const nlohmann::json& measured_figures(const Plan& plan, const nlohmann::json& raw);
/// Operations a second of the measured phase, its drain included where one is declared after it; in
/// a design of windows the
/// geometric mean of its windows: no window is dropped, yet a stall that falls into one of them by
/// chance weighs less than in the plain rate (A/A on a busy machine: deviation of the log ratio of
/// a set 0.35, with the median 0.57).
[[nodiscard]] std::optional<double> throughput_of(const Plan& plan, const nlohmann::json& raw);
/// The value of the plan's metric.
[[nodiscard]] std::optional<double> metric_of(const Plan& plan, const nlohmann::json& raw);

/// The row of the verdict, without what needs other arms ("share_of_raw", "null_share").
[[nodiscard]] nlohmann::json row_of(const Plan& plan, const ArmSample& sample);

/// What a reader of the table must know about an arm's trials: trends, warm-up not reached, load of
/// others, skipped slots.
[[nodiscard]] std::vector<std::string> arm_warnings(const Plan& plan, const ArmSample& sample);

/// Median over the trials of the time inside store calls, an operation; nothing where no trial has
/// it.
[[nodiscard]] std::optional<double> store_ns_per_operation(const ArmSample& sample);

/// {"unknown": why}
[[nodiscard]] nlohmann::json unknown(const std::string& why);

}  // namespace assay
