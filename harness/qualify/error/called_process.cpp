#include "harness/qualify/error/called_process.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "harness/qualify/error/fault.h"

namespace assay::qualify::error {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;
constexpr std::uint64_t kAligned = 4096;
constexpr std::uint64_t kBuffersMax = 1024;

bool is_placed(int call) {
  return call == SYS_pwrite64 || call == SYS_pwritev || call == SYS_pwritev2;
}

bool is_gathered(int call) {
  return call == SYS_writev || call == SYS_pwritev || call == SYS_pwritev2;
}

bool removes_a_name(int call) {
#ifdef SYS_unlink
  if (call == SYS_unlink) return true;
#endif
  return call == SYS_unlinkat;
}

}  // namespace

bool CalledProcess::is_below(const std::string& path) const {
  return path.size() >= directory_.size() && path.starts_with(directory_) &&
         (path.size() == directory_.size() || path[directory_.size()] == '/');
}

std::string CalledProcess::link_of(const std::string& below_proc) const {
  std::array<char, 4096> text{};
  const std::string path = fmt::format("/proc/{}/{}", pid_, below_proc);
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

bool CalledProcess::read_memory(std::uint64_t address, void* into, std::size_t bytes) const {
  const iovec local{into, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

/// Up to the end of the page at a time: what is behind it may not be mapped.
std::string CalledProcess::text_at(std::uint64_t address) const {
  std::string text;
  while (text.size() < 4096) {
    std::array<char, 4096> part{};
    const std::size_t bytes = 4096 - address % 4096;
    if (!read_memory(address, part.data(), bytes)) return {};
    const auto* const end = std::find(part.data(), part.data() + bytes, '\0');
    text.append(static_cast<const char*>(part.data()), end);
    if (end != part.data() + bytes) return text;
    address += bytes;
  }
  return {};
}

CalledProcess::Descriptor CalledProcess::descriptor(int fd) const {
  Descriptor found;
  std::ifstream info(fmt::format("/proc/{}/fdinfo/{}", pid_, fd));
  std::string name;
  while (info >> name) {
    if (name == "pos:") {
      info >> found.position;
    } else if (name == "flags:") {
      info >> std::oct >> found.flags >> std::dec;
      break;
    }
  }
  return found;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> CalledProcess::buffers(
    const seccomp_data& call) const {
  if (!is_gathered(call.nr)) return {{call.args[1], call.args[2]}};
  std::vector<iovec> vectors(std::min<std::uint64_t>(call.args[2], kBuffersMax));
  if (vectors.empty() || !read_memory(call.args[1], vectors.data(), vectors.size() * sizeof(iovec)))
    return {};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const iovec& one : vectors)
    all.emplace_back(reinterpret_cast<std::uint64_t>(one.iov_base), one.iov_len);
  return all;
}

CalledFile CalledProcess::by_descriptor(const seccomp_data& call, int fd) const {
  CalledFile file;
  const std::string link = link_of(fmt::format("fd/{}", fd));
  if (!is_below(link)) return file;
  file.content = fmt::format("/proc/{}/fd/{}", pid_, fd);
  struct stat info{};
  if (::stat(file.content.c_str(), &info) != 0) return file;
  file.ours = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
  file.directory = S_ISDIR(info.st_mode);
  file.id = {info.st_dev, info.st_ino};
  file.name = link == directory_ ? "." : link.substr(directory_.size() + 1);
  const auto sort = sort_of(call.nr);
  if (sort == CallSort::write) {
    const Descriptor how = descriptor(fd);
    std::uint64_t bytes = 0;
    for (const auto& [address, size] : buffers(call)) bytes += size;
    std::uint64_t at = how.position;
    if (is_placed(call.nr)) at = call.args[3];
    if ((how.flags & O_APPEND) != 0) at = static_cast<std::uint64_t>(info.st_size);
    file.range = {.offset = at, .bytes = bytes};
    file.through = (how.flags & (O_DSYNC | O_DIRECT)) != 0 ||
                   (call.nr == SYS_pwritev2 && (call.args[5] & (RWF_DSYNC | RWF_SYNC)) != 0);
  } else if (call.nr == SYS_sync_file_range && call.args[2] != 0) {
    file.range = {.offset = call.args[1], .bytes = call.args[2]};
  }
  return file;
}

CalledFile CalledProcess::by_path(const seccomp_data& call, int directory, int path) const {
  CalledFile file;
  std::string text = text_at(call.args[static_cast<std::size_t>(path)]);
  if (text.empty()) return file;
  if (text[0] != '/') {
    const int at = directory < 0 ? AT_FDCWD : static_cast<int>(call.args[0]);
    text = link_of(at == AT_FDCWD ? std::string("cwd") : fmt::format("fd/{}", at)) + "/" + text;
  }
  if (!is_below(text)) return file;
  file.ours = true;
  file.content = text;
  file.name = text == directory_ ? "." : text.substr(directory_.size() + 1);
  struct stat info{};
  if (removes_a_name(call.nr) && ::lstat(text.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    file.id = {info.st_dev, info.st_ino};
    file.last_name = info.st_nlink == 1;
  }
  return file;
}

/// msync(): which file is mapped there.
CalledFile CalledProcess::by_address(const seccomp_data& call) const {
  CalledFile file;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  std::string line;
  while (std::getline(maps, line)) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) != 3) continue;
    if (call.args[0] < begin || call.args[0] >= end) continue;
    const std::size_t at = line.find('/');
    if (at == std::string::npos || !is_below(line.substr(at))) return file;
    file.content = line.substr(at);
    struct stat info{};
    if (::stat(file.content.c_str(), &info) != 0) return file;
    file.ours = true;
    file.id = {info.st_dev, info.st_ino};
    file.name = file.content.substr(directory_.size() + 1);
    file.range = {.offset = offset + call.args[0] - begin, .bytes = call.args[1]};
    return file;
  }
  return file;
}

CalledFile CalledProcess::file_of_call(const seccomp_data& call) const {
  if (call.nr == SYS_msync) return by_address(call);
  const FilePlace place = error::file_of(call.nr);
  if (place.descriptor >= 0)
    return by_descriptor(call,
                         static_cast<int>(call.args[static_cast<std::size_t>(place.descriptor)]));
  if (place.path >= 0) return by_path(call, place.directory, place.path);
  return {};
}

std::int64_t CalledProcess::write_half(const seccomp_data& call) const {
  if (sort_of(call.nr) != CallSort::write) return 0;
  const auto all = buffers(call);
  std::uint64_t bytes = 0;
  for (const auto& [address, size] : all) bytes += size;
  const int fd = static_cast<int>(call.args[0]);
  std::uint64_t half = bytes / 2;
  if ((descriptor(fd).flags & O_DIRECT) != 0) half -= half % kAligned;
  if (half == 0 || bytes > kBytesMax) return 0;
  std::vector<char> part;
  for (const auto& [address, size] : all) {
    const std::uint64_t take = std::min(size, half - part.size());
    part.resize(part.size() + take);
    if (take > 0 && !read_memory(address, part.data() + part.size() - take, take)) return 0;
  }
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (process < 0) return 0;
  const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, fd, 0));
  ::close(process);
  if (copy < 0) return 0;
  // O_DIRECT needs the buffer aligned as well.
  std::vector<char> room(part.size() + kAligned);
  char* const data =
      room.data() +
      (kAligned - reinterpret_cast<std::uintptr_t>(room.data()) % kAligned) % kAligned;
  std::ranges::copy(part, data);
  const ssize_t wrote = is_placed(call.nr)
                            ? ::pwrite(copy, data, part.size(), static_cast<off_t>(call.args[3]))
                            : ::write(copy, data, part.size());
  ::close(copy);
  return wrote;
}

}  // namespace assay::qualify::error
