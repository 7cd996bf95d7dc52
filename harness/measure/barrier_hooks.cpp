// Stands in for the libc functions that flush or write, counts, and makes the system call.
// See barriers.h. The functions must not allocate, lock or call anything that could come back here:
// they run inside stores' threads, in static constructors and before main().
//
// Which descriptors are O_DSYNC is kept in a bitmap that open() and its kin set or clear, so
// that a descriptor number that is used again can never inherit a stale mark.

// Fortified headers define some of these functions inline.
#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "harness/measure/barrier_table.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// A sanitizer interposes the same functions; ours would switch its checks off.
extern "C" const assay::BarrierTable* assay_barrier_table() {
  return nullptr;
}

#else

namespace {

assay::BarrierTable table;

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kTracked = 65'536;  ///< descriptors above are asked for their flags
std::array<std::atomic<std::uint64_t>, kTracked / kWordBits> dsync_descriptors;
/// Descriptors marked so far; zero in most programs, which makes the test a single load.
std::atomic<std::uint64_t> marks{0};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

bool is_tracked(int file) {
  return file >= 0 && static_cast<std::size_t>(file) < kTracked;
}

bool is_dsync(int file) {
  if (marks.load(std::memory_order_relaxed) == 0) return false;
  if (is_tracked(file)) [[likely]] {
    const auto at = static_cast<std::size_t>(file);
    const std::uint64_t word = dsync_descriptors[at / kWordBits].load(std::memory_order_relaxed);
    return (word >> (at % kWordBits) & 1) != 0;
  }
  const long flags = file < 0 ? -1 : ::syscall(SYS_fcntl, file, F_GETFL);
  return flags >= 0 && (flags & O_DSYNC) != 0;
}

/// Remembers what a new descriptor is. O_SYNC contains the bit of O_DSYNC.
int opened(long file, bool dsync) {
  if (file >= 0 && dsync) add(marks);
  if (file >= 0 && is_tracked(static_cast<int>(file))) {
    const auto at = static_cast<std::size_t>(file);
    const std::uint64_t bit = std::uint64_t{1} << (at % kWordBits);
    auto& word = dsync_descriptors[at / kWordBits];
    if (dsync)
      word.fetch_or(bit, std::memory_order_relaxed);
    else if ((word.load(std::memory_order_relaxed) & bit) != 0)
      word.fetch_and(~bit, std::memory_order_relaxed);
  }
  return static_cast<int>(file);
}

ssize_t wrote(int file, ssize_t result, bool flagged = false) {
  if (result >= 0) {
    add(table.write_calls);
    add(table.write_bytes, static_cast<std::uint64_t>(result));
    if (flagged || is_dsync(file)) add(table.dsync_writes);
  }
  return result;
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  return opened(::syscall(SYS_openat, directory, path, flags, mode), (flags & O_DSYNC) != 0);
}

bool takes_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

int control(int file, int command, void* argument) {
  const long result = ::syscall(SYS_fcntl, file, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return opened(result, is_dsync(file));
  return static_cast<int>(result);
}

}  // namespace

extern "C" {

const assay::BarrierTable* assay_barrier_table() {
  return &table;
}

int fsync(int file) {
  add(table.fsync);
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  add(table.fdatasync);
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

int msync(void* address, std::size_t length, int flags) {
  if ((flags & MS_SYNC) != 0) add(table.msync);
  return static_cast<int>(::syscall(SYS_msync, address, length, flags));
}

int sync_file_range(int file, off64_t offset, off64_t length, unsigned flags) {
  add(table.sync_file_range);
  return static_cast<int>(::syscall(SYS_sync_file_range, file, offset, length, flags));
}

int syncfs(int file) noexcept {
  add(table.syncfs);
  return static_cast<int>(::syscall(SYS_syncfs, file));
}

void sync() noexcept {
  add(table.syncfs);
  ::syscall(SYS_sync);
}

ssize_t write(int file, const void* data, std::size_t size) {
  return wrote(file, ::syscall(SYS_write, file, data, size));
}

ssize_t pwrite(int file, const void* data, std::size_t size, off_t offset) {
  return wrote(file, ::syscall(SYS_pwrite64, file, data, size, offset));
}

ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t offset) {
  return wrote(file, ::syscall(SYS_pwrite64, file, data, size, offset));
}

ssize_t writev(int file, const iovec* parts, int count) {
  return wrote(file, ::syscall(SYS_writev, file, parts, count));
}

// The kernel takes the offset of the vector calls in two halves; on 64 bits the first is all of it.
ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  return wrote(file, ::syscall(SYS_pwritev, file, parts, count, offset, 0));
}

ssize_t pwritev64(int file, const iovec* parts, int count, off64_t offset) {
  return wrote(file, ::syscall(SYS_pwritev, file, parts, count, offset, 0));
}

ssize_t pwritev2(int file, const iovec* parts, int count, off_t offset, int flags) {
  return wrote(file, ::syscall(SYS_pwritev2, file, parts, count, offset, 0, flags),
               (flags & (RWF_DSYNC | RWF_SYNC)) != 0);
}

ssize_t pwritev64v2(int file, const iovec* parts, int count, off64_t offset, int flags) {
  return pwritev2(file, parts, count, offset, flags);
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (takes_mode(flags)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (takes_mode(flags)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  mode_t mode = 0;
  if (takes_mode(flags)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return open_at(directory, path, flags, mode);
}

int openat64(int directory, const char* path, int flags, ...) {
  mode_t mode = 0;
  if (takes_mode(flags)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return open_at(directory, path, flags, mode);
}

// What fortified callers are compiled to when the flags are no constant.
// NOLINTBEGIN(bugprone-reserved-identifier): these are libc's names
int __open_2(const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags, 0);
}
int __openat_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags, 0);
}
int __openat64_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags, 0);
}
// NOLINTEND(bugprone-reserved-identifier)

int creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int close(int file) {
  // Before the call: afterwards the number may already be somebody else's.
  if (is_tracked(file)) opened(file, false);
  return static_cast<int>(::syscall(SYS_close, file));
}

int dup(int file) noexcept {
  return opened(::syscall(SYS_dup, file), is_dsync(file));
}

int dup2(int file, int target) noexcept {
  return opened(::syscall(SYS_dup2, file, target), is_dsync(file));
}

int dup3(int file, int target, int flags) noexcept {
  return opened(::syscall(SYS_dup3, file, target, flags), is_dsync(file));
}

// F_SETFL cannot change O_DSYNC on Linux (fcntl(2), "BUGS"), so only duplication matters.
int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return control(file, command, argument);
}

int fcntl64(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return control(file, command, argument);
}

}  // extern "C"

#endif
