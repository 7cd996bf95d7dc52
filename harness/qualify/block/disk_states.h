// What a power cut may leave on a disk that honours flushes, from the log of what it was given.
//
// A flush splits the log into intervals. When the power fails within an interval, all writes before
// it are there, and of its own any subset, each whole or in part at sectors of 512 bytes. A state
// of an interval is legal at every moment of it after the last write that it keeps, so it is judged
// by what was acknowledged at the interval's end, just before the flush took effect: the most that
// it can be asked for.
// A write that the disk got before a flush counts as covered by it. The kernel may have asked for
// the flush before that write was answered, when the disk need not cover it: such a state is not
// looked at.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/qualify/block/shared_disk.h"

namespace assay::qualify::block {

/// Part of a write that is kept.
struct Piece {
  std::uint32_t entry = 0;
  std::uint32_t first_sector = 0;
  std::uint32_t sectors = 0;
  bool operator==(const Piece&) const = default;
};

enum class StateClass : std::uint8_t {
  none,      ///< nothing of the interval is kept
  drop_one,  ///< one write is lost
  alone,     ///< one write is kept
  prefix,    ///< the first writes are kept, in order
  torn,      ///< the first writes are kept, the last of them in part
  drop_two,  ///< two writes are lost
  seeded,    ///< a random subset, some of it torn
  all,       ///< everything is kept: only of the last interval, else it is the next one's `none`
};
inline constexpr std::uint32_t kStateClasses = 8;
[[nodiscard]] std::string_view to_string(StateClass kind);

/// Entries [begin, end) are not flushed when the power fails; `end` is the flush or the log's end.
struct Interval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::vector<std::uint32_t> writes;  ///< entries of it that write
};
/// All intervals of the log, the one after the last flush included.
[[nodiscard]] std::vector<Interval> intervals_of(std::span<const LogEntry> entries);

struct DiskState {
  StateClass kind = StateClass::none;
  std::uint32_t interval = 0;
  std::uint32_t durable_end = 0;  ///< writes before this entry are kept, all of them
  std::uint32_t cut = 0;          ///< what was acknowledged before this entry counts
  std::vector<Piece> kept;        ///< of the interval, in the log's order
};

/// Picks states of a log, a few of each class in turn, in an order that follows from the seed.
class StatePicker {
 public:
  StatePicker(std::span<const LogEntry> entries, std::uint64_t seed);

  /// The next state; false when the classes that have an end are through and `seeded` gave as many.
  bool next(DiskState& state);

  struct Count {
    std::uint64_t legal = 0;  ///< states of the class; of `seeded` 0: not counted
    std::uint64_t picked = 0;
  };
  [[nodiscard]] Count count(StateClass kind) const {
    return counts_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  struct Choice {
    std::uint32_t interval;
    std::uint32_t a;  ///< index of a write of the interval
    std::uint32_t b;  ///< of a second one, or sectors of a torn one
  };
  void list_choices();
  [[nodiscard]] DiskState build(StateClass kind, const Choice& choice);
  [[nodiscard]] DiskState random_state();
  std::uint64_t random();

  std::span<const LogEntry> entries_;
  std::vector<Interval> intervals_;
  std::vector<Choice> choices_[kStateClasses];
  Count counts_[kStateClasses];
  std::uint64_t random_;
  std::uint64_t turn_ = 0;
};

}  // namespace assay::qualify::block
