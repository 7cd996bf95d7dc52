#include "harness/qualify/block/shared_disk.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace assay::qualify::block {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

struct SharedDisk::Header {
  std::atomic<std::uint32_t> length;
  std::atomic<std::uint32_t> full;
  std::atomic<std::uint64_t> data_bytes;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

Result<SharedDisk> SharedDisk::make(const Size& size) {
  const std::uint64_t bytes = kPage + whole_pages(size.entries * sizeof(LogEntry)) +
                              whole_pages(size.image_bytes) + whole_pages(size.log_bytes);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error(fmt::format("cannot share {} bytes for a disk", bytes), errno));
  return SharedDisk(size, memory, bytes);
}

SharedDisk::SharedDisk(const Size& size, void* memory, std::uint64_t bytes)
    : size_(size), memory_(memory), bytes_(bytes) {
  char* const start = static_cast<char*>(memory) + kPage;
  entries_ = reinterpret_cast<LogEntry*>(start);
  image_ = start + whole_pages(size.entries * sizeof(LogEntry));
  data_ = image_ + whole_pages(size.image_bytes);
}

SharedDisk::SharedDisk(SharedDisk&& other) noexcept
    : size_(other.size_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      entries_(other.entries_),
      image_(other.image_),
      data_(other.data_) {}

SharedDisk::~SharedDisk() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

void SharedDisk::wipe() {
  header().length.store(0);
  header().full.store(0);
  header().data_bytes.store(0);
  const std::uint64_t rest = bytes_ - kPage;
  if (::madvise(static_cast<char*>(memory_) + kPage, rest, MADV_REMOVE) != 0)
    std::memset(image_, 0, size_.image_bytes);
}

bool SharedDisk::append(LogEntry::Kind kind, std::uint64_t offset, std::uint64_t bytes,
                        const char* data) {
  const std::uint32_t at = header().length.load();
  const std::uint64_t place = header().data_bytes.load();
  const bool carries = kind == LogEntry::Kind::write;
  if (at == size_.entries || (carries && size_.log_bytes - place < bytes)) {
    header().full.store(1);
    return false;
  }
  entries_[at] = {.kind = kind, .offset = offset, .bytes = bytes, .data = place};
  if (carries) {
    std::memcpy(data_ + place, data, bytes);
    header().data_bytes.store(place + bytes);
  }
  header().length.store(at + 1);
  return true;
}

std::uint32_t SharedDisk::length() const {
  return header().length.load();
}

bool SharedDisk::full() const {
  return header().full.load() != 0;
}

const std::atomic<std::uint32_t>& SharedDisk::length_counter() const {
  return header().length;
}

}  // namespace assay::qualify::block
