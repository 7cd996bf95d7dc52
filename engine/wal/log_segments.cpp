#include "engine/wal/log_segments.h"

#include <algorithm>
#include <chrono>

#include "engine/base/check.h"
#include "engine/base/mutation.h"

namespace lode {
namespace {

constexpr std::size_t zero_chunk_bytes = std::size_t{1} << 20;
constexpr std::string_view probe_name = "probe";

OpenMode mode_of(LogMethod method) {
  return {.create = false,
          .read_only = false,
          .direct = method == LogMethod::direct_dsync,
          .dsync = method != LogMethod::fdatasync};
}

Status write_zeros(File& file, std::uint64_t from, std::uint64_t bytes) {
  const AlignedBuffer zeros(
      static_cast<std::size_t>(std::min<std::uint64_t>(zero_chunk_bytes, bytes)));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min<std::uint64_t>(zeros.size(), bytes - done);
    LODE_TRY(file.write_at(ConstBytes(zeros.data(), part), from + done));
    done += part;
  }
  return {};
}

// Median time of a durable 4 KiB write in nanoseconds.
Result<std::int64_t> time_method(Disk& disk, LogMethod method) {
  constexpr int writes = 15;
  LODE_ASSIGN(const auto file, disk.open(probe_name, mode_of(method)));
  const AlignedBuffer block(direct_alignment);
  std::vector<std::int64_t> times;
  for (int i = 0; i < writes; ++i) {
    block.data()[0] = static_cast<std::byte>(i);
    const auto start = std::chrono::steady_clock::now();
    LODE_TRY(file->write_at(block.bytes(), static_cast<std::uint64_t>(i) * block.size()));
    if (method == LogMethod::fdatasync) LODE_TRY(file->sync());
    const auto time = std::chrono::steady_clock::now() - start;
    times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
  std::nth_element(times.begin(), times.begin() + writes / 2, times.end());
  return times[writes / 2];
}

}  // namespace

std::string_view to_string(LogMethod method) {
  switch (method) {
    case LogMethod::fdatasync:
      return "fdatasync";
    case LogMethod::dsync:
      return "dsync";
    case LogMethod::direct_dsync:
      return "direct-dsync";
  }
  return "unknown";
}

LogSegments::LogSegments(Disk& disk, std::uint64_t store_id, LogMethod method,
                         std::uint64_t capacity)
    : disk_(disk), store_id_(store_id), method_(method), capacity_(capacity) {
  LODE_CHECK(capacity_ > 0 && capacity_ % direct_alignment == 0, "capacity of a log segment");
}

OpenMode LogSegments::mode() const {
  return mode_of(method_);
}

void LogSegments::adopt(const std::vector<Segment>& live, const std::vector<Segment>& reusable,
                        const std::vector<std::uint64_t>& free_slots) {
  for (const Segment& segment : live) {
    next_slot_ = std::max(next_slot_, segment.slot + 1);
    next_serial_ = std::max(next_serial_, segment.header.serial + 1);
    live_.push_back(segment);
  }
  for (const Segment& segment : reusable) {
    next_slot_ = std::max(next_slot_, segment.slot + 1);
    next_serial_ = std::max(next_serial_, segment.header.serial + 1);
    if (segment.header.capacity == capacity_) {
      spare_slots_.push_back(segment.slot);
    } else if (segment.header.serial != 0) {
      live_.push_back(segment);  // the end of the log, until a later segment takes over
    } else {
      unusable_slots_.push_back(segment.slot);
    }
  }
  // Whether these were completely made is not known: they are removed at the next chance.
  for (const std::uint64_t slot : free_slots) {
    next_slot_ = std::max(next_slot_, slot + 1);
    unusable_slots_.push_back(slot);
  }
}

Status LogSegments::create(std::uint64_t slot, std::uint64_t capacity) const {
  OpenMode create_mode;
  create_mode.create = true;
  LODE_ASSIGN(const auto file, disk_.open(segment_file_name(slot), create_mode));
  LODE_TRY(write_zeros(*file, 0, segment_data_offset + capacity));
  const AlignedBuffer block(segment_data_offset);
  SegmentHeader header;
  header.store_id = store_id_;
  header.capacity = capacity;
  encode_segment_header(header, block.data());
  LODE_TRY(file->write_at(block.bytes(), 0));
  if (!LODE_MUTATED("segment-made-without-sync")) LODE_TRY(file->sync());
  if (!LODE_MUTATED("segment-made-without-directory-sync")) LODE_TRY(disk_.sync_directory());
  // Need not be durable itself: whoever reads it knows that the syncs above succeeded.
  header.complete = true;
  encode_segment_header(header, block.data());
  return file->write_at(block.bytes(), 0);
}

Status LogSegments::prepare_spares(std::size_t count) {
  while (!unusable_slots_.empty()) {
    LODE_TRY(disk_.remove(segment_file_name(unusable_slots_.back())));
    unusable_slots_.pop_back();
  }
  while (spare_slots_.size() < count) {
    LODE_TRY(create(next_slot_, capacity_));
    spare_slots_.push_back(next_slot_++);
  }
  return {};
}

Result<std::unique_ptr<File>> LogSegments::activate(Epoch epoch, Lsn first_lsn, std::uint32_t chain,
                                                    std::uint64_t frame_bytes) {
  LODE_CHECK(live_.empty() ||
                 (live_.back().header.first_lsn <= first_lsn && live_.back().header.epoch <= epoch),
             "I1: the log only grows");
  Segment segment;
  if (frame_bytes <= capacity_) {
    LODE_TRY(prepare_spares(1));
    segment.slot = spare_slots_.front();
    segment.header.capacity = capacity_;
    spare_slots_.erase(spare_slots_.begin());
  } else {
    segment.slot = next_slot_++;
    segment.header.capacity =
        (frame_bytes + direct_alignment - 1) / direct_alignment * direct_alignment;
    LODE_TRY(create(segment.slot, segment.header.capacity));
  }
  segment.header.store_id = store_id_;
  segment.header.serial = next_serial_++;
  segment.header.epoch = epoch;
  segment.header.first_lsn = first_lsn;
  segment.header.chain = chain;
  segment.header.complete = true;
  LODE_ASSIGN(auto file, disk_.open(segment_file_name(segment.slot), mode()));
  segment.used_bytes = std::min(first_used_bytes, segment.header.capacity);
  LODE_TRY(write_header(*file, segment));
  if (method_ == LogMethod::fdatasync && !LODE_MUTATED("segment-header-without-sync")) {
    LODE_TRY(file->sync());
  }
  live_.push_back(segment);
  return file;
}

// The whole block, because direct access writes nothing smaller: the header is overwritten by
// itself.
Status LogSegments::write_header(File& file, const Segment& segment) const {
  const AlignedBuffer block(segment_data_offset);
  encode_segment_header(segment.header, block.data());
  const std::uint64_t root = durable_root_.load(std::memory_order_acquire);
  encode_segment_use({segment.header.serial, segment.used_bytes, root}, store_id_, block.data());
  return file.write_at(block.bytes(), 0);
}

// In doubling steps: a segment's records cost a block for each, and recovery reads at most twice
// what is used.
Result<std::uint64_t> LogSegments::extend_use(File& file, std::uint64_t frame_end) {
  Segment& segment = live_.back();
  if (frame_end < segment.used_bytes || segment.used_bytes == segment.header.capacity) return 0;
  while (segment.used_bytes <= frame_end && segment.used_bytes < segment.header.capacity) {
    segment.used_bytes = std::min(2 * segment.used_bytes, segment.header.capacity);
  }
  if (LODE_MUTATED("use-of-the-segment-not-recorded")) return 0;
  LODE_TRY(write_header(file, segment));
  return segment_data_offset;
}

Status LogSegments::recycle_below(Lsn lsn, std::size_t keep_spares) {
  while (live_.size() > 1 && live_[1].header.first_lsn <= lsn) {
    const Segment segment = live_.front();
    live_.pop_front();
    if (segment.header.capacity == capacity_ && spare_slots_.size() < keep_spares) {
      spare_slots_.push_back(segment.slot);
    } else {
      unusable_slots_.push_back(segment.slot);
    }
  }
  while (!unusable_slots_.empty()) {
    LODE_TRY(disk_.remove(segment_file_name(unusable_slots_.back())));
    unusable_slots_.pop_back();
  }
  return {};
}

Result<LogMethod> probe_log_method(Disk& disk) {
  {
    OpenMode create_mode;
    create_mode.create = true;
    LODE_ASSIGN(const auto file, disk.open(probe_name, create_mode));
    LODE_TRY(write_zeros(*file, 0, 64 * direct_alignment));
    LODE_TRY(file->sync());
  }
  LogMethod best = LogMethod::fdatasync;
  LODE_ASSIGN(std::int64_t best_time, time_method(disk, best));
  for (const LogMethod method : {LogMethod::dsync, LogMethod::direct_dsync}) {
    const auto time = time_method(disk, method);  // a method that fails is not available here
    if (time && *time < best_time - best_time / 20) {
      best = method;
      best_time = *time;
    }
  }
  LODE_TRY(disk.remove(probe_name));
  return best;
}

}  // namespace lode
