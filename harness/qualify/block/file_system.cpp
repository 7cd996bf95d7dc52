#include "harness/qualify/block/file_system.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace assay::qualify::block {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

const std::array<FileSystem, 4>& all_file_systems() {
  // As small as each can be made: a cut is mounted, recovered and unmounted. What is left to later
  // by default (inode tables, the journal's blocks) is made at once, else a thread of the kernel
  // would write it while the store is recorded. Blocks are those of a file system of usual size.
  static const std::array<FileSystem, 4> all = {{
      {.name = "ext4",
       .type = "ext4",
       .image_bytes = 48 * kMiB,
       .make = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E",
                "lazy_itable_init=0,lazy_journal_init=0"}},
      {.name = "ext4-nojournal",
       .type = "ext4",
       .image_bytes = 48 * kMiB,
       .make = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E",
                "lazy_itable_init=0"},
       .repair = {"e2fsck", "-f", "-y"}},
      {.name = "xfs",
       .type = "xfs",
       .image_bytes = 300 * kMiB,
       .make = {"mkfs.xfs", "-q", "-f"},
       // Several lanes have the same file system mounted, each from a disk of its own.
       .mount_options = "nouuid"},
      {.name = "btrfs",
       .type = "btrfs",
       .image_bytes = 128 * kMiB,
       .make = {"mkfs.btrfs", "-q", "-f"},
       .physical_extents = false,
       .one_at_a_time = true},
  }};
  return all;
}

/// Where administrators' programs are, which PATH may leave out.
std::string find_program(const std::string& name) {
  for (const char* const folder : {"/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"}) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

/// Runs a program to its end; its output and errors together. Exit statuses up to `good` are no
/// error.
Status run_program(const std::vector<std::string>& words, std::string& output, int good = 0) {
  const std::string path = find_program(words.front());
  if (path.empty())
    return fail(ErrorKind::environment, fmt::format("{} is not installed", words.front()));
  std::array<int, 2> pipe;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot fork", errno));
  if (child == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::execv(path.c_str(), arguments.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(pipe[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) <= good) return {};
  std::string said = output.substr(0, 400);
  for (char& letter : said) letter = letter == '\n' ? ' ' : letter;
  return fail(ErrorKind::environment, fmt::format("{} failed: {}", words.front(), said));
}

std::string device_lacking(const char* path, const char* what) {
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    ::close(fd);
    return {};
  }
  return fmt::format("{} cannot be opened ({}): {}", path, std::strerror(errno), what);
}

bool kernel_has(const std::string& name) {
  std::ifstream file("/proc/filesystems");
  std::string word;
  while (file >> word)
    if (word == name) return true;
  return false;
}

/// What stands behind `label` up to the end of the line.
std::string line_after(const std::string& text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string::npos) return {};
  const std::size_t from = text.find_first_not_of(" \t", at + label.size());
  if (from == std::string::npos) return {};
  return text.substr(from, text.find('\n', from) - from);
}

std::string features_of(const FileSystem& system, const std::string& device,
                        const std::string& directory) {
  std::string text;
  if (system.type == "ext4") {
    if (!run_program({"dumpe2fs", "-h", device}, text)) return "unknown";
    std::string features = line_after(text, "Filesystem features:");
    // It is mounted just now: a state, and no feature.
    constexpr std::string_view kMounted = " needs_recovery";
    if (const std::size_t at = features.find(kMounted); at != std::string::npos)
      features.erase(at, kMounted.size());
    return features;
  }
  if (system.type == "xfs") {
    if (!run_program({"xfs_info", directory}, text)) return "unknown";
    std::string features;
    for (const std::string_view wanted :
         {"crc=", "finobt=", "sparse=", "rmapbt=", "reflink=", "bigtime=", "lazy-count="}) {
      const std::size_t at = text.find(wanted);
      if (at == std::string::npos) continue;
      const std::size_t end = text.find_first_of(" ,\n", at);
      features += fmt::format("{}{}", features.empty() ? "" : " ", text.substr(at, end - at));
    }
    return features;
  }
  if (!run_program({"btrfs", "inspect-internal", "dump-super", device}, text)) return "unknown";
  std::string features;
  const std::size_t at = text.find("incompat_flags");
  if (at == std::string::npos) return features;
  const std::size_t end = text.find("cache_generation", at);
  std::istringstream lines(text.substr(at, end == std::string::npos ? end : end - at));
  std::string word;
  while (lines >> word)
    if (!word.starts_with("0x") && word != "|" && word != "(" && word != ")" &&
        word != "incompat_flags")
      features += (features.empty() ? "" : " ") + word;
  return features;
}

}  // namespace

