// Appends frames to the log. One frame is one flush of the group commit.
//
// Invariants: I1 LSNs only grow and frames chain; I2, I3 see log_segments.h; I4 a frame's
// synced_lsn never exceeds what was durable when it was written; I9 after the first error every
// call fails: what is on the medium is unknown and nothing is tried again.
// Threads: calls must not overlap (the group commit's flush mutex).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/wal/log_segments.h"

namespace lode {

/// Whole commits on their way into one frame.
class FrameBuffer {
 public:
  /// Space for `bytes` more; the pointer is valid until the next call.
  std::byte* extend(std::size_t bytes);
  /// So that the next calls of extend(), of `bytes` together, need no memory.
  void reserve(std::size_t bytes);
  [[nodiscard]] std::size_t payload_bytes() const { return payload_bytes_; }
  [[nodiscard]] ConstBytes payload() const {
    if (payload_bytes_ == 0) return {};
    return {buffer_.data() + frame_header_bytes, payload_bytes_};
  }
  [[nodiscard]] bool empty() const { return commits_ == 0; }
  void count_commit(Sequence sequence);
  [[nodiscard]] Sequence first_sequence() const { return first_sequence_; }
  [[nodiscard]] Sequence last_sequence() const {
    return Sequence(first_sequence_.value + commits_ - 1);
  }
  void clear();

 private:
  friend class LogWriter;
  AlignedBuffer buffer_;  // one alignment unit of room for direct writes, the header, the payload
  std::size_t payload_bytes_ = 0;
  std::uint32_t commits_ = 0;
  Sequence first_sequence_;
};

/// What was written, for the counters that experiments report.
struct LogCounters {
  std::atomic<std::uint64_t> frames{0};
  std::atomic<std::uint64_t> payload_bytes{0};  ///< requested
  std::atomic<std::uint64_t> written_bytes{0};  ///< handed to the file, with headers and padding
  std::atomic<std::uint64_t> barriers{0};       ///< syncs, or writes that are durable on return
  std::atomic<std::uint64_t> segments{0};       ///< activated
};

class LogWriter {
 public:
  LogWriter(Disk& disk, std::uint64_t store_id, LogMethod method, std::uint64_t segment_capacity);

  /// Begins `epoch` in a fresh segment at `lsn`, behind what recovery has kept (protocol R7).
  Status start(Epoch epoch, Lsn lsn, std::uint32_t chain);

  /// Writes the commits of `buffer` as one frame; with `sync`, durable when it returns. An empty
  /// buffer with `sync` makes durable what was written before.
  /// `meanwhile` is called while the device writes, where the method lets it: it costs no time when
  /// it is shorter than that (and is not called after an error).
  Status write(FrameBuffer& buffer, bool sync, const std::function<void()>& meanwhile = {});

  /// LSN behind the last frame, the checksum to chain to, and what is known to be durable.
  [[nodiscard]] Lsn end_lsn() const { return end_lsn_; }
  [[nodiscard]] std::uint32_t chain() const { return chain_; }
  [[nodiscard]] Lsn durable_lsn() const { return synced_lsn_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] LogSegments& segments() { return segments_; }
  [[nodiscard]] const LogCounters& counters() const { return counters_; }

 private:
  Status write_frame(FrameBuffer& buffer, bool start_writing);
  Status write_direct(ConstBytes frame, std::uint64_t offset);
  Status rotate(std::uint64_t frame_bytes);
  Status sync_file();

  std::uint64_t store_id_;
  LogMethod method_;
  LogSegments segments_;
  std::unique_ptr<File> file_;
  Epoch epoch_;
  Lsn segment_start_;
  std::uint64_t segment_capacity_ = 0;
  Lsn end_lsn_;
  Lsn synced_lsn_;
  std::uint32_t chain_ = 0;
  bool failed_ = false;
  AlignedBuffer staging_;  // direct: the block that the last frame ended in, then the frame
  std::size_t tail_bytes_ = 0;
  LogCounters counters_;
};

}  // namespace lode
