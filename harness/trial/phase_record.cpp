#include "harness/trial/phase_record.h"

#include <numeric>

#include <nlohmann/json.hpp>

#include "harness/stats/stats.h"
#include "harness/trial/worker_request.h"

namespace assay {
namespace {

nlohmann::json class_record(const Histogram& histogram, bool with_buckets) {
  nlohmann::json record{{"count", histogram.count()},
                        {"mean_ns", histogram.mean()},
                        {"p50_ns", histogram.value_at(0.5)},
                        {"p90_ns", histogram.value_at(0.9)},
                        {"p99_ns", histogram.value_at(0.99)},
                        {"p999_ns", histogram.value_at(0.999)},
                        {"p9999_ns", histogram.value_at(0.9999)},
                        {"max_ns", histogram.max()}};
  if (with_buckets) {
    nlohmann::json& buckets = record["histogram"] = nlohmann::json::array();
    for (const auto& [value, count] : histogram.buckets()) buckets.push_back({value, count});
  }
  return record;
}

nlohmann::json classes_record(const Classes& classes, bool with_buckets) {
  nlohmann::json record = nlohmann::json::object();
  for (std::size_t at = 0; at < kSampleClasses; ++at) {
    if (!classes[at]) continue;
    const std::string name(at == kMixedClass   ? "mixed"
                           : at == kTableClass ? "table"
                                               : to_string(static_cast<OpKind>(at)));
    record[name] = class_record(*classes[at], with_buckets);
  }
  return record;
}

nlohmann::json streams_record(const std::vector<StreamPrefix>& streams) {
  nlohmann::json record = nlohmann::json::array();
  for (const StreamPrefix& prefix : streams)
    record.push_back({{"operations", prefix.operations}, {"digest", prefix.digest}});
  return record;
}

double per_second(std::uint64_t operations, std::uint64_t ns) {
  return ns == 0 ? 0.0 : static_cast<double>(operations) * 1e9 / static_cast<double>(ns);
}

}  // namespace

nlohmann::json trend_record(const std::vector<double>& rates) {
  // The normal approximation of the test's distribution is good from about ten values on.
  constexpr std::size_t kFewest = 10;
  if (rates.size() < kFewest) {
    const nlohmann::json why =
        unknown_figure("the timed part is shorter than ten intervals of 100 ms");
    return {{"relative_change", why}, {"p", why}, {"flagged", false}};
  }
  // Pairs grow with the square of the values: long phases are tested over wider intervals.
  constexpr std::size_t kMost = 600;
  std::vector<double> values;
  const std::size_t width = (rates.size() + kMost - 1) / kMost;
  for (std::size_t at = 0; at + width <= rates.size(); at += width)
    values.push_back(std::accumulate(rates.begin() + static_cast<std::ptrdiff_t>(at),
                                     rates.begin() + static_cast<std::ptrdiff_t>(at + width), 0.0));
  const stats::Trend trend = stats::mann_kendall(values);
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  const double change = mean > 0.0 ? trend.slope * (n - 1.0) / mean : 0.0;
  return {{"relative_change", change},
          {"p", trend.p},
          {"flagged", trend.p < 0.05 && (change > 0.05 || change < -0.05)}};
}

nlohmann::json cache_record(const Phase& phase, const CacheFigures& figures) {
  nlohmann::json record{{"policy", to_string(phase.cache)}};
  record["resident_fraction"] = figures.resident_fraction
                                    ? nlohmann::json(*figures.resident_fraction)
                                    : unknown_figure(figures.why_unknown);
  record["resident_bytes"] = figures.resident_fraction ? nlohmann::json(figures.resident_bytes)
                                                       : unknown_figure(figures.why_unknown);
  if (!figures.not_done.empty()) record["not_done"] = figures.not_done;
  return record;
}

nlohmann::json phase_record(const Phase& phase, const PhaseFigures& figures) {
  nlohmann::json record{{"name", phase.name},
                        {"kind", to_string(phase.kind)},
                        {"timed", phase.timed},
                        {"wall_ns", figures.wall_ns},
                        {"operations", figures.operations},
                        {"mutations", figures.mutations},
                        {"failed", 0},  // a failed operation makes the trial void
                        {"not_found", figures.not_found},
                        {"throughput_per_s", per_second(figures.operations, figures.wall_ns)},
                        {"store_ns", figures.store.ns},
                        {"store_rate_per_s", figures.store.rate_per_s},
                        {"operations_per_sample", phase.timed_batch},
                        {"clock_steps_back", figures.clock_steps_back},
                        {"executed", figures.executed},
                        {"streams", streams_record(figures.streams)},
                        {"classes", classes_record(figures.classes, true)},
                        {"logical_bytes_written", figures.logical_bytes_written},
                        {"logical_bytes_read", figures.logical_bytes_read}};
  nlohmann::json& roles = record["roles"] = nlohmann::json::object();
  for (const RoleFigures& role : figures.roles)
    roles[role.name] = {{"operations", role.operations},
                        {"throughput_per_s", per_second(role.operations, figures.wall_ns)},
                        {"store_ns", role.store.ns},
                        {"store_rate_per_s", role.store.rate_per_s},
                        {"background", role.background},
                        {"classes", classes_record(role.classes, false)}};
  if (phase.kind == PhaseKind::restart) record["how"] = to_string(phase.how);
  if (phase.kind == PhaseKind::run || phase.kind == PhaseKind::table)
    record["warm_up"] = {{"policy", to_string(phase.warm_up.policy)},
                         {"operations", figures.warm_up.operations},
                         {"wall_ns", figures.warm_up.wall_ns},
                         {"reached", figures.warm_up.reached}};
  if (phase.kind != PhaseKind::run) return record;
  nlohmann::json& series = record["series"] = nlohmann::json::array();
  for (const RatePoint& point : figures.series)
    series.push_back(
        {{"t_ms", point.t_ms}, {"operations", point.operations}, {"p99_ns", point.p99_ns}});
  if (figures.open_loop.open_loop)
    record["open_loop"] = {{"lag_max_ns", figures.open_loop.lag_ns_max},
                           {"late", figures.open_loop.late},
                           {"skipped", figures.open_loop.skipped}};
  record["trend"] = trend_record(figures.rates);
  return record;
}

}  // namespace assay
