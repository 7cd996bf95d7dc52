#include "harness/qualify/error/disk_below.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "harness/qualify/directory_image.h"

namespace assay::qualify::error {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPage = 4096;
/// Of a write without an end (a mapping, a file larger than any store makes here).
constexpr std::uint64_t kPagesMax = 1 << 16;

std::string content_of(const std::string& path) {
  std::string bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bytes;
  struct stat info{};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    bytes.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(info.st_size), kPagesMax * kPage)));
    std::size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t got = ::pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    bytes.resize(at);
  }
  ::close(fd);
  return bytes;
}

std::string_view page_of(const std::string& bytes, std::uint64_t page) {
  if (page * kPage >= bytes.size()) return {};
  return std::string_view(bytes).substr(page * kPage, kPage);
}

/// Beyond the end of what was there are zeros.
bool same(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.substr(0, a.size()) != a) return false;
  return std::ranges::all_of(b.substr(a.size()), [](char byte) { return byte == '\0'; });
}

void put_page(std::string& into, std::uint64_t page, std::string_view bytes) {
  const std::uint64_t begin = page * kPage;
  if (into.size() < begin + bytes.size()) into.resize(begin + bytes.size(), '\0');
  std::fill(into.begin() + static_cast<std::ptrdiff_t>(begin),
            into.begin() + static_cast<std::ptrdiff_t>(std::min(into.size(), begin + kPage)), '\0');
  into.replace(begin, bytes.size(), bytes);
}

std::uint64_t pages_of(const std::string& bytes) {
  return (bytes.size() + kPage - 1) / kPage;
}

std::uint64_t end_page(const FileRange& range) {
  if (range.bytes > kPagesMax * kPage - std::min(range.offset, kPagesMax * kPage)) return kPagesMax;
  return (range.offset + range.bytes + kPage - 1) / kPage;
}

FileId id_of(const struct stat& info) {
  return {info.st_dev, info.st_ino};
}

}  // namespace

Status DiskBelow::begin(const std::string& directory) {
  files_.clear();
  std::error_code code;
  for (fs::recursive_directory_iterator at(directory, code), end; !code && at != end;
       at.increment(code)) {
    struct stat info{};
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    File& file = files_[id_of(info)];
    file.disk = content_of(at->path());
    file.seen = file.disk;
  }
  if (code)
    return fail(ErrorKind::environment, "cannot read a store's directory: " + code.message());
  return {};
}

bool DiskBelow::is_dirty(const File& file, const std::string& now, std::uint64_t page) {
  return file.written.contains(page) || !same(page_of(now, page), page_of(file.seen, page));
}

/// What a write through has put on the disk, as soon as it has happened.
void DiskBelow::absorb(File& file, const std::string& content) {
  if (file.through.empty()) return;
  const std::string now = content_of(content);
  for (const std::uint64_t page : file.through) {
    put_page(file.disk, page, page_of(now, page));
    put_page(file.seen, page, page_of(now, page));
    file.written.erase(page);
  }
  file.through.clear();
}

void DiskBelow::writes(FileId id, const std::string& content, FileRange range, bool through) {
  File& file = files_[id];
  absorb(file, content);
  for (std::uint64_t page = range.offset / kPage; page < end_page(range); ++page)
    (through ? file.through : file.written).insert(page);
}

void DiskBelow::synced(FileId id, const std::string& content, FileRange range) {
  File& file = files_[id];
  absorb(file, content);
  const std::string now = content_of(content);
  const std::uint64_t end = std::min(end_page(range), pages_of(now));
  for (std::uint64_t page = range.offset / kPage; page < end; ++page) {
    if (!is_dirty(file, now, page)) continue;
    put_page(file.disk, page, page_of(now, page));
    put_page(file.seen, page, page_of(now, page));
    file.written.erase(page);
  }
}

void DiskBelow::sync_failed(FileId id, const std::string& content, FileRange range) {
  File& file = files_[id];
  absorb(file, content);
  const std::string now = content_of(content);
  const std::uint64_t end = std::min(end_page(range), pages_of(now));
  for (std::uint64_t page = range.offset / kPage; page < end; ++page) {
    put_page(file.seen, page, page_of(now, page));
    file.written.erase(page);
  }
}

Result<std::uint64_t> DiskBelow::write_out(const std::string& directory,
                                           const std::string& to) const {
  ASSAY_TRY(copy_directory(directory, to));
  std::uint64_t dropped = 0;
  std::error_code code;
  for (fs::recursive_directory_iterator at(directory, code), end; !code && at != end;
       at.increment(code)) {
    struct stat info{};
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto known = files_.find(id_of(info));
    if (known == files_.end()) continue;
    const std::string now = content_of(at->path());
    const std::string copy = to + "/" + at->path().lexically_relative(directory).string();
    for (std::uint64_t page = 0; page < pages_of(now); ++page) {
      const File& file = known->second;
      const std::string_view on_disk = page_of(file.disk, page);
      if (file.through.contains(page) || is_dirty(file, now, page) ||
          same(on_disk, page_of(now, page)))
        continue;
      std::string bytes(on_disk);
      bytes.resize(page_of(now, page).size(), '\0');
      const int fd = ::open(copy.c_str(), O_WRONLY | O_CLOEXEC);
      const ssize_t wrote =
          fd < 0 ? -1 : ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(page * kPage));
      if (fd >= 0) ::close(fd);
      if (wrote != static_cast<ssize_t>(bytes.size()))
        return fail(system_error("cannot write a page of a state", errno));
      ++dropped;
    }
  }
  if (code)
    return fail(ErrorKind::environment, "cannot read a store's directory: " + code.message());
  return dropped;
}

}  // namespace assay::qualify::error
