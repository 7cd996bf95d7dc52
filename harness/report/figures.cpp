#include "harness/report/figures.h"

#include <algorithm>
#include <cmath>

#include "harness/report/sweep.h"

namespace assay::report {
namespace {

/// Linear interpolation between order statistics; `values` is not empty.
double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

/// Ten points a nine, up to the quantile that the last operation stands for.
plots::Percentiles curve_of(const std::string& operation, const LatencyCounts& counts) {
  constexpr int kPointsANine = 10;
  plots::Percentiles curve{operation, {}};
  std::uint64_t total = 0;
  for (const auto& [latency, count] : counts) total += count;
  if (total == 0) return curve;
  auto bucket = counts.begin();
  std::uint64_t seen = bucket->second;
  const double nines = std::log10(static_cast<double>(total));
  for (int i = 0; i <= static_cast<int>(std::floor(nines * kPointsANine)); ++i) {
    const double q = 1.0 - std::pow(10.0, -static_cast<double>(i) / kPointsANine);
    const double wanted = q * static_cast<double>(total);
    while (static_cast<double>(seen) < wanted && std::next(bucket) != counts.end()) {
      ++bucket;
      seen += bucket->second;
    }
    curve.points.push_back({q, static_cast<double>(bucket->first)});
  }
  // The end of the curve is the largest latency of all.
  const double last = 1.0 - 1.0 / static_cast<double>(total);
  curve.points.push_back({last, static_cast<double>(counts.rbegin()->first)});
  return curve;
}

std::vector<plots::Slot> series_of(const std::vector<const Trial*>& trials) {
  std::size_t longest = 0;
  for (const Trial* trial : trials) longest = std::max(longest, trial->series.size());
  std::vector<plots::Slot> slots;
  for (std::size_t i = 0; i < longest; ++i) {
    std::vector<double> times;
    std::vector<double> rates;
    std::vector<double> p99s;
    for (const Trial* trial : trials) {
      if (i >= trial->series.size()) continue;
      times.push_back(trial->series[i].t_s);
      rates.push_back(trial->series[i].rate_per_s);
      if (trial->series[i].p99_ns) p99s.push_back(*trial->series[i].p99_ns);
    }
    if (rates.size() * 2 < trials.size()) break;
    plots::Slot slot;
    slot.t_s = quantile(times, 0.5);
    slot.rate_low = quantile(rates, 0.25);
    slot.rate_median = quantile(rates, 0.5);
    slot.rate_high = quantile(rates, 0.75);
    if (!p99s.empty()) {
      slot.p99_low_ns = quantile(p99s, 0.25);
      slot.p99_median_ns = quantile(p99s, 0.5);
      slot.p99_high_ns = quantile(p99s, 0.75);
    }
    slots.push_back(slot);
  }
  return slots;
}

plots::Arm arm_of(const ReportModel& model, const Row& row) {
  plots::Arm arm;
  arm.name = row.arm;
  arm.store = row.store;
  arm.version = row.version;
  arm.durability = durability_text(row);
  arm.reference = row.reference;
  arm.centre = row.geometric_mean.value;
  if (row.interval) {
    arm.low = row.interval->low;
    arm.high = row.interval->high;
  }
  arm.values = row.values;
  arm.bytes_per_entry = row.disk_bytes_per_entry.value;
  arm.write_amplification = row.write_amplification.value;
  arm.barriers_per_operation = row.barriers_per_operation.value;
  arm.cpu_ns_per_operation = row.cpu_ns_per_operation.value;
  std::vector<const Trial*> trials;
  std::map<std::string, LatencyCounts> merged;
  for (const Trial& trial : model.trials) {
    if (trial.arm != row.arm || trial.status != "ok") continue;
    // A curve of some of the trials would pass for one of all.
    if (trial.raw_missing) return arm;
    trials.push_back(&trial);
    for (const auto& [operation, counts] : trial.latencies) {
      for (const auto& [latency, count] : counts) merged[operation][latency] += count;
    }
  }
  for (const auto& [operation, counts] : merged) {
    arm.latencies.push_back(curve_of(operation, counts));
  }
  arm.series = series_of(trials);
  return arm;
}

}  // namespace

plots::FigureSet figure_set(const ReportModel& model) {
  plots::FigureSet set;
  set.stamp.experiment = model.experiment;
  set.stamp.workload = model.workload;
  set.stamp.status = model.status;
  set.stamp.date = model.verdict_time.substr(0, 10);
  set.stamp.hash = model.verdict_hash;
  set.stamp.n = model.n;
  set.stamp.confidence = 1.0 - model.alpha;
  set.stamp.mixed_durability = model.mixed_durability;
  set.metric = model.metric;
  set.unit = model.unit;
  if (!model.cells.empty()) {
    add_sweep_figures(model, set);
    return set;
  }
  if (!missing_raws_text(model).empty()) set.no_curves = "raw records are missing";
  for (const Row& row : model.rows) {
    if (!row.disqualified) set.arms.push_back(arm_of(model, row));
  }
  return set;
}

}  // namespace assay::report
