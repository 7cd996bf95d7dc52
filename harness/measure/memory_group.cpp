#include "harness/measure/memory_group.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/kernel_file.h"

namespace assay {
namespace {

std::vector<std::string_view> words_of(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    words.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return words;
}

bool names_memory(std::string_view list) {
  for (const std::string_view word : words_of(list, ','))
    if (word == "memory") return true;
  return false;
}

struct Mount {
  std::string_view root;  ///< of the hierarchy, as /proc/self/cgroup counts
  std::string_view point;
};

std::optional<Mount> mount_of(std::string_view mountinfo, int version) {
  for (const std::string_view line : lines_of(mountinfo)) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> before = words_of(line.substr(0, dash), ' ');
    const std::vector<std::string_view> after = words_of(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    if (version == 1 ? after[0] == "cgroup" && names_memory(after[2]) : after[0] == "cgroup2")
      return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

std::optional<std::string_view> path_of(std::string_view cgroup, int version) {
  for (const std::string_view line : lines_of(cgroup)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (version == 1 ? names_memory(controllers) : controllers.empty())
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// What the kernel refuses is refused in write(), so no stream.
Status write_kernel_file(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(system_error("cannot open", errno).at(path));
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int code = errno;
  ::close(fd);
  if (written != static_cast<ssize_t>(text.size()))
    return fail(system_error(fmt::format("cannot write \"{}\"", text), code).at(path));
  return {};
}

/// The kernel lets go of a group a moment after its last process has ended.
void remove_group(const std::string& directory) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (::rmdir(directory.c_str()) == 0 || errno != EBUSY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// How the names of our groups begin. A process number says who made one only among processes that
/// are numbered alike.
std::string mark_of_this_namespace() {
  struct stat numbering{};
  if (::stat("/proc/self/ns/pid", &numbering) != 0) numbering.st_ino = 0;
  return fmt::format("assay-{}-", numbering.st_ino);
}

/// Groups whose maker is gone. One that still has processes is refused by the kernel.
void remove_stale_groups(const std::string& parent, const std::string& mark) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(parent, code)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(mark)) continue;
    int pid = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + mark.size(), end, pid);
    if (error != std::errc() || rest == end || *rest != '-' || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

}  // namespace

Result<MemoryGroupPlace> find_memory_group(std::string_view mountinfo, std::string_view cgroup) {
  for (const int version : {1, 2}) {
    const std::optional<Mount> mount = mount_of(mountinfo, version);
    const std::optional<std::string_view> path = path_of(cgroup, version);
    if (!mount || !path) continue;
    std::string_view below = *path;
    // A container sees its own part of the hierarchy mounted, but may be told the whole path.
    if (mount->root != "/" && below.starts_with(mount->root))
      below.remove_prefix(mount->root.size());
    if (below == "/") below = {};
    return MemoryGroupPlace{fmt::format("{}{}", mount->point, below), version,
                            std::string(mount->point)};
  }
  return fail(ErrorKind::environment, "no control group of memory is mounted here");
}

Result<MemoryGroupPlace> place_for_new_groups(const MemoryGroupPlace& own) {
  if (own.version == 1) return own;
  MemoryGroupPlace place = own;
  for (;;) {
    const std::string given = read_kernel_line(place.directory + "/cgroup.subtree_control");
    const std::vector<std::string_view> controllers = words_of(given, ' ');
    if (std::ranges::find(controllers, "memory") != controllers.end()) return place;
    if (place.directory.size() <= place.top.size()) break;
    place.directory = std::filesystem::path(place.directory).parent_path();
  }
  return fail(
      Error(ErrorKind::environment,
            "no control group from this process's own upwards hands on the memory controller")
          .at(own.directory)
          .hint("under systemd: systemd-run --scope (or --user --scope) assay ..."));
}

Result<MemoryGroup> MemoryGroup::make(std::uint64_t limit_bytes) {
  const Result<std::string> mountinfo = read_kernel_file("/proc/self/mountinfo");
  if (!mountinfo) return fail(mountinfo.error());
  const Result<std::string> cgroup = read_kernel_file("/proc/self/cgroup");
  if (!cgroup) return fail(cgroup.error());
  const Result<MemoryGroupPlace> own = find_memory_group(*mountinfo, *cgroup);
  if (!own) return fail(own.error());
  const Result<MemoryGroupPlace> place = place_for_new_groups(*own);
  if (!place) return fail(place.error());
  return make(*place, limit_bytes);
}

Result<MemoryGroup> MemoryGroup::make(const MemoryGroupPlace& place, std::uint64_t limit_bytes) {
  static std::atomic<unsigned> count{0};
  const std::string mark = mark_of_this_namespace();
  remove_stale_groups(place.directory, mark);
  const std::string directory = fmt::format("{}/{}{}-{}", place.directory, mark, ::getpid(),
                                            count.fetch_add(1, std::memory_order_relaxed));
  if (::mkdir(directory.c_str(), 0755) != 0)
    return fail(system_error("cannot make a control group", errno).at(directory));
  MemoryGroup group(MemoryGroupPlace{directory, place.version, place.top});
  const std::string limit = std::to_string(limit_bytes);
  if (place.version == 1) {
    ASSAY_TRY(write_kernel_file(directory + "/memory.limit_in_bytes", limit));
    // Swapping would move the budget to the disk; kernels without it lack the file.
    (void)write_kernel_file(directory + "/memory.swappiness", "0");
  } else {
    ASSAY_TRY(write_kernel_file(directory + "/memory.max", limit));
    (void)write_kernel_file(directory + "/memory.swap.max", "0");
  }
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept
    : place_(std::exchange(other.place_, MemoryGroupPlace{})) {}

MemoryGroup& MemoryGroup::operator=(MemoryGroup&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

MemoryGroup::~MemoryGroup() {
  if (!place_.directory.empty()) remove_group(place_.directory);
}

Result<MemoryGroupFigures> MemoryGroup::figures() const {
  const auto number = [&](const char* file) -> std::uint64_t {
    const std::vector<std::uint64_t> numbers =
        numbers_of(read_kernel_line(place_.directory + "/" + file));
    return numbers.empty() ? 0 : numbers.front();
  };
  const auto entry = [&](const char* file, std::string_view name) -> Result<std::uint64_t> {
    const std::string path = place_.directory + "/" + file;
    const Result<std::string> text = read_kernel_file(path);
    if (!text) return fail(text.error());
    return kernel_number(*text, name, path);
  };
  const bool first = place_.version == 1;
  MemoryGroupFigures figures;
  figures.limit_bytes = number(first ? "memory.limit_in_bytes" : "memory.max");
  figures.peak_bytes = number(first ? "memory.max_usage_in_bytes" : "memory.peak");
  const Result<std::uint64_t> killed =
      first ? entry("memory.oom_control", "oom_kill") : entry("memory.events", "oom_kill");
  if (!killed) return fail(killed.error());
  figures.killed = *killed;
  if (first) {
    figures.reclaims = number("memory.failcnt");
  } else {
    const Result<std::uint64_t> reclaims = entry("memory.events", "max");
    if (!reclaims) return fail(reclaims.error());
    figures.reclaims = *reclaims;
  }
  return figures;
}

Status join_memory_group(const std::string& directory) {
  // Moving a whole process makes the kernel wait for all its CPUs (12 ms seen, as much as the rest
  // of a child's start); a thread that moves itself does not. The first interface has a file for
  // it, and charges memory to the group of the process's first thread.
  const std::string threads = directory + "/tasks";
  if (::access(threads.c_str(), W_OK) == 0) return write_kernel_file(threads, "0");
  return write_kernel_file(directory + "/cgroup.procs", "0");
}

}  // namespace assay
