#include "harness/measure/block_device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "harness/measure/kernel_file.h"

namespace assay {
namespace {

constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kNsPerMs = 1'000'000;

std::string number_of(dev_t device) {
  return fmt::format("{}:{}", gnu_dev_major(device), gnu_dev_minor(device));
}

/// File systems such as btrfs have an anonymous device number; the mount's source names the real
/// one. Empty when there is none.
std::string source_device(const std::string& number) {
  const Result<std::string> mounts = read_kernel_file("/proc/self/mountinfo");
  if (!mounts) return {};
  for (const std::string_view line : lines_of(*mounts)) {
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS
    std::istringstream words{std::string(line)};
    std::string id;
    std::string parent;
    std::string device;
    words >> id >> parent >> device;
    if (device != number) continue;
    std::string word;
    while (words >> word && word != "-") {
    }
    std::string type;
    std::string source;
    words >> type >> source;
    struct stat status{};
    if (source.starts_with("/dev/") && ::stat(source.c_str(), &status) == 0 &&
        S_ISBLK(status.st_mode))
      return number_of(status.st_rdev);
  }
  return {};
}

}  // namespace

BlockCounters operator-(const BlockCounters& after, const BlockCounters& before) {
  BlockCounters difference{.reads = after.reads - before.reads,
                           .read_bytes = after.read_bytes - before.read_bytes,
                           .writes = after.writes - before.writes,
                           .write_bytes = after.write_bytes - before.write_bytes,
                           .flushes = std::nullopt,
                           .flush_ns = std::nullopt};
  if (after.flushes && before.flushes) difference.flushes = *after.flushes - *before.flushes;
  if (after.flush_ns && before.flush_ns) difference.flush_ns = *after.flush_ns - *before.flush_ns;
  return difference;
}

Result<BlockCounters> parse_block_stat(const std::string& text) {
  const std::vector<std::uint64_t> fields = numbers_of(text);
  if (fields.size() < 11)
    return fail(ErrorKind::environment, "a block device's stat has fewer than 11 fields");
  BlockCounters counters;
  counters.reads = fields[0];
  counters.read_bytes = fields[2] * kSectorBytes;
  counters.writes = fields[4];
  counters.write_bytes = fields[6] * kSectorBytes;
  if (fields.size() >= 17) {
    counters.flushes = fields[15];
    counters.flush_ns = fields[16] * kNsPerMs;
  }
  return counters;
}

Result<BlockDevice> BlockDevice::of(const std::string& directory) {
  namespace fs = std::filesystem;
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0)
    return fail(system_error("cannot find the block device of a directory", errno).at(directory));
  std::string number = number_of(status.st_dev);
  std::error_code code;
  if (!fs::exists("/sys/dev/block/" + number + "/stat", code)) number = source_device(number);
  if (number.empty())
    return fail(Error(ErrorKind::environment, "the file system has no block device of its own")
                    .at(directory)
                    .hint("choose a directory on a disk to have the device's figures"));
  const fs::path place = fs::canonical("/sys/dev/block/" + number, code);
  if (code) return fail(system_error("cannot resolve a block device", code.value()).at(number));
  const bool partition = fs::exists(place / "partition", code);
  const fs::path disk = partition ? place.parent_path() : place;
  BlockDevice device;
  device.name_ = place.filename().string();
  device.disk_ = disk.filename().string();
  device.stat_path_ = (place / "stat").string();
  device.disk_stat_path_ = (disk / "stat").string();
  ASSAY_TRY(device.read());
  return device;
}

Result<BlockCounters> BlockDevice::read() const {
  const Result<std::string> text = read_kernel_file(stat_path_);
  if (!text) return std::unexpected(text.error());
  Result<BlockCounters> counters = parse_block_stat(*text);
  if (!counters || disk_stat_path_ == stat_path_) return counters;
  const Result<std::string> disk_text = read_kernel_file(disk_stat_path_);
  if (!disk_text) return std::unexpected(disk_text.error());
  const Result<BlockCounters> disk = parse_block_stat(*disk_text);
  if (!disk) return disk;
  counters->flushes = disk->flushes;
  counters->flush_ns = disk->flush_ns;
  return counters;
}

}  // namespace assay
