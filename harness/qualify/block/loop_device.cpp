#include "harness/qualify/block/loop_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace assay::qualify::block {
namespace {

constexpr std::string_view kMark = "assay-qualify ";
constexpr int kAttempts = 50;  ///< other programs take free devices, too

/// Calls `see` with each loop device of ours: its path, an open descriptor and the owner's pid.
template <class See>
void for_each_marked(const See& see) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block", code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("loop") || !std::filesystem::exists(entry.path() / "loop", code))
      continue;
    const std::string path = "/dev/" + name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    loop_info64 info{};
    if (::ioctl(fd, LOOP_GET_STATUS64, &info) == 0) {
      const std::string_view mark(reinterpret_cast<const char*>(info.lo_file_name));
      if (mark.starts_with(kMark))
        see(path, fd, std::atoi(std::string(mark.substr(kMark.size())).c_str()));
    }
    ::close(fd);
  }
}

}  // namespace

Result<LoopDevice> LoopDevice::attach(const std::string& file) {
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0)
    return fail(system_error("cannot ask for a loop device", errno).at("/dev/loop-control"));
  const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
  if (backing < 0) {
    const int code = errno;
    ::close(control);
    return fail(system_error("cannot open the disk", code).at(file));
  }
  loop_config config{};
  config.fd = static_cast<__u32>(backing);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  const std::string mark = fmt::format("{}{}", kMark, ::getpid());
  std::memcpy(config.info.lo_file_name, mark.data(), mark.size());
  int code = EBUSY;
  std::string path;
  int fd = -1;
  for (int attempt = 0; attempt < kAttempts && code == EBUSY; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) {
      code = errno;
      break;
    }
    path = fmt::format("/dev/loop{}", number);
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
      code = errno;
      break;
    }
    code = ::ioctl(fd, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
    if (code == EINVAL && (config.info.lo_flags & LO_FLAGS_DIRECT_IO) != 0) {
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
      code = ::ioctl(fd, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
    }
    if (code != 0) ::close(fd);
  }
  ::close(control);
  ::close(backing);
  if (code != 0)
    return fail(system_error("cannot attach a loop device to the disk", code).at(path));
  return LoopDevice(path, fd);
}

LoopDevice::LoopDevice(LoopDevice&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

LoopDevice::~LoopDevice() {
  if (fd_ < 0) return;
  ::ioctl(fd_, LOOP_CLR_FD);
  ::close(fd_);
}

Status LoopDevice::forget_cache() const {
  if (::ioctl(fd_, BLKFLSBUF) != 0)
    return fail(system_error("cannot empty the cache of a loop device", errno).at(path_));
  return {};
}

int clear_stale_loops() {
  int cleared = 0;
  for_each_marked([&](const std::string& /*path*/, int fd, int owner) {
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH)
      cleared += ::ioctl(fd, LOOP_CLR_FD) == 0 ? 1 : 0;
  });
  return cleared;
}

std::vector<MarkedLoop> marked_loops() {
  std::vector<MarkedLoop> all;
  for_each_marked(
      [&](const std::string& path, int /*fd*/, int owner) { all.push_back({path, owner}); });
  return all;
}

}  // namespace assay::qualify::block
