#include "engine/file/disk.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/check.h"

namespace lode {

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  size_ = (bytes + direct_alignment - 1) / direct_alignment * direct_alignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(direct_alignment, size_));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, size_);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  std::free(data_);
}

void AlignedBuffer::grow(std::size_t bytes, std::size_t kept) {
  if (bytes <= size_) return;
  AlignedBuffer larger(std::max(bytes, size_ * 2));
  kept = std::min(kept, size_);
  if (kept > 0) std::memcpy(larger.data_, data_, kept);
  *this = std::move(larger);
}

Status read_exactly(File& file, Bytes out, std::uint64_t offset) {
  LODE_ASSIGN(const std::size_t count, file.read_at(out, offset));
  if (count != out.size()) {
    return fail(ErrorKind::corruption, "the file ends before offset " +
                                           std::to_string(offset + out.size()) + " (at " +
                                           std::to_string(offset + count) + ")");
  }
  return {};
}

}  // namespace lode
