#include "harness/trial/operation_loop.h"

#include <algorithm>
#include <utility>

namespace assay {

OperationLoop::OperationLoop(const Workload& workload, std::uint64_t seed, std::size_t phase,
                             std::uint32_t thread, Session& session, const KeyCodec& keys,
                             const ValueCodec& values)
    : OperationLoop(workload, seed, phase, thread, session, keys, values,
                    make_stream(workload, seed, phase, thread)) {}

OperationLoop::OperationLoop(const Workload& workload, std::uint64_t seed, std::size_t phase,
                             std::uint32_t thread, Session& session, const KeyCodec& keys,
                             const ValueCodec& values, std::unique_ptr<Stream> stream)
    : stream_(std::move(stream)),
      executor_(session, keys, values, workload.phases.at(phase).timed_batch),
      recorder_(role_of(workload.phases.at(phase), thread).mix,
                workload.phases.at(phase).timed_batch),
      digest_(workload, seed, phase),
      open_loop_(role_of(workload.phases.at(phase), thread).arrival.rate_per_s > 0.0) {
  const std::uint32_t timed_batch = workload.phases.at(phase).timed_batch;
  fill_ = kChunkOperations / timed_batch * timed_batch;
}

void OperationLoop::begin(std::uint64_t start_ticks) {
  if (first_start_ticks_ == 0) first_start_ticks_ = start_ticks;
  executor_.reset_counts();
  recorder_.begin(start_ticks);
}

bool OperationLoop::next_chunk() {
  if (spare_ready_)
    std::swap(chunk_, spare_);
  else
    stream_->fill(chunk_, fill_);
  spare_ready_ = false;
  next_ = 0;
  return !chunk_.operations.empty();
}

void OperationLoop::refill(std::uint64_t operations) {
  const std::size_t left = chunk_.operations.size() - next_;
  if (left == 0) {
    next_chunk();
    return;
  }
  if (spare_ready_ || left >= std::min<std::uint64_t>(operations, fill_)) return;
  stream_->fill(spare_, fill_);
  spare_ready_ = true;
}

std::size_t OperationLoop::until_refill() const {
  return next_ < chunk_.operations.size() ? chunk_.operations.size() - next_ : fill_;
}

bool OperationLoop::run(std::uint64_t operations, std::size_t slice,
                        const std::atomic<std::uint64_t>& deadline_ticks, bool recorded) {
  const std::size_t largest = std::min(slice, kChunkOperations);
  while (operations > 0) {
    if (next_ == chunk_.operations.size() && !next_chunk()) return false;
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
    if (!digest_.full()) digest_.add(chunk_, next_, reached);
    const std::size_t done = reached - next_;
    executed_ += done;
    operations -= done;
    next_ = reached;
    if (reached != end) return false;
  }
  return true;
}

std::uint64_t OperationLoop::skipped(std::uint64_t end_ticks) {
  const std::uint64_t end_ns = TickScale::get().to_ns(ticks_between(first_start_ticks_, end_ticks));
  std::uint64_t count = 0;
  for (;;) {
    if (next_ == chunk_.operations.size() && !next_chunk()) return count;
    if (chunk_.operations[next_].due_ns >= end_ns) return count;
    ++next_;
    ++count;
  }
}

}  // namespace assay
