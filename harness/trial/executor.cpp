#include "harness/trial/executor.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace assay {
namespace {

/// Waits until `due_ticks`: sleeps while it is far, spins for the rest, because a sleep wakes up
/// some 60 us late.
void wait_until(std::uint64_t due_ticks, const TickScale& scale) {
  constexpr std::uint64_t kSpinNs = 120'000;
  for (std::uint64_t now = ticks_now(); now < due_ticks; now = ticks_now()) {
    const std::uint64_t left_ns = scale.to_ns(due_ticks - now);
    if (left_ns > 2 * kSpinNs) {
      const std::uint64_t sleep_ns = left_ns - kSpinNs;
      const timespec pause{static_cast<time_t>(sleep_ns / 1'000'000'000),
                           static_cast<long>(sleep_ns % 1'000'000'000)};
      ::nanosleep(&pause, nullptr);
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}

/// Looks at what a scan hands over: counts the bytes and keeps the first entry's key and value
/// checked, which is cheap enough to stay inside the latency.
class CheckingSink final : public ScanSink {
 public:
  CheckingSink(const KeyCodec& keys, const ValueCodec& values) : keys_(keys), values_(values) {}
  bool entry(std::string_view key, std::string_view value) override {
    bytes_ += key.size() + value.size();
    if (first_) {
      first_ = false;
      std::uint64_t index = 0;
      right_ = keys_.decode(key, index) && values_.belongs_to(index, value);
    }
    // One byte of every page: a store that hands out views must bring in what others copy.
    for (std::size_t at = 0; at < value.size(); at += kPageBytes)
      touched_ = static_cast<char>(touched_ ^ value[at]);
    if (!value.empty()) touched_ = static_cast<char>(touched_ ^ value.back());
    return true;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool right() const { return right_; }

 private:
  const KeyCodec& keys_;
  const ValueCodec& values_;
  std::uint64_t bytes_ = 0;
  bool first_ = true;
  bool right_ = true;
  static constexpr std::size_t kPageBytes = 4096;
  volatile char touched_ = 0;  // the value must be brought into memory, as in a get
};

std::span<const Mutation> mutations_of(const Operation& operation, const Chunk& chunk) {
  return {chunk.mutations.data() + operation.first_mutation, operation.entries};
}

std::uint64_t bytes_of(std::span<const Mutation> mutations) {
  std::uint64_t bytes = 0;
  for (const Mutation& mutation : mutations) bytes += mutation.key.size() + mutation.value.size();
  return bytes;
}

}  // namespace

Executor::Executor(Session& session, const KeyCodec& keys, const ValueCodec& values,
                   std::uint32_t timed_batch)
    : session_(session), keys_(keys), values_(values), timed_batch_(timed_batch) {
  ASSAY_CHECK(timed_batch_ >= 1 && timed_batch_ <= kTimedBatchMax,
              "a plan that leaves the timed batch open has it decided before the first trial");
}

void Executor::reset_counts() {
  counts_ = {};
  lag_ticks_max_ = 0;
  late_ = 0;
}

std::size_t Executor::execute(const Chunk& chunk, std::size_t from, std::size_t to,
                              const std::atomic<std::uint64_t>& deadline_ticks) {
  ASSAY_CHECK(to - from <= kChunkOperations, "more operations than there are places for stamps");
  const std::size_t at = timed_batch_ == 1 ? execute_each(chunk, from, to, deadline_ticks)
                                           : execute_batches(chunk, from, to, deadline_ticks);
  counts_.operations += at - from;
  return at;
}

std::size_t Executor::execute_each(const Chunk& chunk, std::size_t from, std::size_t to,
                                   const std::atomic<std::uint64_t>& deadline_ticks) {
  const Operation* const operations = chunk.operations.data();
  std::uint64_t* stamp = stamps_.data();
  std::uint64_t now = ticks_now();
  *stamp = now;
  std::size_t at = from;
  while (at < to && now < deadline_ticks.load(std::memory_order_relaxed)) {
    if (!perform(operations[at], chunk)) [[unlikely]]
      break;
    now = ticks_now();
    *++stamp = now;
    ++at;
  }
  counts_.store_ticks += ticks_between(stamps_[0], now);
  return at;
}

std::size_t Executor::execute_batches(const Chunk& chunk, std::size_t from, std::size_t to,
                                      const std::atomic<std::uint64_t>& deadline_ticks) {
  const Operation* const operations = chunk.operations.data();
  std::uint64_t* stamp = stamps_.data();
  std::uint64_t now = ticks_now();
  *stamp = now;
  std::size_t at = from;
  while (at < to && now < deadline_ticks.load(std::memory_order_relaxed)) {
    const std::size_t end = std::min<std::size_t>(to, at + timed_batch_);
    while (at < end && perform(operations[at], chunk)) ++at;
    now = ticks_now();
    *++stamp = now;
    if (at < end) [[unlikely]]
      break;
  }
  counts_.store_ticks += ticks_between(stamps_[0], now);
  return at;
}

std::size_t Executor::execute_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                                    const std::atomic<std::uint64_t>& deadline_ticks,
                                    std::uint64_t start_ticks) {
  ASSAY_CHECK(to - from <= kChunkOperations, "more operations than there are places for stamps");
  const TickScale& scale = TickScale::get();
  std::uint64_t now = ticks_now();
  stamps_[0] = now;
  std::size_t at = from;
  for (; at < to; ++at) {
    const Operation& operation = chunk.operations[at];
    const std::uint64_t due = start_ticks + scale.to_ticks(operation.due_ns);
    const std::uint64_t deadline = deadline_ticks.load(std::memory_order_relaxed);
    if (due >= deadline || now >= deadline) break;
    if (now > due) {
      ++late_;
    } else {
      wait_until(due, scale);
      now = ticks_now();  // the spin ends a few ns past the due moment, a long sleep later
    }
    lag_ticks_max_ = std::max(lag_ticks_max_, ticks_between(due, now));
    const std::uint64_t begun = now;
    if (!perform(operation, chunk)) [[unlikely]]
      break;
    now = ticks_now();
    counts_.store_ticks += ticks_between(begun, now);
    dues_[at - from] = due;
    stamps_[at - from + 1] = now;
  }
  counts_.operations += at - from;
  return at;
}

inline bool Executor::read(const Operation& operation) {
  std::string_view value;
  const Result<bool> found = session_.get(operation.key, value);
  if (!found) [[unlikely]]
    return fail_with(found.error(), operation);
  if (!*found) {
    ++counts_.not_found;
    return true;
  }
  counts_.logical_bytes_read += operation.key.size() + value.size();
  if (!values_.belongs_to(operation.index, value)) [[unlikely]]
    return wrong(operation, "a get returned a value that was never written to this key");
  return true;
}

inline bool Executor::perform(const Operation& operation, const Chunk& chunk) {
  if (operation.kind == OpKind::read) return read(operation);
  if (operation.kind == OpKind::update || operation.kind == OpKind::insert) {
    const Status done = session_.put(operation.key, operation.value);
    if (!done) [[unlikely]]
      return fail_with(done.error(), operation);
    ++counts_.mutations;
    counts_.logical_bytes_written += operation.key.size() + operation.value.size();
    return true;
  }
  return perform_other(operation, chunk);
}

bool Executor::perform_other(const Operation& operation, const Chunk& chunk) {
  Status done;
  switch (operation.kind) {
    case OpKind::scan:
    case OpKind::reverse_scan:
      return scan(operation);
    case OpKind::read_modify_write:
      if (!read(operation)) return false;
      done = session_.put(operation.key, operation.value);
      counts_.mutations += 1;
      counts_.logical_bytes_written += operation.key.size() + operation.value.size();
      break;
    case OpKind::erase:
      done = session_.erase(operation.key);
      counts_.mutations += 1;
      counts_.logical_bytes_written += operation.key.size();
      break;
    case OpKind::batch:
      done = session_.apply(mutations_of(operation, chunk));
      counts_.mutations += operation.entries;
      counts_.logical_bytes_written += bytes_of(mutations_of(operation, chunk));
      break;
    case OpKind::rollback:  // writes nothing that stays, so it counts no mutation
      done = session_.rollback(mutations_of(operation, chunk));
      break;
    case OpKind::read:
    case OpKind::update:
    case OpKind::insert:
      ASSAY_CHECK(false, "the hot operations are handled by perform()");
  }
  if (!done) return fail_with(done.error(), operation);
  return true;
}

bool Executor::scan(const Operation& operation) {
  ScanRange range;
  range.limit = operation.entries;
  range.backward = operation.kind == OpKind::reverse_scan;
  if (range.backward) {
    range.last = operation.key;
    range.to_end = false;
  } else {
    range.first = operation.key;
    range.from_start = false;
  }
  CheckingSink sink(keys_, values_);
  const Result<std::uint64_t> visited = session_.scan(range, sink);
  if (!visited) return fail_with(visited.error(), operation);
  counts_.logical_bytes_read += sink.bytes();
  if (!sink.right()) return wrong(operation, "a scan returned an entry that was never written");
  if (*visited > operation.entries)
    return wrong(operation, "a scan returned more entries than its limit");
  return true;
}

bool Executor::fail_with(const Error& error, const Operation& operation) {
  Error named = error;
  named.in(fmt::format("{} of key index {}", to_string(operation.kind), operation.index));
  failure_ = std::move(named);
  return false;
}

bool Executor::wrong(const Operation& operation, std::string_view what) {
  failure_ = Error(
      ErrorKind::wrong_contents,
      fmt::format("{} of key index {}: {}", to_string(operation.kind), operation.index, what));
  return false;
}

}  // namespace assay
