#include "harness/measure/residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

namespace assay {
namespace {

namespace fs = std::filesystem;

class File {
 public:
  File(const std::string& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~File() {
    if (file_ >= 0) ::close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// cachestat(2) has no wrapper in glibc 2.36 and its structures are not in Debian 12's headers.
struct CacheRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< 0 = to the end
};
struct CacheState {
  std::uint64_t cached = 0;  ///< pages
  std::uint64_t dirty = 0;
  std::uint64_t write_back = 0;
  std::uint64_t evicted = 0;
  std::uint64_t recently_evicted = 0;
};
constexpr long kCachestatCall = 451;  // the same number on every architecture

/// Pages of an open file in the cache; nothing where the kernel has no cachestat or refuses it.
std::optional<std::uint64_t> cached_pages(int file) {
  CacheRange range;
  CacheState state;
  if (::syscall(kCachestatCall, file, &range, &state, 0U) != 0) return std::nullopt;
  return state.cached;
}

Result<std::uint64_t> mapped_pages(int file, std::uint64_t bytes, const std::string& path) {
  // One piece at a time, so that a file larger than the address space limit can be looked at.
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 30;
  std::uint64_t pages = 0;
  std::vector<unsigned char> present;
  for (std::uint64_t offset = 0; offset < bytes; offset += kPiece) {
    const std::uint64_t length = std::min(kPiece, bytes - offset);
    void* const map =
        ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, static_cast<off_t>(offset));
    if (map == MAP_FAILED)
      return fail(system_error("cannot map a file to see what is cached", errno).at(path));
    present.assign((length + page_bytes() - 1) / page_bytes(), 0);
    const int status = ::mincore(map, length, present.data());
    const int code = errno;
    ::munmap(map, length);
    if (status != 0) return fail(system_error("cannot see what is cached", code).at(path));
    pages += static_cast<std::uint64_t>(
        std::ranges::count_if(present, [](unsigned char page) { return (page & 1) != 0; }));
  }
  return pages;
}

Status add_file(const std::string& path, bool use_cachestat, Residency& sum) {
  const File file(path, O_RDONLY | O_NOFOLLOW);
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    if (errno == ENOENT) return {};  // removed meanwhile, by a compaction for example
    return fail(system_error("cannot open a file to see what is cached", errno).at(path));
  }
  const auto apparent = static_cast<std::uint64_t>(status.st_size);
  const auto allocated = static_cast<std::uint64_t>(status.st_blocks) * 512;
  const std::uint64_t whole_pages = (apparent + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::uint64_t bytes = std::min(whole_pages, allocated);
  std::optional<std::uint64_t> pages;
  if (use_cachestat) pages = cached_pages(file.get());
  if (!pages) {
    const Result<std::uint64_t> mapped = mapped_pages(file.get(), apparent, path);
    if (!mapped) return std::unexpected(mapped.error());
    pages = *mapped;
  }
  sum.total_bytes += bytes;
  // Holes that were read are cached too; they would hide the absence of real pages of other files.
  sum.resident_bytes += std::min(*pages * page_bytes(), bytes);
  return {};
}

/// Calls `visit` for each regular file below `directory`.
template <class Visit>
Status for_each_file(const std::string& directory, Visit visit) {
  std::error_code code;
  fs::recursive_directory_iterator entry(directory, code);
  if (code) return fail(system_error("cannot list a directory", code.value()).at(directory));
  for (; entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    if (code) return fail(system_error("cannot list a directory", code.value()).at(directory));
    std::error_code gone;
    if (!entry->is_symlink(gone) && entry->is_regular_file(gone))
      ASSAY_TRY(visit(entry->path().string()));
  }
  return {};
}

Result<Residency> look(const std::string& directory, bool use_cachestat) {
  Residency sum;
  ASSAY_TRY(for_each_file(
      directory, [&](const std::string& path) { return add_file(path, use_cachestat, sum); }));
  return sum;
}

}  // namespace

double Residency::fraction() const {
  return total_bytes == 0 ? 0.0
                          : static_cast<double>(resident_bytes) / static_cast<double>(total_bytes);
}

Result<Residency> residency(const std::string& directory) {
  return look(directory, true);
}

Result<Residency> residency_by_mincore(const std::string& directory) {
  return look(directory, false);
}

Status drop_files(const std::string& directory) {
  return for_each_file(directory, [](const std::string& path) -> Status {
    const File file(path, O_RDONLY | O_NOFOLLOW);
    if (file.get() < 0) {
      if (errno == ENOENT) return {};
      return fail(system_error("cannot open a file to drop it from the cache", errno).at(path));
    }
    // Dirty pages cannot be dropped.
    if (::fsync(file.get()) != 0)
      return fail(system_error("cannot write a file back before dropping it", errno).at(path));
    const int code = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    if (code != 0) return fail(system_error("cannot drop a file from the cache", code).at(path));
    return {};
  });
}

Status drop_caches() {
  const std::string path = "/proc/sys/vm/drop_caches";
  ::sync();
  const File file(path, O_WRONLY);
  if (file.get() < 0 || ::write(file.get(), "3", 1) != 1) {
    return fail(system_error("cannot drop the caches of the machine", errno)
                    .at(path)
                    .hint("run as root, or use the cache policy cold-files"));
  }
  return {};
}

}  // namespace assay
