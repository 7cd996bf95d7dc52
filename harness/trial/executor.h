// The innermost loop of a trial: executes the operations of a chunk and takes one time stamp each.
//
// Keys and values are made by the stream before the chunk is executed, latencies are recorded
// after it, so that neither is inside a latency; both are inside the phase's wall time. The
// latency of operation i is stamp[i+1] - stamp[i] (closed loop), or the time from its intended
// start to its end (open loop). One Executor and one LatencyRecorder a thread; nothing is shared
// but the deadline, which any thread may move.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/store.h"
#include "harness/measure/clock.h"
#include "harness/measure/histogram.h"
#include "workloads/stream.h"

namespace assay {

inline constexpr std::uint64_t kNoDeadline = ~std::uint64_t{0};

/// What a thread has done since the last reset.
struct OperationCounts {
  std::uint64_t operations = 0;
  std::uint64_t mutations = 0;  ///< key writes: put, erase, every key of a batch
  std::uint64_t not_found = 0;  ///< reads that found nothing
  std::uint64_t logical_bytes_written = 0;
  std::uint64_t logical_bytes_read = 0;
};

class Executor {
 public:
  /// `session` and the codecs must outlive the executor.
  Executor(Session& session, const KeyCodec& keys, const ValueCodec& values);

  /// Executes the operations [from, to) of `chunk`, to - from <= kChunkOperations. Ends early after
  /// the first operation that ends at or after `deadline_ticks`, and at a failure. Returns the
  /// index behind the last operation that was acknowledged.
  std::size_t execute(const Chunk& chunk, std::size_t from, std::size_t to,
                      const std::atomic<std::uint64_t>& deadline_ticks);
  /// The same in an open loop: operation i begins no sooner than `start_ticks` plus its due time.
  /// An operation due at or after the deadline is not begun.
  std::size_t execute_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                            const std::atomic<std::uint64_t>& deadline_ticks,
                            std::uint64_t start_ticks);

  /// Of the last execute(): stamps()[i] .. stamps()[i + 1] is operation from + i; for
  /// execute_paced() the latency of operation from + i is stamps()[i + 1] - dues()[i].
  [[nodiscard]] const std::uint64_t* stamps() const { return stamps_.data(); }
  [[nodiscard]] const std::uint64_t* dues() const { return dues_.data(); }

  [[nodiscard]] const OperationCounts& counts() const { return counts_; }
  void reset_counts();
  /// Open loop: longest wait past an intended start, and operations that could not start on time.
  [[nodiscard]] std::uint64_t lag_ticks_max() const { return lag_ticks_max_; }
  [[nodiscard]] std::uint64_t late() const { return late_; }

  /// Set when the store returned an error (ErrorKind as the store gave it) or wrong data
  /// (ErrorKind::wrong_contents). The executor must not be used further.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  bool perform(const Operation& operation, const Chunk& chunk);
  bool read(const Operation& operation);
  bool perform_other(const Operation& operation, const Chunk& chunk);
  bool scan(const Operation& operation);
  bool fail_with(const Error& error, const Operation& operation);
  bool wrong(const Operation& operation, std::string_view what);

  Session& session_;
  const KeyCodec& keys_;
  const ValueCodec& values_;
  OperationCounts counts_;
  std::uint64_t lag_ticks_max_ = 0;
  std::uint64_t late_ = 0;
  std::optional<Error> failure_;
  std::array<std::uint64_t, kChunkOperations + 1> stamps_{};
  std::array<std::uint64_t, kChunkOperations> dues_{};
};

/// Histograms by operation class and the operations of each second, of one thread.
class LatencyRecorder {
 public:
  /// One slot of the series: an interval of kSlotNs.
  struct Slot {
    std::uint64_t operations = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> latencies;  ///< ns, count
  };
  static constexpr std::uint64_t kSlotNs = 1'000'000'000;
  /// Rates are kept ten times as fine, for the test of a trend.
  static constexpr std::uint64_t kRateNs = kSlotNs / 10;

  LatencyRecorder();

  /// Forgets everything; slots are counted from `start_ticks` on.
  void begin(std::uint64_t start_ticks);
  /// Records operations [from, to) of `chunk` after Executor::execute().
  void record(const Chunk& chunk, std::size_t from, std::size_t to, const std::uint64_t* stamps);
  /// Records operations [from, to) of `chunk` after Executor::execute_paced().
  void record_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                    const std::uint64_t* stamps, const std::uint64_t* dues);
  /// Closes the last slot. Call before reading the results.
  void end();

  /// Null where no operation of the class was recorded.
  [[nodiscard]] const Histogram* histogram(OpKind kind) const {
    return totals_[static_cast<std::size_t>(kind)].get();
  }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] const std::vector<std::uint64_t>& rates() const { return rates_; }

 private:
  void open_slot(std::uint64_t ticks);
  void close_slot();
  void add_one(OpKind kind, std::uint64_t end_ticks, std::uint64_t latency_ticks);
  void ensure(OpKind kind);

  const TickScale& scale_;
  std::uint64_t start_ticks_ = 0;
  std::uint64_t rate_end_ticks_ = 0;  ///< end of the current interval of kRateNs
  std::size_t slot_ = 0;
  std::size_t rate_ = 0;
  std::array<std::unique_ptr<Histogram>, kOpKinds> current_;  ///< of the slot at work
  std::array<std::unique_ptr<Histogram>, kOpKinds> totals_;   ///< of the closed slots
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> rates_;
};

/// Stream, chunk, executor and recorder of one thread, put together: what a worker thread runs and
/// what the benchmark of the harness's own cost measures.
class OperationLoop {
 public:
  OperationLoop(std::unique_ptr<Stream> stream, Session& session, const KeyCodec& keys,
                const ValueCodec& values, bool open_loop);

  /// Begins a section: counts and histograms start anew, the stream goes on. Open loop: intended
  /// starts are counted from the first section's start.
  void begin(std::uint64_t start_ticks);
  /// Executes up to `operations` operations in chunks of at most `slice`, until the deadline. With
  /// `recorded` every latency is recorded. False when the section is over: the deadline passed,
  /// the stream ended, or failure() is set.
  bool run(std::uint64_t operations, std::size_t slice,
           const std::atomic<std::uint64_t>& deadline_ticks, bool recorded);
  /// Open loop: operations due before `end_ticks` that have not been begun. Looks at the stream's
  /// next operations only when one of them is due, and consumes them: call when all is over.
  [[nodiscard]] std::uint64_t skipped(std::uint64_t end_ticks);

  [[nodiscard]] Executor& executor() { return executor_; }
  [[nodiscard]] LatencyRecorder& recorder() { return recorder_; }
  /// An error when the stream ended before its declared end (a trace whose file is gone or
  /// changed).
  [[nodiscard]] Status stream_status() const { return stream_->status(); }
  /// Operations acknowledged since the loop was made.
  [[nodiscard]] std::uint64_t executed() const { return executed_; }

 private:
  std::unique_ptr<Stream> stream_;
  Chunk chunk_;
  std::size_t next_ = 0;
  Executor executor_;
  LatencyRecorder recorder_;
  bool open_loop_;
  std::uint64_t first_start_ticks_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace assay
