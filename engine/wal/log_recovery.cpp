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

// The frames of one segment, read in pieces that grow while they are asked for in order.
class FrameWindow {
 public:
  FrameWindow(File& file, std::uint64_t capacity) : file_(file), capacity_(capacity) {}

  /// `bytes` of the frames at `offset`, fewer at the end of the segment. Valid until the next call.
  Result<ConstBytes> at(std::uint64_t offset, std::uint64_t bytes) {
    bytes = std::min(bytes, capacity_ - offset);
    if (offset < from_ || offset + bytes > from_ + held_) {
      const std::uint64_t wanted = std::min(std::max(bytes, piece_), capacity_ - offset);
      if (buffer_.size() < wanted) buffer_ = AlignedBuffer(wanted);
      held_ = 0;
      LODE_TRY(read_exactly(file_, buffer_.bytes().first(wanted), segment_data_offset + offset));
      from_ = offset;
      held_ = wanted;
      piece_ = std::min(2 * piece_, largest_piece);
    }
    return ConstBytes(buffer_.data() + (offset - from_), bytes);
  }

  /// Looks at what is at `offset`; `frame` is its bytes when it is intact.
  Result<FrameState> look(std::uint64_t offset, std::uint64_t store_id, FrameHeader& header,
                          ConstBytes& frame) {
    LODE_ASSIGN(frame, at(offset, frame_header_bytes));
    const FrameState state = inspect_frame(frame, store_id, header);
    if (state != FrameState::bad_length || header.frame_bytes() > capacity_ - offset) return state;
    LODE_ASSIGN(frame, at(offset, header.frame_bytes()));
    return inspect_frame(frame, store_id, header);
  }

 private:
  static constexpr std::uint64_t first_piece = std::uint64_t{64} << 10;
  static constexpr std::uint64_t largest_piece = std::uint64_t{1} << 20;
  File& file_;
  std::uint64_t capacity_;
  std::uint64_t piece_ = first_piece;
  AlignedBuffer buffer_;
  std::uint64_t from_ = 0;
  std::uint64_t held_ = 0;
};

class Recovery {
 public:
  Recovery(Disk& disk, std::uint64_t store_id, bool read_only, const FrameSink& sink)
      : disk_(disk), store_id_(store_id), read_only_(read_only), sink_(sink) {}

  Status find_segments();
  Status replay(const LogStart& start);
  LogRecovery take() { return std::move(found_); }

 private:
  Status check_size(File& file, const Segment& segment);
  // Walks the frames of live[index] from found_.end_lsn on; true: goes on in the next segment.
  Result<bool> walk(std::size_t index, FrameWindow& frames);
  Status cut(std::size_t index, FrameWindow& frames, std::string reason);
  Status find_proof(const Segment& segment, FrameWindow& frames, const std::string& reason);
  Status check_nameless_segments(Epoch epoch);
  Status rewrite_unproven(const Segment& segment);

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
        found_.reusable.push_back({*slot, header, 0, 0});
      } else {
        found_.free_slots.push_back(*slot);
      }
      continue;
    }
    const auto use = decode_segment_use(block.bytes().first(count), header);
    const std::uint64_t used = use ? std::min(use->used_bytes, header.capacity) : header.capacity;
    found_.live.push_back({*slot, header, used, use ? use->durable_root : 0});
    found_.last_epoch = std::max(found_.last_epoch, header.epoch);
  }
  std::sort(found_.live.begin(), found_.live.end(),
            [](const Segment& a, const Segment& b) { return a.header.serial < b.header.serial; });
  if (!found_.live.empty()) found_.durable_root = found_.live.back().durable_root;
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

Status Recovery::check_size(File& file, const Segment& segment) {
  LODE_ASSIGN(const std::uint64_t size, file.size());
  if (size >= segment_data_offset + segment.header.capacity) return {};
  return fail(ErrorKind::corruption, segment_file_name(segment.slot) +
                                         " is shorter than its header says; the log was truncated");
}

