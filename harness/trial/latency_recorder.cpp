#include <algorithm>

#include "harness/trial/executor.h"

namespace assay {

LatencyRecorder::LatencyRecorder() : scale_(TickScale::get()) {}

void LatencyRecorder::begin(std::uint64_t start_ticks) {
  for (auto& histogram : current_) histogram.reset();
  for (auto& histogram : totals_) histogram.reset();
  slots_.clear();
  rates_.clear();
  slot_ = 0;
  start_ticks_ = start_ticks;
  rates_.push_back(0);
  rate_ = 0;
  rate_end_ticks_ = start_ticks + scale_.to_ticks(kRateNs);
}

void LatencyRecorder::ensure(OpKind kind) {
  const auto at = static_cast<std::size_t>(kind);
  current_[at] = std::make_unique<Histogram>();
  if (!totals_[at]) totals_[at] = std::make_unique<Histogram>();
}

void LatencyRecorder::record(const Chunk& chunk, std::size_t from, std::size_t to,
                             const std::uint64_t* stamps) {
  if (from == to) return;
  const std::size_t count = to - from;
  const Operation* const operations = chunk.operations.data() + from;
  if (stamps[count] >= rate_end_ticks_) {  // the chunk crosses into another interval
    for (std::size_t i = 0; i < count; ++i)
      add_one(operations[i].kind, stamps[i + 1], stamps[i + 1] - stamps[i]);
    return;
  }
  std::uint64_t before = stamps[0];
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t after = stamps[i + 1];
    const auto kind = static_cast<std::size_t>(operations[i].kind);
    if (!current_[kind]) [[unlikely]]
      ensure(operations[i].kind);
    current_[kind]->record(scale_.to_ns(after - before));
    before = after;
  }
  rates_[rate_] += count;
}

void LatencyRecorder::record_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                                   const std::uint64_t* stamps, const std::uint64_t* dues) {
  for (std::size_t i = 0; i < to - from; ++i)
    add_one(chunk.operations[from + i].kind, stamps[i + 1], stamps[i + 1] - dues[i]);
}

void LatencyRecorder::add_one(OpKind kind, std::uint64_t end_ticks, std::uint64_t latency_ticks) {
  if (end_ticks >= rate_end_ticks_) open_slot(end_ticks);
  const auto at = static_cast<std::size_t>(kind);
  if (!current_[at]) ensure(kind);
  current_[at]->record(scale_.to_ns(latency_ticks));
  ++rates_[rate_];
}

void LatencyRecorder::open_slot(std::uint64_t ticks) {
  const std::uint64_t since_ns = scale_.to_ns(ticks - start_ticks_);
  rate_ = since_ns / kRateNs;
  rates_.resize(rate_ + 1);
  rate_end_ticks_ = start_ticks_ + scale_.to_ticks((rate_ + 1) * kRateNs);
  // Rounding may place the end at or before `ticks` by one tick; the interval must hold it.
  rate_end_ticks_ = std::max(rate_end_ticks_, ticks + 1);
  if (since_ns / kSlotNs != slot_) {
    close_slot();
    slot_ = since_ns / kSlotNs;
  }
}

void LatencyRecorder::close_slot() {
  slots_.resize(slot_ + 1);
  Slot& slot = slots_[slot_];
  for (std::size_t at = 0; at < kOpKinds; ++at) {
    if (!current_[at] || current_[at]->count() == 0) continue;
    slot.operations += current_[at]->count();
    const auto buckets = current_[at]->buckets();
    slot.latencies.insert(slot.latencies.end(), buckets.begin(), buckets.end());
    totals_[at]->merge(*current_[at]);
    current_[at]->reset();
  }
}

void LatencyRecorder::end() {
  close_slot();
}

OperationLoop::OperationLoop(std::unique_ptr<Stream> stream, Session& session, const KeyCodec& keys,
                             const ValueCodec& values, bool open_loop)
    : stream_(std::move(stream)), executor_(session, keys, values), open_loop_(open_loop) {}

void OperationLoop::begin(std::uint64_t start_ticks) {
  if (first_start_ticks_ == 0) first_start_ticks_ = start_ticks;
  executor_.reset_counts();
  recorder_.begin(start_ticks);
}

bool OperationLoop::run(std::uint64_t operations, std::size_t slice,
                        const std::atomic<std::uint64_t>& deadline_ticks, bool recorded) {
  const std::size_t largest = std::min(slice, kChunkOperations);
  while (operations > 0) {
    if (next_ == chunk_.operations.size()) {
      stream_->fill(chunk_);
      next_ = 0;
      if (chunk_.operations.empty()) return false;
    }
    const std::size_t end =
        next_ + static_cast<std::size_t>(std::min<std::uint64_t>(
                    operations, std::min(largest, chunk_.operations.size() - next_)));
    const std::size_t reached =
        open_loop_ ? executor_.execute_paced(chunk_, next_, end, deadline_ticks, first_start_ticks_)
                   : executor_.execute(chunk_, next_, end, deadline_ticks);
    if (recorded) {
      if (open_loop_)
        recorder_.record_paced(chunk_, next_, reached, executor_.stamps(), executor_.dues());
      else
        recorder_.record(chunk_, next_, reached, executor_.stamps());
    }
    const std::size_t done = reached - next_;
    executed_ += done;
    operations -= done;
    next_ = reached;
    if (reached != end) return false;
  }
  return true;
}

std::uint64_t OperationLoop::skipped(std::uint64_t end_ticks) {
  const std::uint64_t end_ns = TickScale::get().to_ns(end_ticks - first_start_ticks_);
  std::uint64_t count = 0;
  for (;;) {
    if (next_ == chunk_.operations.size()) {
      stream_->fill(chunk_);
      next_ = 0;
      if (chunk_.operations.empty()) return count;
    }
    if (chunk_.operations[next_].due_ns >= end_ns) return count;
    ++next_;
    ++count;
  }
}

}  // namespace assay
