#include "harness/experiment/arm_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "harness/experiment/plan_check.h"
#include "harness/stats/stats.h"

namespace assay {
namespace {

using nlohmann::json;

const json kNothing;
constexpr double kForeignWallNsMin = 1e8;

const json& member(const json& object, std::string_view key) {
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

/// The number at a dotted path, or nothing.
std::optional<double> number_at(const json& from, std::string_view path) {
  const json* here = &from;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    here = &member(*here, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (!here->is_number()) return std::nullopt;
  return here->get<double>();
}

/// The reason at a dotted path that holds {"unknown": why}.
std::string why_unknown(const json& from, std::string_view path) {
  const json* here = &from;
  while (!path.empty() && here->is_object()) {
    const json& why = member(*here, "unknown");
    if (why.is_string()) return why.get<std::string>();
    const std::size_t dot = path.find('.');
    here = &member(*here, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  const json& why = member(*here, "unknown");
  return why.is_string() ? why.get<std::string>() : "not recorded";
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

using Figure = std::function<std::optional<double>(const json& raw)>;

/// Median over the trials of one figure; unknown when no trial has it.
json median_figure(const ArmSample& sample, const Figure& figure, const std::string& why) {
  std::vector<double> values;
  for (const json& raw : sample.raws) {
    if (const auto value = figure(raw)) values.push_back(*value);
  }
  return values.empty() ? unknown(why) : json(median_of(std::move(values)));
}

std::optional<double> per_operation(const json& phase, std::optional<double> total) {
  const auto operations = number_at(phase, "operations");
  if (!total || !operations || *operations <= 0.0) return std::nullopt;
  return *total / *operations;
}

constexpr std::array<const char*, 6> kBarriers = {"fsync",           "fdatasync",    "msync",
                                                  "sync_file_range", "dsync_writes", "syncfs"};

std::optional<double> barriers_of(const json& phase) {
  double total = 0.0;
  for (const char* kind : kBarriers) {
    const auto count = number_at(member(phase, "barriers"), kind);
    if (!count) return std::nullopt;
    total += *count;
  }
  return total;
}

/// Quantile of all operations of all trials.
json pooled_quantile(const ArmSample& sample, double quantile) {
  std::uint64_t total = 0;
  for (const auto& [value, count] : sample.latency_counts) total += count;
  if (total == 0) return unknown("no latency histogram was recorded");
  const double wanted = quantile * static_cast<double>(total);
  std::uint64_t seen = 0;
  for (const auto& [value, count] : sample.latency_counts) {
    seen += count;
    if (static_cast<double>(seen) >= wanted) return value;
  }
  return sample.latency_counts.rbegin()->first;
}

json pooled_max(const ArmSample& sample) {
  if (sample.latency_counts.empty()) return unknown("no latency histogram was recorded");
  return sample.latency_ns_max > 0.0 ? json(sample.latency_ns_max)
                                     : json(sample.latency_counts.rbegin()->first);
}

/// Every store that keeps anything is opened again, at the latest to be validated.
std::string why_no_recovery(const json& raw) {
  const json& why = member(member(raw, "validation"), "unknown");
  return why.is_string() ? "not opened again: " + why.get<std::string>()
                         : "no opening after the run was recorded";
}

void add_resources(const Plan& plan, const ArmSample& sample, json& row) {
  const auto phase = [&plan](const json& raw) -> const json& {
    return measured_figures(plan, raw);
  };
  const json& first = sample.raws.empty() ? kNothing : sample.raws.front();
  const json& first_phase = phase(first);
  row["barriers_per_operation"] = median_figure(
      sample, [&](const json& raw) { return per_operation(phase(raw), barriers_of(phase(raw))); },
      why_unknown(first_phase, "barriers.fdatasync"));
  row["device_bytes_per_operation"] = median_figure(
      sample,
      [&](const json& raw) {
        return per_operation(phase(raw), number_at(phase(raw), "io.device_write_bytes"));
      },
      why_unknown(first_phase, "io.device_write_bytes"));
  // Bytes at the device for each of the user's.
  const auto amplification = [&](const char* device, const char* logical, const char* nothing) {
    return median_figure(
        sample,
        [&](const json& raw) -> std::optional<double> {
          const auto moved = number_at(phase(raw), device);
          const auto meant = number_at(phase(raw), logical);
          if (!moved || !meant || *meant <= 0.0) return std::nullopt;
          return *moved / *meant;
        },
        number_at(first_phase, logical).value_or(1.0) <= 0.0 ? std::string(nothing)
                                                             : why_unknown(first_phase, device));
  };
  row["write_amplification"] = amplification("io.device_write_bytes", "logical_bytes_written",
                                             "nothing is written in the measured phase");
  row["read_amplification"] = amplification("io.device_read_bytes", "logical_bytes_read",
                                            "nothing is read in the measured phase");
  row["disk_bytes_per_entry"] = median_figure(
      sample,
      [](const json& raw) -> std::optional<double> {
        const auto bytes = number_at(raw, "space.allocated_bytes");
        const auto entries = number_at(raw, "space.entries");
        if (!bytes || !entries || *entries <= 0.0) return std::nullopt;
        return *bytes / *entries;
      },
      why_unknown(first, "space.entries"));
  row["rss_peak_bytes"] = median_figure(
      sample, [&](const json& raw) { return number_at(phase(raw), "rss.peak_bytes"); },
      why_unknown(first_phase, "rss.peak_bytes"));
  row["cpu_ns_per_operation"] = median_figure(
      sample,
      [&](const json& raw) -> std::optional<double> {
        const auto user = number_at(phase(raw), "cpu.user_ns");
        const auto system = number_at(phase(raw), "cpu.system_ns");
        if (!user || !system) return std::nullopt;
        return per_operation(phase(raw), *user + *system);
      },
      why_unknown(first_phase, "cpu.user_ns"));
  const auto store_ns = store_ns_per_operation(sample);
  row["store_ns_per_operation"] =
      store_ns ? json(*store_ns) : unknown(why_unknown(first_phase, "store_ns"));
  row["store_rate_per_s"] = median_figure(
      sample, [&](const json& raw) { return number_at(phase(raw), "store_rate_per_s"); },
      why_unknown(first_phase, "store_rate_per_s"));
  row["operations_per_sample"] = median_figure(
      sample, [&](const json& raw) { return number_at(phase(raw), "operations_per_sample"); },
      why_unknown(first_phase, "operations_per_sample"));
  const json& table = member(first_phase, "table");
  for (const char* key : {"rows_touched", "access_path_digest", "checksum"}) {
    if (!member(table, key).is_null()) row[key] = member(table, key);
  }
  row["drain_ns"] = median_figure(
      sample, [](const json& raw) { return number_at(raw, "drain_ns"); },
      why_unknown(first, "drain_ns"));
  row["recovery_ns"] = median_figure(
      sample,
      [](const json& raw) -> std::optional<double> {
        const json& all = member(raw, "recovery_ns");
        if (!all.is_array() || all.empty() || !all[0].is_number()) return std::nullopt;
        return all[0].get<double>();
      },
      why_no_recovery(first));
}

}  // namespace

json unknown(const std::string& why) {
  return {{"unknown", why}};
}

void add_record(const Plan& plan, json raw, ArmSample& sample) {
  const json& phase_figures = measured_figures(plan, raw);
  if (const auto ns = per_operation(phase_figures, number_at(phase_figures, "store_ns")))
    sample.store_ns.push_back(*ns);
  const json& measured = member(measured_figures(plan, raw), "classes");
  if (measured.is_object()) {
    for (const auto& [name, figures] : measured.items()) {
      const json& histogram = member(figures, "histogram");
      if (!histogram.is_array()) continue;
      for (const json& bucket : histogram) {
        sample.latency_counts[bucket.at(0).get<std::uint64_t>()] +=
            bucket.at(1).get<std::uint64_t>();
      }
      sample.latency_ns_max =
          std::max(sample.latency_ns_max, number_at(figures, "max_ns").value_or(0.0));
    }
  }
  // A hundred trials of full histograms would be hundreds of megabytes.
  if (const auto phases = raw.find("phases"); phases != raw.end() && phases->is_array()) {
    for (json& phase : *phases) {
      phase.erase("series");
      if (!member(phase, "classes").is_object()) continue;
      for (auto& [name, figures] : phase["classes"].items()) {
        if (figures.is_object()) figures.erase("histogram");
      }
    }
  }
  sample.raws.push_back(std::move(raw));
}

std::optional<double> store_ns_per_operation(const ArmSample& sample) {
  if (sample.store_ns.empty()) return std::nullopt;
  return median_of(sample.store_ns);
}

const json& measured_figures(const Plan& plan, const json& raw) {
  const Phase* wanted = measured_phase(plan.workload);
  const json& phases = member(raw, "phases");
  if (wanted == nullptr || !phases.is_array()) return kNothing;
  for (const json& phase : phases) {
    if (member(phase, "name") == wanted->name) return phase;
  }
  return kNothing;
}

namespace {

const json& phase_named(const json& raw, const std::string& name) {
  for (const json& phase : member(raw, "phases")) {
    if (member(phase, "name") == name) return phase;
  }
  return kNothing;
}

std::optional<double> rate_of_windows(const Plan& plan, const json& phase) {
  std::vector<double> rates;
  double log_sum = 0.0;
  for (const json& one : member(phase, "windows")) {
    rates.push_back(one.is_number() ? one.get<double>() : 0.0);
    if (!(rates.back() > 0.0)) return std::nullopt;
    log_sum += std::log(rates.back());
  }
  if (rates.empty()) return std::nullopt;
  if (plan.aggregation.of_process == ProcessValue::median_of_windows) return median_of(rates);
  return std::exp(log_sum / static_cast<double>(rates.size()));
}

/// A declared drain is inside the timer: debt that is left behind is not speed.
std::optional<double> rate_of_phase(const json& phase) {
  const auto with_drain = number_at(phase, "throughput_with_drain_per_s");
  return with_drain ? with_drain : number_at(phase, "throughput_per_s");
}

/// `figure` of the measured phase, or the median over the restart-hot runs that count; nothing when
/// one of them lacks it.
template <class FigureOfPhase>
std::optional<double> over_phases(const Plan& plan, const json& raw, const FigureOfPhase& figure) {
  if (plan.aggregation.of_process != ProcessValue::restart_hot) {
    return figure(measured_figures(plan, raw));
  }
  std::vector<double> values;
  const std::vector<std::string>& phases = plan.aggregation.phases;
  for (std::size_t i = plan.aggregation.warm_up_runs; i < phases.size(); ++i) {
    const auto value = figure(phase_named(raw, phases[i]));
    if (!value || !(*value > 0.0)) return std::nullopt;
    values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return median_of(std::move(values));
}

}  // namespace

std::optional<double> throughput_of(const Plan& plan, const json& raw) {
  return over_phases(plan, raw, [&](const json& phase) {
    return plan.design == Design::windows ? rate_of_windows(plan, phase) : rate_of_phase(phase);
  });
}

std::optional<double> metric_of(const Plan& plan, const json& raw) {
  if (!plan.metric.latency) return throughput_of(plan, raw);
  return over_phases(plan, raw, [&](const json& phase) {
    return number_at(member(member(phase, "classes"), plan.metric.operation_class),
                     plan.metric.percentile + "_ns");
  });
}

namespace {

/// The figure that stands for an arm and its interval, as the plan aggregates.
void add_value(const Plan& plan, const ArmSample& sample, json& row) {
  if (sample.values.size() < 2) {
    for (const char* key : {"geometric_mean", "value", "interval", "median", "cv"}) {
      row[key] = unknown("fewer than two values");
    }
    return;
  }
  const auto mean = stats::geometric_mean(sample.values, 1.0 - plan.alpha);
  const auto summary = stats::summarize(sample.values);
  row["geometric_mean"] = mean.value;
  row["median"] = summary.median;
  row["cv"] = summary.standard_deviation / summary.mean;
  row["value"] = plan.aggregation.median_of_trials ? summary.median : mean.value;
  row["interval"] = {mean.low, mean.high};
  if (!plan.aggregation.median_of_trials) return;
  std::vector<double> logs;
  for (const double value : sample.values) logs.push_back(std::log(value));
  const std::vector<double> zeros(logs.size(), 0.0);
  const auto shift = stats::rank_shift(logs, zeros, 1.0 - plan.alpha, true);
  row["interval"] = std::isfinite(shift.low)
                        ? json{std::exp(shift.low), std::exp(shift.high)}
                        : unknown("so few values give no interval of a median");
}

}  // namespace

json row_of(const Plan& plan, const ArmSample& sample) {
  const DurabilityClass declared = sample.arm->durability;
  const DurabilityClass given = sample.arm->weakened_to.value_or(declared);
  const std::string proof = given == declared ? "declared"
                                              : fmt::format("declared {}, settings give {}",
                                                            to_string(declared), to_string(given));
  json row = {{"arm", sample.arm->name},
              {"store", sample.arm->store},
              {"durability", to_string(given)},
              {"proof", proof},
              {"reference", sample.arm->reference},
              {"a_a", !plan.a_a_twin.empty() && sample.arm->name == plan.a_a_twin},
              {"positive_control",
               !plan.control.delayed.empty() && sample.arm->name == plan.control.delayed},
              {"n", sample.values.size()},
              {"values", sample.values}};
  if (!sample.arm->cell.empty()) row["cell"] = sample.arm->cell;
  const json& store = sample.raws.empty() ? kNothing : member(sample.raws.front(), "store");
  const json& version = member(store, "version");
  row["version"] = version.is_null() ? unknown("no trial was recorded") : version;
  add_value(plan, sample, row);
  row["p50_ns"] = pooled_quantile(sample, 0.50);
  row["p90_ns"] = pooled_quantile(sample, 0.90);
  row["p99_ns"] = pooled_quantile(sample, 0.99);
  row["p999_ns"] = pooled_quantile(sample, 0.999);
  row["max_ns"] = pooled_max(sample);
  add_resources(plan, sample, row);
  return row;
}

std::vector<std::string> arm_warnings(const Plan& plan, const ArmSample& sample) {
  std::size_t trends = 0;
  std::size_t cold = 0;
  double foreign_cpus = 0.0;
  std::size_t long_enough = 0;
  double skipped = 0.0;
  std::size_t left_running = 0;
  for (const json& raw : sample.raws) {
    left_running += raw.contains("left_running") ? 1 : 0;
    const json& phase = measured_figures(plan, raw);
    trends += member(member(phase, "trend"), "flagged") == true ? 1 : 0;
    cold += member(member(phase, "warm_up"), "reached") == false ? 1 : 0;
    const double wall_ns = number_at(phase, "wall_ns").value_or(0.0);
    // The kernel counts CPU time in steps of 10 ms: shorter phases say nothing.
    if (wall_ns >= kForeignWallNsMin) {
      foreign_cpus += number_at(phase, "cpu.foreign_user_ns")
                          .or_else([&] { return number_at(phase, "cpu.foreign_ns"); })
                          .value_or(0.0) /
                      wall_ns;
      ++long_enough;
    }
    skipped += number_at(phase, "open_loop.skipped").value_or(0.0);
  }
  std::vector<std::string> warnings;
  const std::string& arm = sample.arm->name;
  const std::size_t n = sample.raws.size();
  if (trends > 0) {
    warnings.push_back(fmt::format("{}: the rate drifted during the timed phase in {} of {} trials",
                                   arm, trends, n));
  }
  if (cold > 0) {
    warnings.push_back(fmt::format("{}: warm-up was not reached in {} of {} trials", arm, cold, n));
  }
  const double mean_foreign =
      long_enough == 0 ? 0.0 : foreign_cpus / static_cast<double>(long_enough);
  if (mean_foreign > 0.25) {
    warnings.push_back(fmt::format("{}: other processes used {:.1f} CPUs on average meanwhile", arm,
                                   mean_foreign));
  }
  if (skipped > 0.0) {
    warnings.push_back(fmt::format("{}: {:.0f} slots of the open loop were skipped", arm, skipped));
  }
  if (left_running > 0) {
    warnings.push_back(fmt::format(
        "{}: processes that the store had left running were killed after {} of {} trials", arm,
        left_running, n));
  }
  return warnings;
}

}  // namespace assay
