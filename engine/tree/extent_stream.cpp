#include "engine/tree/extent_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/check.h"

namespace lode {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{512} << 10;

}  // namespace

ExtentStream::~ExtentStream() {
  for (const Extent& extent : extents_) space_.free(extent);
}

Status ExtentStream::flush(bool all) {
  const std::size_t whole = all ? (buffered_ + page_bytes - 1) / page_bytes * page_bytes
                                : buffered_ / direct_alignment * direct_alignment;
  if (whole == 0) return {};
  if (whole > buffered_) std::memset(buffer_.data() + buffered_, 0, whole - buffered_);
  LODE_TRY(file_.write_at(ConstBytes(buffer_.data(), whole), flushed_));
  written_bytes_ += whole;
  if (whole < buffered_) std::memmove(buffer_.data(), buffer_.data() + whole, buffered_ - whole);
  buffered_ = whole < buffered_ ? buffered_ - whole : 0;
  flushed_ += whole;
  return {};
}

Status ExtentStream::close_extent() {
  if (limit_ == 0) return {};
  LODE_TRY(flush(true));
  flushed_ = (flushed_ + page_bytes - 1) / page_bytes * page_bytes;
  const std::uint64_t unused = (limit_ - flushed_) / page_bytes;
  if (unused > 0) {
    Extent& last = extents_.back();
    last.pages -= unused;
    space_.free({last.first + last.pages, unused});
    if (last.pages == 0) extents_.pop_back();
  }
  limit_ = 0;
  return {};
}

Result<std::uint64_t> ExtentStream::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  if (buffer_.size() == 0) buffer_ = AlignedBuffer(buffer_bytes);
  const std::uint64_t position = flushed_ + buffered_;
  const std::uint64_t aligned = (position + alignment - 1) / alignment * alignment;
  if (limit_ != 0 && aligned + bytes <= limit_) {
    const std::size_t gap = aligned - position;
    if (buffered_ + gap > buffer_.size()) LODE_TRY(flush(false));
    std::memset(buffer_.data() + buffered_, 0, gap);
    buffered_ += gap;
    return aligned;
  }
  LODE_TRY(close_extent());
  const std::uint64_t least = (bytes + page_bytes - 1) / page_bytes;
  const std::uint64_t largest = space_.largest_extent();
  LODE_ASSIGN(const Extent extent,
              space_.allocate(least, std::max(least, std::min(largest, next_extent_pages_))));
  next_extent_pages_ = std::min(largest, next_extent_pages_ * 2);
  extents_.push_back(extent);
  flushed_ = extent.first.value * page_bytes;
  buffered_ = 0;
  limit_ = flushed_ + extent.pages * page_bytes;
  return flushed_;
}

Status ExtentStream::append(ConstBytes data) {
  LODE_CHECK(flushed_ + buffered_ + data.size() <= limit_, "an append was reserved");
  while (!data.empty()) {
    if (buffered_ == buffer_.size()) LODE_TRY(flush(false));
    const std::size_t part = std::min(data.size(), buffer_.size() - buffered_);
    std::memcpy(buffer_.data() + buffered_, data.data(), part);
    buffered_ += part;
    data = data.subspan(part);
  }
  return {};
}

Result<std::vector<Extent>> ExtentStream::finish() {
  LODE_TRY(close_extent());
  return std::exchange(extents_, {});
}

}  // namespace lode
