#include "harness/qualify/directory_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunk = 256 * 1024;

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

bool is_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Gives every piece of the file that is not a hole to `use(offset, bytes)`; false ends it.
template <class Use>
Status read_pieces(const std::string& path, const Use& use, std::uint64_t& size) {
  const File file(path, O_RDONLY);
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0)
    return fail(system_error("cannot read a file of a store", errno).at(path));
  size = static_cast<std::uint64_t>(info.st_size);
  std::vector<char> buffer(kChunk);
  off_t at = 0;
  while (at < info.st_size) {
    const off_t data = ::lseek(file.fd(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    at = data < 0 ? at : data;
    const off_t end = ::lseek(file.fd(), at, SEEK_HOLE);
    const off_t stop = end < 0 ? info.st_size : end;
    while (at < stop) {
      const auto want = static_cast<std::size_t>(std::min<off_t>(stop - at, kChunk));
      const ssize_t got = ::pread(file.fd(), buffer.data(), want, at);
      if (got <= 0) return fail(system_error("cannot read a file of a store", errno).at(path));
      if (!use(at, std::string_view(buffer.data(), static_cast<std::size_t>(got))))
        return fail(system_error("cannot copy a file of a store", errno).at(path));
      at += got;
    }
  }
  return {};
}

Status copy_file(const std::string& from, const std::string& to) {
  const File target(to, O_WRONLY | O_CREAT | O_EXCL);
  if (target.fd() < 0) return fail(system_error("cannot make a copy", errno).at(to));
  std::uint64_t size = 0;
  const auto write = [&](off_t offset, std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kPage) {
      const std::string_view page = bytes.substr(at, kPage);
      if (is_zero(page)) continue;
      if (::pwrite(target.fd(), page.data(), page.size(), offset + static_cast<off_t>(at)) !=
          static_cast<ssize_t>(page.size()))
        return false;
    }
    return true;
  };
  ASSAY_TRY(read_pieces(from, write, size));
  if (::ftruncate(target.fd(), static_cast<off_t>(size)) != 0)
    return fail(system_error("cannot make a copy as long as the file", errno).at(to));
  return {};
}

std::uint64_t add(std::uint64_t hash, std::string_view bytes) {
  // FNV-1a by words would be weak; eight bytes a step with a multiply and a shift are enough to
  // count distinct images.
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    hash = (hash ^ word) * 0x9fb21c651e98df25;
    hash ^= hash >> 32;
    bytes.remove_prefix(size);
  }
  return hash;
}

}  // namespace

Status copy_directory(const std::string& from, const std::string& to) {
  std::error_code code;
  fs::create_directories(to, code);
  if (code) return fail(Error(ErrorKind::environment, "cannot make a directory").at(to));
  fs::recursive_directory_iterator entries(from, code);
  for (; !code && entries != fs::end(entries); entries.increment(code)) {
    const std::string target = to + "/" + fs::relative(entries->path(), from, code).string();
    const fs::file_status status = entries->symlink_status(code);
    if (fs::is_directory(status)) {
      fs::create_directory(target, code);
    } else if (fs::is_symlink(status)) {
      fs::copy_symlink(entries->path(), target, code);
    } else if (fs::is_regular_file(status)) {
      ASSAY_TRY(copy_file(entries->path().string(), target));
    }
  }
  if (code)
    return fail(
        Error(ErrorKind::environment, "cannot copy a directory: " + code.message()).at(from));
  return {};
}

Status empty_directory(const std::string& path) {
  std::error_code code;
  std::vector<fs::path> inside;
  fs::directory_iterator entries(path, code);
  for (; !code && entries != fs::end(entries); entries.increment(code))
    inside.push_back(entries->path());
  for (const fs::path& one : inside)
    if (!code) fs::remove_all(one, code);
  if (code)
    return fail(
        Error(ErrorKind::environment, "cannot empty a directory: " + code.message()).at(path));
  return {};
}

Result<std::uint64_t> directory_hash(const std::string& path) {
  std::error_code code;
  std::vector<std::string> files;
  fs::recursive_directory_iterator entries(path, code);
  for (; !code && entries != fs::end(entries); entries.increment(code))
    if (fs::is_regular_file(entries->symlink_status(code)))
      files.push_back(fs::relative(entries->path(), path, code).string());
  if (code) return fail(Error(ErrorKind::environment, "cannot read a directory").at(path));
  std::sort(files.begin(), files.end());
  std::uint64_t hash = files.size();
  for (const std::string& file : files) {
    std::uint64_t size = 0;
    hash = add(hash, file);
    const auto use = [&](off_t offset, std::string_view bytes) {
      for (std::size_t at = 0; at < bytes.size(); at += kPage) {
        const std::string_view page = bytes.substr(at, kPage);
        if (is_zero(page)) continue;  // a hole reads the same
        hash = add(hash ^ static_cast<std::uint64_t>(offset + static_cast<off_t>(at)), page);
      }
      return true;
    };
    ASSAY_TRY(read_pieces(path + "/" + file, use, size));
    hash = add(hash ^ size, "size");
  }
  return hash;
}

}  // namespace assay::qualify