Result<FileSystem> find_file_system(const std::string& name) {
  std::vector<std::string> names;
  for (const FileSystem& system : all_file_systems()) {
    if (system.name == name) return system;
    names.push_back(system.name);
  }
  return fail(Error(ErrorKind::bad_input, fmt::format("there is no file system '{}'", name))
                  .hint(fmt::format("valid: {}", fmt::join(names, ", "))));
}

std::string what_is_lacking(const FileSystem& system) {
  if (find_program(system.make.front()).empty())
    return fmt::format("{} is not installed (e2fsprogs, xfsprogs, btrfs-progs)",
                       system.make.front());
  if (!kernel_has(system.type))
    return fmt::format("this kernel does not have {} (/proc/filesystems)", system.type);
  if (std::string lacking = device_lacking("/dev/fuse",
                                           "the disk of level B is a FUSE file system, "
                                           "which needs root");
      !lacking.empty())
    return lacking;
  if (std::string lacking =
          device_lacking("/dev/loop-control", "level B needs root and loop devices");
      !lacking.empty())
    return lacking;
  const pid_t child = ::fork();
  if (child < 0) return "no process can be started";
  if (child == 0) ::_exit(enter_own_namespace() ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return "this process may not mount (a mount namespace of its own is refused): level B needs "
           "root";
  return {};
}

Status enter_own_namespace() {
  if (::unshare(CLONE_NEWNS) != 0)
    return fail(system_error("cannot have a mount namespace of its own", errno));
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail(system_error("cannot keep mounts to itself", errno));
  return {};
}

Status make_file_system(const FileSystem& system, const std::string& device) {
  std::vector<std::string> words = system.make;
  words.push_back(device);
  std::string output;
  return run_program(words, output);
}

Status repair_file_system(const FileSystem& system, const std::string& device) {
  if (system.repair.empty()) return {};
  std::vector<std::string> words = system.repair;
  words.push_back(device);
  std::string output;
  // 1: e2fsck has corrected all that it found.
  return run_program(words, output, 1);
}

nlohmann::json describe_file_system(const FileSystem& system, const std::string& device,
                                    const std::string& directory) {
  nlohmann::json all = {{"type", system.type},
                        {"features", features_of(system, device, directory)},
                        {"image_bytes", system.image_bytes}};
  struct statfs info{};
  if (::statfs(directory.c_str(), &info) == 0) all["block_bytes"] = info.f_bsize;
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string from;
    std::string to;
    std::string type;
    std::string options;
    if (words >> from >> to >> type >> options && to == directory) all["mount_options"] = options;
  }
  return all;
}

Status mount_file_system(const FileSystem& system, const std::string& device,
                         const std::string& directory) {
  if (::mount(device.c_str(), directory.c_str(), system.type.c_str(), 0,
              system.mount_options.c_str()) == 0)
    return {};
  return fail(system_error(fmt::format("cannot mount {}", system.type), errno).at(device));
}

Status unmount_file_system(const std::string& directory, bool discard) {
  if (discard) {
    // Spares the writing of what nobody will read: FS_IOC_SHUTDOWN without a flush of the log.
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
      constexpr std::uint32_t kWithoutLog = 2;
      std::uint32_t how = kWithoutLog;
      ::ioctl(fd, _IOR('X', 125, std::uint32_t), &how);
      ::close(fd);
    }
  }
  int code = 0;
  // Processes that were killed just now may still hold their files.
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (::umount2(directory.c_str(), 0) == 0) return {};
    code = errno;
    if (code != EBUSY) break;
    ::usleep(5'000);
  }
  return fail(system_error("cannot unmount", code).at(directory));
}

std::vector<Extent> extents_below(const std::string& directory) {
  std::vector<Extent> extents;
  std::error_code code;
  constexpr std::uint32_t kMost = 256;
  std::vector<char> room(sizeof(fiemap) + kMost * sizeof(fiemap_extent));
  for (const auto& entry : fs::recursive_directory_iterator(directory, code)) {
    if (!entry.is_regular_file(code)) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    std::ranges::fill(room, '\0');
    auto* const map = reinterpret_cast<fiemap*>(room.data());
    map->fm_length = FIEMAP_MAX_OFFSET;
    map->fm_extent_count = kMost;
    if (::ioctl(fd, FS_IOC_FIEMAP, map) == 0) {
      for (std::uint32_t index = 0; index < map->fm_mapped_extents; ++index) {
        const fiemap_extent& one = map->fm_extents[index];
        if ((one.fe_flags & FIEMAP_EXTENT_UNKNOWN) != 0) continue;
        extents.push_back({one.fe_physical, one.fe_length, one.fe_logical,
                           fs::relative(entry.path(), directory, code).string()});
      }
    }
    ::close(fd);
  }
  return extents;
}

}  // namespace assay::qualify::block
