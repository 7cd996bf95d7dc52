// Reads the log after an opening: replays what is intact, cuts an unfinished tail, and tells a tail
// that was never durable from durable frames that were damaged.
//
// Decision table at LSN p, where the next frame should begin (see PROTOCOLS.md; tested row by row):
//   frame intact, epoch, LSN, chain and sequence agree          -> replay, go on behind it
//   p = first LSN of the next segment                           -> go on in that segment
//   else, if anything proves that p was durable:
//     a later segment's header (I2), an intact later frame of
//     this epoch whose synced_lsn > p (I4), an intact frame
//     at or behind p in a file without a valid header (I3)      -> corruption, reported, nothing
//     cut
//   frame intact, epoch and LSN agree, chain or sequence do not -> corruption
//   else                                                        -> cut at p
// Frames are read in pieces as they come. What could prove that p was durable lies below what the
// segment's record says (I20), so that no more is searched.
// Threads: none; recovery runs before the store is shared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/wal/log_segments.h"

namespace lode {

/// Where the replay starts: what the chosen root says.
struct LogStart {
  Lsn lsn;
  std::uint32_t chain = 0;
  Sequence sequence;  ///< of the last commit before `lsn`
};

struct LogRecovery {
  Lsn end_lsn;              ///< behind the last frame kept
  std::uint32_t chain = 0;  ///< checksum of that frame
  Sequence last_sequence;
  Epoch last_epoch;                ///< the highest of any header
  std::uint64_t durable_root = 0;  ///< what the last segment's record says to be durable (I21)
  std::vector<Segment> live;       ///< in order of serial
  std::vector<Segment> reusable;   ///< hold nothing that is needed and are as long as they say
  std::vector<std::uint64_t> free_slots;  ///< the same, but not known to be complete
  std::uint64_t frames = 0;               ///< replayed
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;
  bool cut = false;  ///< an unfinished frame, or frames behind a hole, were at the end
  std::string cut_reason;
  std::uint64_t dropped_frames = 0;  ///< intact frames behind a hole that were never durable
};

/// Receives the payload of each frame in order; an error ends the recovery.
using FrameSink =
    std::function<Status(Sequence first_sequence, std::uint32_t commits, ConstBytes payload)>;

/// With `read_only`, nothing is written or synced: what is replayed may not be durable yet.
[[nodiscard]] Result<LogRecovery> recover_log(Disk& disk, std::uint64_t store_id,
                                              const LogStart& start, bool read_only,
                                              const FrameSink& sink);

}  // namespace lode
