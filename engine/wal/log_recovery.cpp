#include "engine/wal/log_recovery.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/base/mutation.h"

namespace lode {
namespace {

std::string at_lsn(Lsn lsn) {
  return " at LSN " + std::to_string(lsn.value);
}

class Recovery {
 public:
  Recovery(Disk& disk, std::uint64_t store_id, bool read_only, const FrameSink& sink)
      : disk_(disk), store_id_(store_id), read_only_(read_only), sink_(sink) {}

  Status find_segments();
  Status replay(const LogStart& start);
  LogRecovery take() { return std::move(found_); }

 private:
  Result<AlignedBuffer> read_frames(const Segment& segment);
  // Walks the frames of live[index] from found_.end_lsn on; true: goes on in the next segment.
  Result<bool> walk(std::size_t index, ConstBytes frames);
  Status cut(std::size_t index, ConstBytes rest, std::string reason);
  Status check_nameless_segments(Epoch epoch);
  Status rewrite_unproven(const Segment& segment, ConstBytes frames);

  Disk& disk_;
  std::uint64_t store_id_;
  bool read_only_;
  const FrameSink& sink_;
  LogRecovery found_;
  std::vector<std::uint64_t> nameless_;  // slots of files without a valid header
  Lsn proven_;                           // below, the log is known to have been durable
};

Status Recovery::find_segments() {
  LODE_ASSIGN(const auto names, disk_.list());
  for (const std::string& name : names) {
    const auto slot = segment_slot(name);
    if (!slot) continue;
    LODE_ASSIGN(const auto file, disk_.open(name, {.read_only = read_only_}));
    // After a kill the page cache may hold frames that never reached the medium. They count only
    // once they are durable (invariant I6), or a later commit would sit behind a hole.
    if (!read_only_) LODE_TRY(file->sync());
    AlignedBuffer block(segment_data_offset);
    LODE_ASSIGN(const std::size_t count, file->read_at(block.bytes(), 0));
    auto decoded = decode_segment_header(block.bytes().first(count));
    if (!decoded) return std::unexpected(std::move(decoded).error().in(name));
    if (!*decoded) {
      nameless_.push_back(*slot);
      continue;
    }
    const SegmentHeader& header = **decoded;
    if (header.store_id != store_id_) {
      return fail(ErrorKind::corruption, name + " belongs to another store");
    }
    if (header.serial == 0) {
      LODE_ASSIGN(const std::uint64_t size, file->size());
      if ((header.complete || LODE_MUTATED("unfinished-segment-reused")) &&
          size == segment_data_offset + header.capacity) {
        found_.reusable.push_back({*slot, header});
      } else {
        found_.free_slots.push_back(*slot);
      }
      continue;
    }
    found_.live.push_back({*slot, header});
    found_.last_epoch = std::max(found_.last_epoch, header.epoch);
  }
  std::sort(found_.live.begin(), found_.live.end(),
            [](const Segment& a, const Segment& b) { return a.header.serial < b.header.serial; });
  for (std::size_t i = 1; i < found_.live.size(); ++i) {
    const SegmentHeader& before = found_.live[i - 1].header;
    const SegmentHeader& header = found_.live[i].header;
    if (header.serial == before.serial || header.first_lsn < before.first_lsn ||
        header.epoch < before.epoch) {
      return fail(ErrorKind::corruption,
                  "the log segments " + segment_file_name(found_.live[i - 1].slot) + " and " +
                      segment_file_name(found_.live[i].slot) + " contradict each other");
    }
  }
  return {};
}

Result<AlignedBuffer> Recovery::read_frames(const Segment& segment) {
  const std::string name = segment_file_name(segment.slot);
  LODE_ASSIGN(const auto file, disk_.open(name, {.read_only = true}));
  LODE_ASSIGN(const std::uint64_t size, file->size());
  if (size < segment_data_offset + segment.header.capacity) {
    return fail(ErrorKind::corruption,
                name + " is shorter than its header says; the log was truncated");
  }
  AlignedBuffer frames(segment.header.capacity);
  LODE_TRY(read_exactly(*file, frames.bytes().first(segment.header.capacity), segment_data_offset));
  return frames;
}

Result<bool> Recovery::walk(std::size_t index, ConstBytes frames) {
  const SegmentHeader& segment = found_.live[index].header;
  const bool has_next = index + 1 < found_.live.size();
  const Lsn limit = has_next ? found_.live[index + 1].header.first_lsn
                             : Lsn(segment.first_lsn.value + segment.capacity);
  while (true) {
    const Lsn at = found_.end_lsn;
    if (has_next && at == limit) return true;
    if (at >= Lsn(segment.first_lsn.value + segment.capacity)) {
      if (!has_next) return false;  // filled to the last byte
      return fail(ErrorKind::corruption, "the log has a gap" + at_lsn(at));
    }
    const ConstBytes rest = frames.subspan(at - segment.first_lsn);
    FrameHeader frame;
    const FrameState state = inspect_frame(rest, store_id_, frame);
    if (state != FrameState::intact &&
        !(state == FrameState::bad_checksum && LODE_MUTATED("torn-frame-accepted"))) {
      LODE_TRY(cut(index, rest, std::string(to_string(state))));
      return false;
    }
    if ((frame.epoch != segment.epoch || frame.lsn != at) &&
        !LODE_MUTATED("stale-frame-accepted")) {
      LODE_TRY(cut(index, rest, "frame of an earlier use of the segment"));
      return false;
    }
    if ((frame.chain != found_.chain || frame.first_sequence != found_.last_sequence + 1) &&
        !LODE_MUTATED("broken-chain-accepted")) {
      return fail(ErrorKind::corruption,
                  "the frame" + at_lsn(at) + " does not continue the frame before it");
    }
    LODE_TRY(sink_(frame.first_sequence, frame.commits,
                   rest.subspan(frame_header_bytes, frame.payload_bytes)));
    proven_ = std::max(proven_, frame.synced_lsn);
    found_.end_lsn = at + frame.frame_bytes();
    found_.chain = frame.checksum;
    found_.last_sequence = Sequence(frame.first_sequence.value + frame.commits - 1);
    ++found_.frames;
    found_.commits += frame.commits;
    found_.bytes += frame.frame_bytes();
  }
}

// The frame at the end is not there. Either it was never durable, and nothing behind it was
// acknowledged as durable; or it was, and somebody has damaged it.
Status Recovery::cut(std::size_t index, ConstBytes rest, std::string reason) {
  const Lsn at = found_.end_lsn;
  const SegmentHeader& segment = found_.live[index].header;
  if (index + 1 < found_.live.size() && !LODE_MUTATED("later-segment-no-proof")) {
    return fail(ErrorKind::corruption, "durable log frame" + at_lsn(at) + " of " +
                                           segment_file_name(found_.live[index].slot) +
                                           " is damaged: " + reason);
  }
  for (std::size_t offset = frame_alignment; offset + frame_header_bytes <= rest.size();
       offset += frame_alignment) {
    if (load<std::uint32_t>(rest.data() + offset) != frame_magic) continue;
    FrameHeader later;
    if (inspect_frame(rest.subspan(offset), store_id_, later) != FrameState::intact) continue;
    if (later.epoch != segment.epoch || later.lsn != at + offset) continue;
    if (later.synced_lsn > at && !LODE_MUTATED("later-frame-no-proof")) {
      return fail(ErrorKind::corruption, "log frame" + at_lsn(at) + " is damaged (" + reason +
                                             "), and the frame" + at_lsn(later.lsn) +
                                             " proves that it was durable");
    }
    ++found_.dropped_frames;
  }
  // Unwritten space and frames of an earlier use are what normally follows the last frame.
  found_.cut = found_.dropped_frames > 0 || reason == to_string(FrameState::bad_checksum) ||
               reason == to_string(FrameState::bad_length);
  found_.cut_reason = std::move(reason);
  return {};
}

// A file without a valid header holds no frame of ours at or behind the end (I3), unless its header
// was damaged after frames were written behind it.
Status Recovery::check_nameless_segments(Epoch epoch) {
  for (const std::uint64_t slot : nameless_) {
    const std::string name = segment_file_name(slot);
    LODE_ASSIGN(const auto file, disk_.open(name, {.read_only = true}));
    LODE_ASSIGN(const std::uint64_t size, file->size());
    if (size > segment_data_offset) {
      AlignedBuffer frames(size - segment_data_offset);
      const Bytes bytes = frames.bytes().first(size - segment_data_offset);
      LODE_TRY(read_exactly(*file, bytes, segment_data_offset));
      for (std::size_t offset = 0; offset + frame_header_bytes <= bytes.size();
           offset += frame_alignment) {
        if (load<std::uint32_t>(bytes.data() + offset) != frame_magic) continue;
        FrameHeader frame;
        if (!LODE_MUTATED("damaged-header-taken-for-free") &&
            inspect_frame(bytes.subspan(offset), store_id_, frame) == FrameState::intact &&
            frame.epoch >= epoch && frame.lsn >= found_.end_lsn) {
          return fail(ErrorKind::corruption, "the header of " + name +
                                                 " is damaged; the segment holds the frame" +
                                                 at_lsn(frame.lsn));
        }
      }
    }
    found_.free_slots.push_back(slot);
  }
  return {};
}

// A sync that failed in the life before may have left frames in the page cache that the system
// takes for clean: they are read here, no later sync writes them, and a power cut takes them away
// (I6). So what no later frame proves to be durable is written once more, with the same bytes, and
// synced.
Status Recovery::rewrite_unproven(const Segment& segment, ConstBytes frames) {
  if (read_only_ || proven_ >= found_.end_lsn || LODE_MUTATED("cached-frames-trusted")) return {};
  const std::uint64_t from = proven_ - segment.header.first_lsn;
  const std::uint64_t to = found_.end_lsn - segment.header.first_lsn;
  LODE_ASSIGN(const auto file, disk_.open(segment_file_name(segment.slot), {}));
  LODE_TRY(file->write_at(frames.subspan(from, to - from), segment_data_offset + from));
  return file->sync();
}

Status Recovery::replay(const LogStart& start) {
  found_.end_lsn = start.lsn;
  found_.chain = start.chain;
  found_.last_sequence = start.sequence;
  proven_ = start.lsn;
  std::size_t index = found_.live.size();
  while (index > 0 && found_.live[index - 1].header.first_lsn > start.lsn) --index;
  if (index == 0) {
    return fail(ErrorKind::corruption,
                "the log that the root needs" + at_lsn(start.lsn) + " is missing");
  }
  --index;
  if (start.lsn >
      Lsn(found_.live[index].header.first_lsn.value + found_.live[index].header.capacity)) {
    return fail(ErrorKind::corruption, "no log segment reaches" + at_lsn(start.lsn));
  }
  for (;; ++index) {
    const SegmentHeader& header = found_.live[index].header;
    if (header.first_lsn == found_.end_lsn && header.chain != found_.chain) {
      return fail(ErrorKind::corruption, segment_file_name(found_.live[index].slot) +
                                             " does not continue the segment before it");
    }
    LODE_ASSIGN(const AlignedBuffer frames, read_frames(found_.live[index]));
    const ConstBytes bytes = frames.bytes().first(header.capacity);
    proven_ = std::max(proven_, header.first_lsn);  // I2
    LODE_ASSIGN(const bool more, walk(index, bytes));
    if (more) continue;
    LODE_TRY(rewrite_unproven(found_.live[index], bytes));
    break;
  }
  const Epoch epoch = found_.live[index].header.epoch;
  LODE_TRY(check_nameless_segments(epoch));
  // A last segment without a frame is free again: opening and closing does not use up segments.
  if (found_.live[index].header.first_lsn == found_.end_lsn) {
    found_.reusable.push_back(found_.live[index]);
    found_.live.pop_back();
  }
  return {};
}

}  // namespace

Result<LogRecovery> recover_log(Disk& disk, std::uint64_t store_id, const LogStart& start,
                                bool read_only, const FrameSink& sink) {
  Recovery recovery(disk, store_id, read_only, sink);
  LODE_TRY(recovery.find_segments());
  LODE_TRY(recovery.replay(start));
  return recovery.take();
}

}  // namespace lode
