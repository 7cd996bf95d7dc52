// Stream, chunk, executor and recorder of one thread, put together: what a worker thread runs and
// what the benchmark of the harness's own cost measures.
//
// Used by one thread at a time; the deadline alone may be moved by others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "adapters/store.h"
#include "harness/trial/executor.h"
#include "harness/trial/latency_recorder.h"
#include "workloads/stream.h"
#include "workloads/stream_digest.h"
#include "workloads/workload.h"

namespace assay {

class OperationLoop {
 public:
  /// The loop of thread `thread` of run phase number `phase`. Everything must outlive the loop.
  OperationLoop(const Workload& workload, std::uint64_t seed, std::size_t phase,
                std::uint32_t thread, Session& session, const KeyCodec& keys,
                const ValueCodec& values);
  /// The same with a stream of the caller's.
  OperationLoop(const Workload& workload, std::uint64_t seed, std::size_t phase,
                std::uint32_t thread, Session& session, const KeyCodec& keys,
                const ValueCodec& values, std::unique_ptr<Stream> stream);

  /// Makes the next operations, so that a section of `operations` operations begins with a full
  /// buffer: kChunkOperations of them, or all of a smaller section, are there afterwards.
  void refill(std::uint64_t operations);
  /// Begins a section: counts and histograms start anew, the stream goes on. Open loop: intended
  /// starts are counted from the first section's start.
  void begin(std::uint64_t start_ticks);
  /// Executes up to `operations` operations in chunks of at most `slice`, until the deadline. With
  /// `recorded` every latency is recorded. False when the section is over: the deadline passed,
  /// the stream ended, or failure() is set.
  bool run(std::uint64_t operations, std::size_t slice,
           const std::atomic<std::uint64_t>& deadline_ticks, bool recorded);
  /// Operations up to the end of the buffer at work: a caller that asks run() for no more than
  /// these never cuts a timed batch in two.
  [[nodiscard]] std::size_t until_refill() const;
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
  /// Digest of the first of them.
  [[nodiscard]] StreamPrefix executed_prefix() const { return digest_.prefix(); }

 private:
  bool next_chunk();

  std::unique_ptr<Stream> stream_;
  std::size_t fill_;  ///< operations a chunk: a multiple of the timed batch
  Chunk chunk_;
  std::size_t next_ = 0;
  Chunk spare_;  ///< what follows chunk_, when spare_ready_
  bool spare_ready_ = false;
  Executor executor_;
  LatencyRecorder recorder_;
  ExecutedDigest digest_;
  bool open_loop_;
  std::uint64_t first_start_ticks_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace assay
