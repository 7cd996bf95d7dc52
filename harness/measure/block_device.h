// The block device under a directory, and what reached it. Objects are immutable after of();
// read() may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/result.h"

namespace assay {

/// Since boot, of everything that used the device. Fields as in the kernel's
/// Documentation/block/stat.rst; sectors are 512 bytes there whatever the device says.
struct BlockCounters {
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
  /// Flush requests, field 16 (Linux 5.5); the kernel merges those of concurrent callers. Of the
  /// whole disk, because partitions have no count of their own.
  std::optional<std::uint64_t> flushes;
  std::optional<std::uint64_t> flush_ns;  ///< time spent in them, to the millisecond
};
[[nodiscard]] BlockCounters operator-(const BlockCounters& after, const BlockCounters& before);

class BlockDevice {
 public:
  /// The device that holds `directory`. An error of kind `environment` for file systems without one
  /// (tmpfs, network, overlay).
  [[nodiscard]] static Result<BlockDevice> of(const std::string& directory);

  [[nodiscard]] Result<BlockCounters> read() const;
  [[nodiscard]] const std::string& name() const { return name_; }  ///< "vda1"
  [[nodiscard]] const std::string& disk() const { return disk_; }  ///< "vda"

 private:
  BlockDevice() = default;
  std::string name_;
  std::string disk_;
  std::string stat_path_;
  std::string disk_stat_path_;
};

/// Reads a line of /sys/block/*/stat; for tests and read().
[[nodiscard]] Result<BlockCounters> parse_block_stat(const std::string& text);

}  // namespace assay
