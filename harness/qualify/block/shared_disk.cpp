#include "harness/qualify/block/shared_disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace assay::qualify::block {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSpillStep = std::uint64_t{16} << 20;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

struct SharedDisk::Header {
  std::atomic<std::uint32_t> length;
  std::atomic<std::uint32_t> full;
  std::atomic<std::uint64_t> data_bytes;
  std::atomic<std::uint64_t> spilled;  ///< bytes of the file that have room on its disk
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

Result<SharedDisk> SharedDisk::make(const Size& given) {
  Size size = given;
  // The file is mapped right behind the memory.
  size.log_bytes = whole_pages(size.log_bytes);
  size.spill_bytes = whole_pages(size.spill_bytes);
  const std::uint64_t bytes = kPage + whole_pages(size.entries * sizeof(LogEntry)) +
                              whole_pages(size.image_bytes) + size.log_bytes;
  void* const memory = ::mmap(nullptr, bytes + size.spill_bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error(fmt::format("cannot share {} bytes for a disk", bytes), errno));
  SharedDisk disk(size, memory, bytes, -1);
  if (size.spill_bytes == 0) return disk;
  std::string name = size.spill_directory + "/disk-log-XXXXXX";
  disk.spill_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (disk.spill_ < 0)
    return fail(system_error("cannot make a file for a disk's log", errno).at(name));
  ::unlink(name.c_str());
  if (::ftruncate(disk.spill_, static_cast<off_t>(size.spill_bytes)) != 0 ||
      ::mmap(static_cast<char*>(memory) + bytes, size.spill_bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, disk.spill_, 0) == MAP_FAILED)
    return fail(system_error("cannot map a file for a disk's log", errno).at(name));
  return disk;
}

SharedDisk::SharedDisk(const Size& size, void* memory, std::uint64_t bytes, int spill)
    : size_(size), memory_(memory), bytes_(bytes), spill_(spill) {
  char* const start = static_cast<char*>(memory) + kPage;
  entries_ = reinterpret_cast<LogEntry*>(start);
  image_ = start + whole_pages(size.entries * sizeof(LogEntry));
  data_ = image_ + whole_pages(size.image_bytes);
}

SharedDisk::SharedDisk(SharedDisk&& other) noexcept
    : size_(other.size_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      spill_(std::exchange(other.spill_, -1)),
      entries_(other.entries_),
      image_(other.image_),
      data_(other.data_) {}

SharedDisk::~SharedDisk() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_ + size_.spill_bytes);
  if (spill_ >= 0) ::close(spill_);
}

void SharedDisk::wipe() {
  header().length.store(0);
  header().full.store(0);
  header().data_bytes.store(0);
  header().spilled.store(0);
  const std::uint64_t rest = bytes_ - kPage;
  if (::madvise(static_cast<char*>(memory_) + kPage, rest, MADV_REMOVE) != 0)
    std::memset(image_, 0, size_.image_bytes);
  // What cannot be given back is written over.
  if (spill_ >= 0 && ::ftruncate(spill_, 0) == 0)
    static_cast<void>(!::ftruncate(spill_, static_cast<off_t>(size_.spill_bytes)));
}

/// Room on the disk for the log's data up to `end`: a page of a mapping for which there is none is
/// a fatal signal.
bool SharedDisk::reserve(std::uint64_t end) {
  if (end <= size_.log_bytes) return true;
  const std::uint64_t wanted = end - size_.log_bytes;
  if (wanted > size_.spill_bytes) return false;
  const std::uint64_t there = header().spilled.load();
  if (wanted <= there) return true;
  const std::uint64_t more =
      std::min(size_.spill_bytes, (wanted + kSpillStep - 1) / kSpillStep * kSpillStep);
  if (::posix_fallocate(spill_, static_cast<off_t>(there), static_cast<off_t>(more - there)) != 0)
    return false;
  header().spilled.store(more);
  return true;
}

bool SharedDisk::append(LogEntry::Kind kind, std::uint64_t offset, std::uint64_t bytes,
                        const char* data) {
  const std::uint32_t at = header().length.load();
  const std::uint64_t place = header().data_bytes.load();
  const bool carries = kind == LogEntry::Kind::write;
  if (at == size_.entries || (carries && !reserve(place + bytes))) {
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
