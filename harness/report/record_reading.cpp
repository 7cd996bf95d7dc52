#include "harness/report/record_reading.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  static const json kNothing;
  const auto found = object.find(key);
  return object.is_object() && found != object.end() ? *found : kNothing;
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? std::string() : value.dump();
}

std::uint64_t count(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_number() ? value.get<std::uint64_t>() : 0;
}

bool flag(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::optional<Interval> read_interval(const json& object) {
  const json& value = member(object, "interval");
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number()) {
    return std::nullopt;
  }
  return Interval{value[0].get<double>(), value[1].get<double>()};
}

void add_latencies(const json& phase, Trial& trial) {
  for (const auto& [operation, figures] : member(phase, "classes").items()) {
    const json& histogram = member(figures, "histogram");
    if (!histogram.is_array()) continue;
    LatencyCounts& counts = trial.latencies[operation];
    for (const json& bucket : histogram) {
      counts[bucket.at(0).get<std::uint64_t>()] += bucket.at(1).get<std::uint64_t>();
    }
  }
}

/// A point of the record counts the slot that begins at its time; it is drawn at the slot's middle.
/// The last slot is usually cut short by the end of the phase, so its rate means nothing and it is
/// left out.
void add_series(const json& phase, Trial& trial) {
  const json& series = member(phase, "series");
  if (!series.is_array() || series.size() < 3) return;
  const double step_s =
      (series[1].at("t_ms").get<double>() - series[0].at("t_ms").get<double>()) / 1e3;
  if (!(step_s > 0)) return;
  for (std::size_t i = 0; i + 1 < series.size(); ++i) {
    SeriesPoint point;
    point.t_s = series[i].at("t_ms").get<double>() / 1e3 + step_s / 2;
    point.rate_per_s = series[i].at("operations").get<double>() / step_s;
    point.p99_ns = read_quantity(series[i], "p99_ns").value;
    if (point.p99_ns == 0.0) point.p99_ns.reset();
    trial.series.push_back(point);
  }
}

void flatten_into(const json& tree, const std::string& prefix,
                  std::vector<std::pair<std::string, std::string>>& flat) {
  if (tree.is_object() && !tree.empty()) {
    if (tree.size() == 1 && tree.contains("unknown")) {
      flat.emplace_back(prefix, "unknown: " + text(tree, "unknown"));
      return;
    }
    for (const auto& [key, value] : tree.items()) {
      flatten_into(value, prefix.empty() ? key : prefix + "." + key, flat);
    }
    return;
  }
  const bool nested = tree.is_array() && !tree.empty() && tree[0].is_object();
  if (nested) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const std::string name = text(tree[i], "name");
      flatten_into(tree[i], prefix + "." + (name.empty() ? std::to_string(i) : name), flat);
    }
    return;
  }
  flat.emplace_back(prefix, tree.is_string() ? tree.get<std::string>() : tree.dump());
}

bool time_or_size(const std::string& metric, const std::string& unit) {
  return unit == "ns" || unit == "bytes" || metric.find("latency") != std::string::npos ||
         metric.ends_with("_ns") || metric.ends_with("_bytes");
}

}  // namespace

Quantity read_quantity(const json& object, const char* key) {
  const json& value = member(object, key);
  if (value.is_number()) return {value.get<double>(), {}};
  if (value.is_object() && value.contains("unknown")) return {std::nullopt, text(value, "unknown")};
  return {std::nullopt, "not recorded"};
}

