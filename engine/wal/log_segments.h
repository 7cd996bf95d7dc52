// The files of the log: made ahead of need, filled with zeros that were WRITTEN (a file that grows
// or whose space was only reserved costs a journal commit at every sync), and recycled.
//
// A segment's header is durable before its first frame is written (invariant I3), and the frames of
// a segment are durable before the next segment's header is written (invariant I2): recovery takes
// a header as proof that everything before its first LSN was durable.
// Threads: calls must not overlap, but for claim_durable_root(); the log writer's user sees to
// that.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "engine/file/disk.h"
#include "engine/wal/log_format.h"

namespace lode {

struct Segment {
  std::uint64_t slot = 0;
  SegmentHeader header;
  std::uint64_t used_bytes = 0;    ///< as its record says (I20); without one its capacity
  std::uint64_t durable_root = 0;  ///< as recovery found it in its record (I21)
};

class LogSegments {
 public:
  /// `capacity`: bytes for frames in an ordinary segment, a multiple of 4,096.
  LogSegments(Disk& disk, std::uint64_t store_id, LogMethod method, std::uint64_t capacity);

  /// Takes over what recovery found. `live` in order of serial; `reusable` are as long as their
  /// headers say and hold nothing that is needed; `free_slots` may hold anything.
  void adopt(const std::vector<Segment>& live, const std::vector<Segment>& reusable,
             const std::vector<std::uint64_t>& free_slots);

  /// Makes spare segments until there are `count`, each durable with its name.
  Status prepare_spares(std::size_t count);

  /// Makes the next segment live, with room for `frame_bytes` at least, and its header durable.
  /// Returns the file to write frames to.
  Result<std::unique_ptr<File>> activate(Epoch epoch, Lsn first_lsn, std::uint32_t chain,
                                         std::uint64_t frame_bytes);

  /// Before a frame that ends `frame_end` bytes into the live segment is written to `file`: says so
  /// in its record when that says less. Durable with the frame. Returns the bytes written.
  Result<std::uint64_t> extend_use(File& file, std::uint64_t frame_end);

  /// From now on records say that the root of this identity is durable, and the directory (I21).
  void claim_durable_root(std::uint64_t identity) {
    durable_root_.store(identity, std::memory_order_release);
  }

  /// Segments that end at or below `lsn` become spares, or are removed beyond `keep_spares`.
  Status recycle_below(Lsn lsn, std::size_t keep_spares);

  [[nodiscard]] const std::deque<Segment>& live() const { return live_; }
  [[nodiscard]] std::size_t spares() const { return spare_slots_.size(); }

  /// A spare made while others go on using the log: reserve_slot(), then create_spare() beside
  /// whatever else happens, then add_spare().
  [[nodiscard]] std::uint64_t reserve_slot() { return next_slot_++; }
  Status create_spare(std::uint64_t slot) const { return create(slot, capacity_); }
  void add_spare(std::uint64_t slot) { spare_slots_.push_back(slot); }

 private:
  Status create(std::uint64_t slot, std::uint64_t capacity) const;
  Status write_header(File& file, const Segment& segment) const;
  [[nodiscard]] OpenMode mode() const;

  Disk& disk_;
  std::uint64_t store_id_;
  LogMethod method_;
  std::uint64_t capacity_;
  std::deque<Segment> live_;
  std::vector<std::uint64_t> spare_slots_;
  std::vector<std::uint64_t> unusable_slots_;  // of another size: removed at the next chance
  std::uint64_t next_slot_ = 1;
  std::uint64_t next_serial_ = 1;
  std::atomic<std::uint64_t> durable_root_{0};
};

/// Times the methods on a scratch file and returns the fastest that works here; fdatasync when
/// none of the others does. Leaves no file behind.
[[nodiscard]] Result<LogMethod> probe_log_method(Disk& disk);

}  // namespace lode
