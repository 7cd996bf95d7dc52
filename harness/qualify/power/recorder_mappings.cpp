// Shared mappings: placed in the window, write-protected by userfaultfd in its asynchronous mode,
// and asked by PAGEMAP_SCAN which pages were stored to. The scan arms them again before they are
// copied, so a store in between is seen next time.
//
// No descriptor of a followed file is ever opened for reading or writing and closed here: that
// would drop the process's record locks on it. O_PATH descriptors do not.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power::detail {
namespace {

// Newer than the headers of Debian 12: linux/fs.h and linux/userfaultfd.h of Linux 6.7.
constexpr std::uint64_t kAsynchronous = 1ULL << 15;  // UFFD_FEATURE_WP_ASYNC
constexpr std::uint64_t kUnpopulated = 1ULL << 13;   // UFFD_FEATURE_WP_UNPOPULATED
constexpr std::uint64_t kShared = 1ULL << 12;        // UFFD_FEATURE_WP_HUGETLBFS_SHMEM
constexpr std::uint64_t kProtectMatching = 1;        // PM_SCAN_WP_MATCHING
constexpr std::uint64_t kWritten = 2;                // PAGE_IS_WRITTEN
constexpr int kUserModeOnly = 1;                     // UFFD_USER_MODE_ONLY
struct Region {
  std::uint64_t start, end, categories;
};
struct ScanRequest {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMappings = 256;
constexpr int kHighDescriptor = 700;  ///< ours stay out of the way of the store's

struct Mapping {
  std::uint64_t address = 0;  ///< 0 = free
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  int file = -1;  ///< O_PATH
  bool armed = false;
};

Mapping mappings[kMappings];
std::size_t mapping_count = 0;  ///< slots in use are below it
std::uint64_t next_address = kWindowAt;
int fault_descriptor = -1;
int pagemap = -1;
long owner = 0;  ///< the process whose mappings these are

constexpr std::uint64_t pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

long move_up(long file) {
  if (file < 0) return file;
  const long moved = raw(SYS_fcntl, static_cast<std::uint64_t>(file), F_DUPFD_CLOEXEC,
                         static_cast<std::uint64_t>(kHighDescriptor));
  if (moved < 0) return file;
  raw(SYS_close, static_cast<std::uint64_t>(file));
  return moved;
}

std::uint64_t word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

bool prepare() {
  if (fault_descriptor >= 0) return true;
  long file = raw(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (file < 0) file = raw(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly);
  if (file < 0) return false;
  file = move_up(file);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kAsynchronous | kUnpopulated | kShared;
  if (raw(SYS_ioctl, static_cast<std::uint64_t>(file), UFFDIO_API, word(&api)) != 0) {
    raw(SYS_close, static_cast<std::uint64_t>(file));
    return false;
  }
  pagemap = static_cast<int>(move_up(raw(SYS_openat, static_cast<std::uint64_t>(AT_FDCWD),
                                         word("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC)));
  if (pagemap < 0) return false;
  fault_descriptor = static_cast<int>(file);
  return true;
}

bool arm(Mapping& mapping) {
  if (!prepare()) return false;
  uffdio_register request{};
  request.range.start = mapping.address;
  request.range.len = pages(mapping.bytes);
  request.mode = UFFDIO_REGISTER_MODE_WP;
  const auto file = static_cast<std::uint64_t>(fault_descriptor);
  if (raw(SYS_ioctl, file, UFFDIO_REGISTER, word(&request)) != 0) return false;
  uffdio_writeprotect protect{};
  protect.range = request.range;
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  if (raw(SYS_ioctl, file, UFFDIO_WRITEPROTECT, word(&protect)) != 0) return false;
  mapping.armed = true;
  return true;
}

void capture(const Mapping& mapping) {
  struct stat status{};
  if (raw(SYS_fstat, static_cast<std::uint64_t>(mapping.file), word(&status)) != 0) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t visible = size > mapping.offset ? size - mapping.offset : 0;
  const std::uint64_t end = mapping.address + std::min(pages(visible), pages(mapping.bytes));
  static Region regions[64];
  ScanRequest request{};
  request.size = sizeof request;
  request.flags = kProtectMatching;
  request.start = mapping.address;
  request.end = end;
  request.vec = word(regions);
  request.vec_len = std::size(regions);
  request.category_mask = kWritten;
  request.return_mask = kWritten;
  while (request.start < end) {
    const long found = raw(SYS_ioctl, static_cast<std::uint64_t>(pagemap), kScan, word(&request));
    if (found < 0) {
      refuse("the kernel cannot tell which pages of a mapping were written (Linux 6.7 is needed)");
      return;
    }
    for (long index = 0; index < found; ++index) {
      const Region& region = regions[index];
      RecordHead head{};
      head.kind = RecordKind::page;
      head.inode = mapping.inode;
      head.offset = mapping.offset + (region.start - mapping.address);
      head.data_bytes = std::min(region.end - region.start, size - head.offset);
      head.length = head.data_bytes;
      append(head, nullptr, nullptr, nullptr, reinterpret_cast<const void*>(region.start));
    }
    if (request.walk_end <= request.start) return;
    request.start = request.walk_end;
  }
}

Mapping* find(std::uint64_t address) {
  for (std::size_t index = 0; index < mapping_count; ++index) {
    Mapping& mapping = mappings[index];
    if (mapping.address != 0 && address >= mapping.address &&
        address < mapping.address + pages(mapping.bytes)) {
      return &mapping;
    }
  }
  return nullptr;
}

void forget(Mapping& mapping) {
  raw(SYS_close, static_cast<std::uint64_t>(mapping.file));
  mapping = Mapping{};
}

constexpr const char* kNoCapture =
    "the store writes through mappings and the kernel cannot tell which pages were written (Linux "
    "6.7 with userfaultfd is needed)";

long unmap(const Trapped& call) {
  const std::uint64_t from = call.arguments[0];
  const std::uint64_t to = from + pages(call.arguments[1]);
  const long result = raw(SYS_munmap, from, call.arguments[1]);
  if (result != 0) return result;
  for (std::size_t index = 0; index < mapping_count; ++index) {
    Mapping& mapping = mappings[index];
    const std::uint64_t end = mapping.address + pages(mapping.bytes);
    if (mapping.address == 0 || from >= end || to <= mapping.address) continue;
    if (from <= mapping.address && to >= end) {
      forget(mapping);
    } else if (from > mapping.address && to >= end) {
      mapping.bytes = from - mapping.address;
    } else if (from <= mapping.address) {
      mapping.offset += to - mapping.address;
      mapping.bytes = end - to;
      mapping.address = to;
    } else if (mapping.armed) {
      refuse("the store unmapped the middle of a mapping, which the recorder cannot follow");
    }
  }
  return result;
}

}  // namespace

void capture_mappings() {
  if (fault_descriptor < 0) return;
  if (raw(SYS_getpid) != owner) return;  // a fork has the mappings, not their protection
  for (std::size_t index = 0; index < mapping_count; ++index) {
    if (mappings[index].address != 0 && mappings[index].armed) capture(mappings[index]);
  }
}

long map_file(const Trapped& call, std::uint64_t inode) {
  const std::uint64_t bytes = call.arguments[1];
  const bool writable = (call.arguments[2] & PROT_WRITE) != 0;
  if ((call.arguments[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0 && writable) {
    refuse("the store maps a file at an address of its choice, which the recorder cannot follow");
  }
  std::uint64_t hint = call.arguments[0];
  if (hint == 0) {
    hint = next_address;
    next_address += pages(bytes) + (2ULL << 20);
    next_address = (next_address + (2ULL << 20) - 1) & ~((2ULL << 20) - 1);
  }
  const long result = raw(SYS_mmap, hint, bytes, call.arguments[2], call.arguments[3],
                          call.arguments[4], call.arguments[5]);
  if (result < 0 && result > -4096) return result;
  Mapping mapping;
  mapping.address = static_cast<std::uint64_t>(result);
  mapping.bytes = bytes;
  mapping.offset = call.arguments[5];
  mapping.inode = inode;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", static_cast<int>(call.arguments[4]));
  mapping.file = static_cast<int>(move_up(
      raw(SYS_openat, static_cast<std::uint64_t>(AT_FDCWD), word(path), O_PATH | O_CLOEXEC)));
  owner = raw(SYS_getpid);
  if (writable && (mapping.address < kWindowAt || mapping.address >= kWindowEnd)) {
    refuse("a mapping could not be placed where the recorder sees it go");
  }
  if (writable && !arm(mapping)) refuse(kNoCapture);
  for (std::size_t index = 0; index < kMappings; ++index) {
    if (mappings[index].address != 0) continue;
    mappings[index] = mapping;
    mapping_count = std::max(mapping_count, index + 1);
    return result;
  }
  refuse("the store has more shared mappings than the recorder can follow");
  return result;
}

long change_mapping(const Trapped& call) {
  if (call.number == SYS_munmap) return unmap(call);
  Mapping* const mapping = find(call.arguments[0]);
  if (call.number == SYS_mprotect) {
    const long result = raw(SYS_mprotect, call.arguments[0], call.arguments[1], call.arguments[2]);
    const bool writable = (call.arguments[2] & PROT_WRITE) != 0;
    if (result == 0 && writable && mapping != nullptr && !mapping->armed && !arm(*mapping)) {
      refuse(kNoCapture);
    }
    return result;
  }
  const long result = raw(SYS_mremap, call.arguments[0], call.arguments[1], call.arguments[2],
                          call.arguments[3], call.arguments[4]);
  if (mapping == nullptr || (result < 0 && result > -4096)) return result;
  if (mapping->armed) {
    refuse("the store moved or grew a writable mapping, which the recorder cannot follow");
  }
  mapping->address = static_cast<std::uint64_t>(result);
  mapping->bytes = call.arguments[2];
  return result;
}

std::uint64_t mapped_inode(std::uint64_t address, std::uint64_t& offset) {
  const Mapping* const mapping = find(address);
  if (mapping == nullptr) return 0;
  offset = mapping->offset + (address - mapping->address);
  return mapping->inode;
}

}  // namespace assay::qualify::power::detail
