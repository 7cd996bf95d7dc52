#include "engine/wal/log_writer.h"

#include <cstring>

#include "engine/base/check.h"
#include "engine/base/mutation.h"

namespace lode {

void FrameBuffer::reserve(std::size_t bytes) {
  const std::size_t used = frame_header_bytes + payload_bytes_;
  buffer_.grow(used + bytes + frame_alignment, used);
}

std::byte* FrameBuffer::extend(std::size_t bytes) {
  reserve(bytes);
  std::byte* const out = buffer_.data() + frame_header_bytes + payload_bytes_;
  payload_bytes_ += bytes;
  return out;
}

void FrameBuffer::count_commit(Sequence sequence) {
  if (commits_ == 0) first_sequence_ = sequence;
  LODE_CHECK(sequence.value == first_sequence_.value + commits_, "I5: sequences have no gaps");
  ++commits_;
}

void FrameBuffer::clear() {
  constexpr std::size_t kept_bytes = std::size_t{8} << 20;  // one huge value is no reason for more
  if (buffer_.size() > kept_bytes) buffer_ = AlignedBuffer();
  payload_bytes_ = 0;
  commits_ = 0;
}

LogWriter::LogWriter(Disk& disk, std::uint64_t store_id, LogMethod method,
                     std::uint64_t segment_capacity)
    : store_id_(store_id), method_(method), segments_(disk, store_id, method, segment_capacity) {}

Status LogWriter::start(Epoch epoch, Lsn lsn, std::uint32_t chain) {
  epoch_ = epoch;
  end_lsn_ = lsn;
  synced_lsn_ = lsn;  // recovery has synced what it kept
  chain_ = chain;
  return rotate(0);
}

Status LogWriter::sync_file() {
  if (method_ == LogMethod::fdatasync) {
    if (!LODE_MUTATED("log-sync-left-out")) LODE_TRY(file_->sync());
    counters_.barriers.fetch_add(1, std::memory_order_relaxed);
  }
  synced_lsn_ = end_lsn_;
  return {};
}

Status LogWriter::rotate(std::uint64_t frame_bytes) {
  if (file_ && synced_lsn_ < end_lsn_ && !LODE_MUTATED("rotation-without-sync")) {
    LODE_TRY(sync_file());  // I2
  }
  LODE_ASSIGN(file_, segments_.activate(epoch_, end_lsn_, chain_, frame_bytes));
  segment_start_ = end_lsn_;
  segment_capacity_ = segments_.live().back().header.capacity;
  tail_bytes_ = 0;
  counters_.segments.fetch_add(1, std::memory_order_relaxed);
  counters_.barriers.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// Past the page cache whole blocks are written: the one that the frame before ended in once more,
// with the same bytes, and zeros behind the frame. What was durable is overwritten by itself.
Status LogWriter::write_direct(ConstBytes frame, std::uint64_t offset) {
  LODE_CHECK(offset % direct_alignment == tail_bytes_, "the tail block matches the offset");
  const std::size_t used = tail_bytes_ + frame.size();
  const std::size_t padded = (used + direct_alignment - 1) / direct_alignment * direct_alignment;
  staging_.grow(padded, tail_bytes_);
  std::memcpy(staging_.data() + tail_bytes_, frame.data(), frame.size());
  std::memset(staging_.data() + used, 0, padded - used);
  LODE_TRY(file_->write_at(ConstBytes(staging_.data(), padded), offset - tail_bytes_));
  counters_.written_bytes.fetch_add(padded, std::memory_order_relaxed);
  const std::size_t whole = used / direct_alignment * direct_alignment;
  std::memmove(staging_.data(), staging_.data() + whole, used - whole);
  tail_bytes_ = used - whole;
  return {};
}

Status LogWriter::write_frame(FrameBuffer& buffer, bool start_writing) {
  FrameHeader header;
  LODE_CHECK(buffer.payload_bytes_ <= UINT32_MAX - 4096, "a frame's payload fits 32 bits");
  header.payload_bytes = static_cast<std::uint32_t>(buffer.payload_bytes_);
  const std::uint64_t bytes = header.frame_bytes();
  if (end_lsn_ - segment_start_ + bytes > segment_capacity_) LODE_TRY(rotate(bytes));
  header.chain = chain_;
  header.epoch = epoch_;
  header.lsn = end_lsn_;
  header.first_sequence = buffer.first_sequence_;
  header.synced_lsn = LODE_MUTATED("frame-claims-too-much") ? end_lsn_ : synced_lsn_;
  header.commits = buffer.commits_;
  LODE_CHECK(header.synced_lsn <= header.lsn, "I4: a frame claims no more than is durable");
  encode_frame_header(header, store_id_, buffer.buffer_.data());
  const ConstBytes frame(buffer.buffer_.data(), bytes);
  const std::uint64_t offset = segment_data_offset + (end_lsn_ - segment_start_);
  LODE_ASSIGN(const std::uint64_t record_bytes,
              segments_.extend_use(*file_, end_lsn_ - segment_start_ + bytes));  // I20
  counters_.written_bytes.fetch_add(record_bytes, std::memory_order_relaxed);
  if (method_ == LogMethod::direct_dsync) {
    LODE_TRY(write_direct(frame, offset));
  } else {
    LODE_TRY(file_->write_at(frame, offset));
    if (start_writing) file_->start_writing(offset, bytes);
    counters_.written_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  end_lsn_ = end_lsn_ + bytes;
  chain_ = header.checksum;
  if (method_ != LogMethod::fdatasync) {
    synced_lsn_ = end_lsn_;
    counters_.barriers.fetch_add(1, std::memory_order_relaxed);
  }
  counters_.frames.fetch_add(1, std::memory_order_relaxed);
  counters_.payload_bytes.fetch_add(buffer.payload_bytes_, std::memory_order_relaxed);
  return {};
}

Status LogWriter::write(FrameBuffer& buffer, bool sync, const std::function<void()>& meanwhile) {
  if (failed_) return fail(ErrorKind::poisoned, "an earlier write of the log failed");
  failed_ = !LODE_MUTATED("log-write-tried-again");  // until all of this has succeeded (I9)
  const bool overlap = meanwhile && sync && method_ == LogMethod::fdatasync;
  if (!buffer.empty()) LODE_TRY(write_frame(buffer, overlap));
  if (meanwhile) meanwhile();
  if (sync && synced_lsn_ < end_lsn_) LODE_TRY(sync_file());
  failed_ = false;
  return {};
}

}  // namespace lode
