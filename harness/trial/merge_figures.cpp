#include "harness/trial/merge_figures.h"

#include <algorithm>

namespace assay {
namespace {

/// Smallest value that at least 99 % of the weighted values do not exceed.
std::uint64_t p99(std::vector<std::pair<std::uint64_t, std::uint64_t>> values) {
  std::ranges::sort(values);
  std::uint64_t total = 0;
  for (const auto& [value, count] : values) total += count;
  const std::uint64_t rank = total - total / 100;  // ceil(0.99 total)
  std::uint64_t seen = 0;
  for (const auto& [value, count] : values) {
    seen += count;
    if (seen >= rank) return value;
  }
  return 0;
}

}  // namespace

void merge_classes(const LatencyRecorder& recorder, Classes& classes) {
  for (std::size_t at = 0; at < kSampleClasses; ++at) {
    const Histogram* const histogram = recorder.histogram(at);
    if (histogram == nullptr) continue;
    if (!classes[at]) classes[at] = std::make_unique<Histogram>();
    classes[at]->merge(*histogram);
  }
}

void SeriesMerger::add(const LatencyRecorder& recorder) {
  slots_.resize(std::max(slots_.size(), recorder.slots().size()));
  for (std::size_t at = 0; at < recorder.slots().size(); ++at) {
    const LatencyRecorder::Slot& slot = recorder.slots()[at];
    slots_[at].operations += slot.operations;
    slots_[at].latencies.insert(slots_[at].latencies.end(), slot.latencies.begin(),
                                slot.latencies.end());
  }
  rates_.resize(std::max(rates_.size(), recorder.rates().size()));
  for (std::size_t at = 0; at < recorder.rates().size(); ++at) rates_[at] += recorder.rates()[at];
}

std::vector<RatePoint> SeriesMerger::points() const {
  std::vector<RatePoint> points;
  for (std::size_t at = 0; at < slots_.size(); ++at)
    points.push_back({at * (LatencyRecorder::kSlotNs / 1'000'000), slots_[at].operations,
                      p99(slots_[at].latencies)});
  return points;
}

std::vector<double> SeriesMerger::whole_rates() const {
  std::vector<double> rates;
  for (std::size_t at = 0; at + 1 < rates_.size(); ++at)
    rates.push_back(static_cast<double>(rates_[at]));
  return rates;
}

}  // namespace assay
