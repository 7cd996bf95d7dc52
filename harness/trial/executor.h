// The innermost loop of a trial: executes the operations of a chunk and takes one time stamp each.
//
// Keys and values are made by the stream before the chunk is executed, latencies are recorded
// after it, so that neither is inside a latency; both are inside the phase's wall time, neither is
// in the store time. The latency of operation i is stamp[i+1] - stamp[i] (closed loop), or the time
// from its intended start to its end (open loop). With a timed batch of k operations there is one
// stamp after every k of them. One Executor a thread; nothing is shared but the deadline, which any
// thread may move.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "adapters/store.h"
#include "harness/measure/clock.h"
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
  /// Inside store calls: from the stamp before an operation (open loop: from its real start) to the
  /// stamp after it, waiting, making and recording operations left out.
  std::uint64_t store_ticks = 0;
};

class Executor {
 public:
  /// `session` and the codecs must outlive the executor. `timed_batch`: operations a stamp.
  Executor(Session& session, const KeyCodec& keys, const ValueCodec& values,
           std::uint32_t timed_batch = 1);

  /// Executes the operations [from, to) of `chunk`, to - from <= kChunkOperations. Ends early after
  /// the first operation (or timed batch) that ends at or after `deadline_ticks`, and at a failure.
  /// Returns the index behind the last operation that was acknowledged.
  std::size_t execute(const Chunk& chunk, std::size_t from, std::size_t to,
                      const std::atomic<std::uint64_t>& deadline_ticks);
  /// The same in an open loop: operation i begins no sooner than `start_ticks` plus its due time.
  /// An operation due at or after the deadline is not begun.
  std::size_t execute_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                            const std::atomic<std::uint64_t>& deadline_ticks,
                            std::uint64_t start_ticks);

  /// Of the last execute(): stamps()[i] .. stamps()[i + 1] is operation from + i, or the operations
  /// from + i * timed_batch and on; for execute_paced() the latency of operation from + i is
  /// stamps()[i + 1] - dues()[i].
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
  std::size_t execute_each(const Chunk& chunk, std::size_t from, std::size_t to,
                           const std::atomic<std::uint64_t>& deadline_ticks);
  std::size_t execute_batches(const Chunk& chunk, std::size_t from, std::size_t to,
                              const std::atomic<std::uint64_t>& deadline_ticks);
  bool perform(const Operation& operation, const Chunk& chunk);
  bool read(const Operation& operation);
  bool perform_other(const Operation& operation, const Chunk& chunk);
  bool scan(const Operation& operation);
  bool fail_with(const Error& error, const Operation& operation);
  bool wrong(const Operation& operation, std::string_view what);

  Session& session_;
  const KeyCodec& keys_;
  const ValueCodec& values_;
  std::uint32_t timed_batch_;
  OperationCounts counts_;
  std::uint64_t lag_ticks_max_ = 0;
  std::uint64_t late_ = 0;
  std::optional<Error> failure_;
  std::array<std::uint64_t, kChunkOperations + 1> stamps_{};
  std::array<std::uint64_t, kChunkOperations> dues_{};
};

}  // namespace assay
