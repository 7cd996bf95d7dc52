#include "harness/trial/latency_recorder.h"

#include <algorithm>

namespace assay {

LatencyRecorder::LatencyRecorder(const std::array<double, kOpKinds>& mix, std::uint32_t timed_batch)
    : scale_(TickScale::get()), timed_batch_(timed_batch) {
  std::size_t kinds = 0;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    if (mix[kind] <= 0.0) continue;
    batch_class_ = kinds++ == 0 ? kind : kMixedClass;
    if (timed_batch_ == 1) ensure(kind);
  }
  if (timed_batch_ > 1) ensure(batch_class_);
}

const Histogram* LatencyRecorder::histogram(std::size_t sample_class) const {
  const Histogram* const found = totals_[sample_class].get();
  return found != nullptr && found->count() > 0 ? found : nullptr;
}

void LatencyRecorder::begin(std::uint64_t start_ticks) {
  for (Classes* const classes : {&current_, &totals_})
    for (auto& histogram : *classes)
      if (histogram) histogram->reset();
  slots_.clear();
  rates_.clear();
  slot_ = 0;
  slot_operations_ = 0;
  clock_steps_back_ = 0;
  start_ticks_ = start_ticks;
  rates_.push_back(0);
  rate_ = 0;
  rate_end_ticks_ = start_ticks + scale_.to_ticks(kRateNs);
}

void LatencyRecorder::ensure(std::size_t sample_class) {
  current_[sample_class] = std::make_unique<Histogram>();
  if (!totals_[sample_class]) totals_[sample_class] = std::make_unique<Histogram>();
}

void LatencyRecorder::record(const Chunk& chunk, std::size_t from, std::size_t to,
                             const std::uint64_t* stamps) {
  if (from == to) return;
  const std::size_t count = to - from;
  if (timed_batch_ > 1) {
    record_batches(count, stamps);
    return;
  }
  const Operation* const operations = chunk.operations.data() + from;
  if (stamps[count] >= rate_end_ticks_) {  // the chunk crosses into another interval
    for (std::size_t i = 0; i < count; ++i)
      add_one(static_cast<std::size_t>(operations[i].kind), stamps[i], stamps[i + 1], 1);
    return;
  }
  std::uint64_t before = stamps[0];
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t after = stamps[i + 1];
    const auto kind = static_cast<std::size_t>(operations[i].kind);
    if (!current_[kind]) [[unlikely]]
      ensure(kind);
    if (clock_stepped_back(before, after)) [[unlikely]]
      ++clock_steps_back_;
    current_[kind]->record(scale_.to_ns(ticks_between(before, after)));
    before = after;
  }
  rates_[rate_] += count;
  slot_operations_ += count;
}

void LatencyRecorder::record_batches(std::size_t count, const std::uint64_t* stamps) {
  for (std::size_t i = 0; i * timed_batch_ < count; ++i)
    add_one(batch_class_, stamps[i], stamps[i + 1],
            std::min<std::size_t>(timed_batch_, count - i * timed_batch_));
}

void LatencyRecorder::record_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                                   const std::uint64_t* stamps, const std::uint64_t* dues) {
  for (std::size_t i = 0; i < to - from; ++i)
    add_one(static_cast<std::size_t>(chunk.operations[from + i].kind), dues[i], stamps[i + 1], 1);
}

void LatencyRecorder::add_one(std::size_t sample_class, std::uint64_t begin_ticks,
                              std::uint64_t end_ticks, std::uint64_t operations) {
  if (end_ticks >= rate_end_ticks_) open_slot(end_ticks);
  if (!current_[sample_class]) ensure(sample_class);
  clock_steps_back_ += clock_stepped_back(begin_ticks, end_ticks) ? 1 : 0;
  const std::uint64_t sample_ns = scale_.to_ns(ticks_between(begin_ticks, end_ticks));
  current_[sample_class]->record((sample_ns + operations / 2) / operations);
  rates_[rate_] += operations;
  slot_operations_ += operations;
}

void LatencyRecorder::open_slot(std::uint64_t ticks) {
  const std::uint64_t since_ns = scale_.to_ns(ticks_between(start_ticks_, ticks));
  rate_ = std::max<std::size_t>(rate_, std::min<std::uint64_t>(since_ns / kRateNs, kRatesMax - 1));
  rates_.resize(rate_ + 1);
  rate_end_ticks_ = start_ticks_ + scale_.to_ticks((rate_ + 1) * kRateNs);
  // Rounding may place the end at or before `ticks` by one tick; the interval must hold it.
  rate_end_ticks_ = std::max(rate_end_ticks_, ticks + 1);
  const std::size_t slot = rate_ / (kSlotNs / kRateNs);
  if (slot != slot_) {
    close_slot();
    slot_ = slot;
  }
}

void LatencyRecorder::close_slot() {
  slots_.resize(slot_ + 1);
  Slot& slot = slots_[slot_];
  slot.operations += slot_operations_;
  slot_operations_ = 0;
  for (std::size_t at = 0; at < kSampleClasses; ++at) {
    if (!current_[at] || current_[at]->count() == 0) continue;
    const auto buckets = current_[at]->buckets();
    slot.latencies.insert(slot.latencies.end(), buckets.begin(), buckets.end());
    totals_[at]->merge(*current_[at]);
    current_[at]->reset();
  }
}

void LatencyRecorder::end() {
  close_slot();
}

}  // namespace assay