namespace {

/// A gate or a control of the verdict or of a cell; nothing where there is none.
std::optional<Comparison> read_check(const json& owner, const char* key) {
  const json& record = member(owner, key);
  if (!record.is_object() || !record.contains("a")) return std::nullopt;
  Comparison check = read_comparison(record);
  check.verdict = flag(record, "ok") ? "ok" : "not ok";
  return check;
}

/// A value of a sweep as a person writes it: texts without quotes.
std::string plain(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_sweep(const json& verdict, ReportModel& model) {
  for (const json& axis : member(verdict, "sweep")) {
    SweepAxisShown shown{text(axis, "key"), text(axis, "label"), {}};
    for (const json& value : member(axis, "values")) shown.values.push_back(plain(value));
    model.axes.push_back(std::move(shown));
  }
  for (const json& record : member(verdict, "cells")) {
    SweepCell cell;
    cell.name = text(record, "name");
    for (const SweepAxisShown& axis : model.axes) {
      cell.values.push_back(plain(member(member(record, "values"), axis.key.c_str())));
    }
    cell.stream_digest = text(record, "stream_digest");
    cell.a_a = read_check(record, "a_a");
    cell.control = read_check(record, "positive_control");
    model.cells.push_back(std::move(cell));
  }
}

}  // namespace

Row read_row(const json& record) {
  Row row;
  row.arm = record.at("arm").get<std::string>();
  row.cell = text(record, "cell");
  const std::string tail = "@" + row.cell;
  const bool in_cell = !row.cell.empty() && row.arm.ends_with(tail);
  row.base = in_cell ? row.arm.substr(0, row.arm.size() - tail.size()) : row.arm;
  row.store = text(record, "store");
  // A plug-in is named by its file; the whole path, which the plan keeps, would fill the table.
  if (row.store.find('/') != std::string::npos || row.store.ends_with(".so")) {
    row.store = std::filesystem::path(row.store).stem().string();
  }
  const json& version = member(record, "version");
  if (version.is_string()) row.version = version.get<std::string>();
  row.durability = text(record, "durability");
  row.proof = text(record, "proof");
  row.proof_record = text(record, "proof_record");
  row.reference = flag(record, "reference");
  row.a_a_twin = flag(record, "a_a");
  row.control = flag(record, "positive_control");
  row.n = count(record, "n");
  row.void_trials = count(record, "void");
  row.disqualified = flag(record, "disqualified");
  row.reason = text(record, "reason");
  for (const json& value : member(record, "values")) {
    if (value.is_number()) row.values.push_back(value.get<double>());
  }
  row.interval = read_interval(record);
  const std::pair<const char*, Quantity*> figures[] = {
      {"geometric_mean", &row.geometric_mean},
      {"median", &row.median},
      {"cv", &row.cv},
      {"share_of_raw", &row.share_of_raw},
      {"p50_ns", &row.p50_ns},
      {"p90_ns", &row.p90_ns},
      {"p99_ns", &row.p99_ns},
      {"p999_ns", &row.p999_ns},
      {"max_ns", &row.max_ns},
      {"barriers_per_operation", &row.barriers_per_operation},
      {"device_bytes_per_operation", &row.device_bytes_per_operation},
      {"write_amplification", &row.write_amplification},
      {"read_amplification", &row.read_amplification},
      {"disk_bytes_per_entry", &row.disk_bytes_per_entry},
      {"rss_peak_bytes", &row.rss_peak_bytes},
      {"cpu_ns_per_operation", &row.cpu_ns_per_operation},
      {"drain_ns", &row.drain_ns},
      {"recovery_ns", &row.recovery_ns},
  };
  for (const auto& [key, figure] : figures) *figure = read_quantity(record, key);
  // What the plan aggregates to; older records have geometric means only.
  if (record.contains("value")) row.geometric_mean = read_quantity(record, "value");
  return row;
}

Comparison read_comparison(const json& record) {
  Comparison comparison;
  comparison.a = text(record, "a");
  comparison.b = text(record, "b");
  comparison.kind = text(record, "kind");
  comparison.test = text(record, "test");
  comparison.verdict = text(record, "verdict");
  comparison.claim = text(record, "claim");
  comparison.sentence = text(record, "sentence");
  comparison.ratio = read_quantity(record, "ratio");
  comparison.p = read_quantity(record, "p");
  comparison.p_adjusted = read_quantity(record, "p_adjusted");
  comparison.degrees_of_freedom = read_quantity(record, "degrees_of_freedom");
  comparison.mann_whitney_p = read_quantity(record, "mann_whitney_p");
  comparison.rank_p_smallest = read_quantity(record, "rank_p_smallest");
  comparison.interval = read_interval(record);
  comparison.disagreement = flag(record, "disagreement");
  comparison.declared = flag(record, "declared");
  comparison.rank_test = text(record, "rank_test");
  return comparison;
}

void read_raw_record(const json& raw, const std::string& measured_phase, Trial& trial) {
  const json* measured = nullptr;
  for (const json& phase : member(raw, "phases")) {
    const bool wanted = measured_phase.empty()
                            ? flag(phase, "timed") && text(phase, "kind") == "run"
                            : text(phase, "name") == measured_phase;
    if (wanted) measured = &phase;
  }
  trial.settings = flatten(member(member(raw, "store"), "settings_effective"));
  if (measured == nullptr) return;
  add_latencies(*measured, trial);
  add_series(*measured, trial);
  trial.wall_ns = read_quantity(*measured, "wall_ns");
  trial.throughput_per_s = read_quantity(*measured, "throughput_per_s");
  trial.foreign_cpu_ns = read_quantity(member(*measured, "cpu"), "foreign_ns");
}

std::vector<std::pair<std::string, std::string>> flatten(const json& tree) {
  std::vector<std::pair<std::string, std::string>> flat;
  if (tree.is_object() && !tree.empty()) flatten_into(tree, "", flat);
  return flat;
}

void read_verdict(const json& verdict, ReportModel& model) {
  model.result = verdict.at("result").get<std::string>();
  model.experiment = text(verdict, "experiment");
  model.status = text(verdict, "status");
  model.question = text(verdict, "question");
  model.outcome = text(verdict, "outcome");
  for (const json& reason : member(verdict, "void_reasons")) {
    model.void_reasons.push_back(reason.is_string() ? reason.get<std::string>() : reason.dump());
  }
  model.design = text(verdict, "design");
  model.metric = text(verdict, "metric");
  model.unit = text(verdict, "unit");
  model.workload = text(verdict, "workload");
  model.stream_digest = text(verdict, "stream_digest");
  model.n = count(verdict, "n");
  model.alpha = read_quantity(verdict, "alpha").value.value_or(0.05);
  model.mixed_durability = flag(verdict, "mixed_durability");
  model.lower_is_better = time_or_size(model.metric, model.unit);
  model.smallest_detectable_ratio = read_quantity(verdict, "smallest_detectable_ratio");
  const json& power = member(verdict, "power");
  model.trials_needed = read_quantity(power, "trials_needed");
  model.effect_percent = read_quantity(power, "effect_percent");
  model.power_source = text(power, "source");
  for (const json& row : verdict.at("rows")) model.rows.push_back(read_row(row));
  for (const json& comparison : member(verdict, "comparisons")) {
    model.comparisons.push_back(read_comparison(comparison));
  }
  model.a_a = read_check(verdict, "a_a");
  model.control = read_check(verdict, "positive_control");
  read_sweep(verdict, model);
  model.median_of_trials = text(member(verdict, "aggregation"), "of_trials") == "median";
  for (const json& warning : member(verdict, "warnings")) {
    model.warnings.push_back(warning.is_string() ? warning.get<std::string>() : warning.dump());
  }
  const double sign = model.lower_is_better ? 1.0 : -1.0;
  std::map<std::string, std::size_t> places;
  for (const SweepCell& cell : model.cells) places.emplace(cell.name, places.size());
  std::stable_sort(model.rows.begin(), model.rows.end(), [&](const Row& a, const Row& b) {
    if (a.cell != b.cell) return places[a.cell] < places[b.cell];
    if (a.reference != b.reference) return b.reference;
    if (a.disqualified != b.disqualified) return b.disqualified;
    const double unknown = std::numeric_limits<double>::infinity();
    const double left = a.geometric_mean.value ? sign * *a.geometric_mean.value : unknown;
    const double right = b.geometric_mean.value ? sign * *b.geometric_mean.value : unknown;
    return left < right;
  });
}

}  // namespace assay::report
