#include "harness/measure/flush_plausibility.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/clock.h"

namespace assay {
namespace {

/// Drives with power-loss protection answer a flush from their own memory, but a write and a
/// flush are two commands over PCIe and take some 20 us together even there. The raw durable loop
/// on the kind of machine this is written for takes 238 us.
constexpr std::uint64_t kSoonestNs = 20'000;
constexpr std::size_t kBlockBytes = 4096;

/// An open file of our own without a name, so that a kill leaves nothing behind.
class ProbeFile {
 public:
  explicit ProbeFile(const std::string& directory) : path_(directory + "/.flush-probe-XXXXXX") {
    file_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (file_ >= 0) ::unlink(path_.c_str());
  }
  ~ProbeFile() {
    if (file_ >= 0) ::close(file_);
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;
  [[nodiscard]] int get() const { return file_; }

 private:
  std::string path_;
  int file_;
};

Status write_and_sync(int file, const std::vector<char>& block, const std::string& directory) {
  if (::pwrite(file, block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()) ||
      ::fdatasync(file) != 0)
    return fail(system_error("cannot write and sync a file", errno).at(directory));
  return {};
}

}  // namespace

Result<std::string> file_system_of(const std::string& directory) {
  struct statfs status{};
  if (::statfs(directory.c_str(), &status) != 0)
    return fail(system_error("cannot tell a directory's file system", errno).at(directory));
  constexpr long kXfs = 0x58465342;  // not in Debian 12's magic.h
  constexpr long kZfs = 0x2fc12fc1;
  switch (status.f_type) {
    case TMPFS_MAGIC:
      return "tmpfs";
    case RAMFS_MAGIC:
      return "ramfs";
    case EXT4_SUPER_MAGIC:
      return "ext4";  // and ext2 and ext3, which share the number
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlay";
    case NFS_SUPER_MAGIC:
      return "nfs";
    case F2FS_SUPER_MAGIC:
      return "f2fs";
    case kXfs:
      return "xfs";
    case kZfs:
      return "zfs";
    default:
      return fmt::format("{:#x}", static_cast<unsigned long>(status.f_type));
  }
}

void judge_flush(FlushPlausibility& probe) {
  const double microseconds = static_cast<double>(probe.median_ns) / 1000;
  if (probe.file_system == "tmpfs" || probe.file_system == "ramfs") {
    probe.plausible = false;
    probe.verdict =
        fmt::format("syncs do nothing here: {} keeps files in memory ({:.1f} us a write and sync)",
                    probe.file_system, microseconds);
    return;
  }
  probe.plausible = probe.median_ns >= kSoonestNs;
  probe.verdict =
      probe.plausible
          ? fmt::format("a 4 KiB write and fdatasync on {} takes {:.0f} us (median of {})",
                        probe.file_system, microseconds, probe.syncs)
          : fmt::format(
                "syncs look too fast for any medium: {:.1f} us for a 4 KiB write and "
                "fdatasync on {} (median of {}); the device, or the layer below it, may "
                "not honour flushes",
                microseconds, probe.file_system, probe.syncs);
}

Result<FlushPlausibility> probe_flush(const std::string& directory, std::uint64_t syncs) {
  ASSAY_CHECK(syncs > 0, "a median needs a value");
  const Result<std::string> name = file_system_of(directory);
  if (!name) return std::unexpected(name.error());
  const ProbeFile file(directory);
  if (file.get() < 0)
    return fail(system_error("cannot make a file to time syncs with", errno).at(directory));
  const TickScale& scale = TickScale::get();
  std::vector<char> block(kBlockBytes);
  // The first sync also allocates the block; what is timed is an overwrite in place.
  ASSAY_TRY(write_and_sync(file.get(), block, directory));
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < syncs; ++i) {
    block[i % block.size()] = static_cast<char>(i + 1);  // a new content each time
    const std::uint64_t start = ticks_now();
    ASSAY_TRY(write_and_sync(file.get(), block, directory));
    times.push_back(scale.to_ns(ticks_between(start, ticks_now())));
  }
  std::ranges::sort(times);
  FlushPlausibility probe;
  probe.median_ns = times[times.size() / 2];
  probe.fastest_ns = times.front();
  probe.syncs = syncs;
  probe.file_system = *name;
  judge_flush(probe);
  return probe;
}

}  // namespace assay