Result<bool> Recovery::walk(std::size_t index, FrameWindow& frames) {
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
    FrameHeader frame;
    ConstBytes bytes;
    LODE_ASSIGN(const FrameState state,
                frames.look(at - segment.first_lsn, store_id_, frame, bytes));
    if (state != FrameState::intact &&
        !(state == FrameState::bad_checksum && LODE_MUTATED("torn-frame-accepted"))) {
      LODE_TRY(cut(index, frames, std::string(to_string(state))));
      return false;
    }
    if ((frame.epoch != segment.epoch || frame.lsn != at) &&
        !LODE_MUTATED("stale-frame-accepted")) {
      LODE_TRY(cut(index, frames, "frame of an earlier use of the segment"));
      return false;
    }
    if ((frame.chain != found_.chain || frame.first_sequence != found_.last_sequence + 1) &&
        !LODE_MUTATED("broken-chain-accepted")) {
      return fail(ErrorKind::corruption,
                  "the frame" + at_lsn(at) + " does not continue the frame before it");
    }
    LODE_TRY(sink_(frame.first_sequence, frame.commits,
                   bytes.subspan(frame_header_bytes, frame.payload_bytes)));
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
Status Recovery::cut(std::size_t index, FrameWindow& frames, std::string reason) {
  const Segment& segment = found_.live[index];
  if (index + 1 < found_.live.size() && !LODE_MUTATED("later-segment-no-proof")) {
    return fail(ErrorKind::corruption, "durable log frame" + at_lsn(found_.end_lsn) + " of " +
                                           segment_file_name(segment.slot) +
                                           " is damaged: " + reason);
  }
  LODE_TRY(find_proof(segment, frames, reason));
  // Unwritten space and frames of an earlier use are what normally follows the last frame.
  found_.cut = found_.dropped_frames > 0 || reason == to_string(FrameState::bad_checksum) ||
               reason == to_string(FrameState::bad_length);
  found_.cut_reason = std::move(reason);
  return {};
}

// A frame that proves the one at the end to have been durable was written after a sync. It begins
// where that ended, which is below what the record said then, and the record was durable with that
// sync (I20). A record that frames have come up to is not the last one that was written: then, as
// without one, everything is searched.
Status Recovery::find_proof(const Segment& segment, FrameWindow& frames,
                            const std::string& reason) {
  const Lsn at = found_.end_lsn;
  const std::uint64_t hole = at - segment.header.first_lsn;
  const std::uint64_t end =
      hole < segment.used_bytes ? segment.used_bytes : segment.header.capacity;
  constexpr std::uint64_t step_bytes = std::uint64_t{32} << 10;
  for (std::uint64_t step = hole + frame_alignment; step < end; step += step_bytes) {
    LODE_ASSIGN(ConstBytes bytes, frames.at(step, std::min(step_bytes, end - step)));
    for (std::size_t place = 0; place + sizeof(std::uint32_t) <= bytes.size();
         place += frame_alignment) {
      if (load<std::uint32_t>(bytes.data() + place) != frame_magic) continue;
      FrameHeader later;
      ConstBytes frame;
      LODE_ASSIGN(const FrameState state, frames.look(step + place, store_id_, later, frame));
      LODE_ASSIGN(bytes, frames.at(step, bytes.size()));  // the look may have moved the window
      if (state != FrameState::intact || later.epoch != segment.header.epoch ||
          later.lsn != segment.header.first_lsn + (step + place)) {
        continue;
      }
      if (later.synced_lsn > at && !LODE_MUTATED("later-frame-no-proof")) {
        return fail(ErrorKind::corruption, "log frame" + at_lsn(at) + " is damaged (" + reason +
                                               "), and the frame" + at_lsn(later.lsn) +
                                               " proves that it was durable");
      }
      ++found_.dropped_frames;
    }
  }
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
Status Recovery::rewrite_unproven(const Segment& segment) {
  if (read_only_ || proven_ >= found_.end_lsn || LODE_MUTATED("cached-frames-trusted")) return {};
  const std::uint64_t offset = segment_data_offset + (proven_ - segment.header.first_lsn);
  const AlignedBuffer frames(found_.end_lsn - proven_);
  const Bytes bytes = frames.bytes().first(found_.end_lsn - proven_);
  LODE_ASSIGN(const auto file, disk_.open(segment_file_name(segment.slot), {}));
  LODE_TRY(read_exactly(*file, bytes, offset));
  LODE_TRY(file->write_at(bytes, offset));
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
    LODE_ASSIGN(const auto file,
                disk_.open(segment_file_name(found_.live[index].slot), {.read_only = true}));
    LODE_TRY(check_size(*file, found_.live[index]));
    FrameWindow frames(*file, header.capacity);
    proven_ = std::max(proven_, header.first_lsn);  // I2
    LODE_ASSIGN(const bool more, walk(index, frames));
    if (more) continue;
    LODE_TRY(rewrite_unproven(found_.live[index]));
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
