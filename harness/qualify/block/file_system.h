// The file systems that a store is qualified on: how they are made, mounted and what they can do.
// One thread uses these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"

namespace assay::qualify::block {

struct FileSystem {
  std::string name;
  std::string type;  ///< as the kernel calls it
  std::uint64_t image_bytes = 0;
  std::vector<std::string> make;  ///< the program and its flags; the device comes last
  /// The program that has to put it right before it is mounted after a crash, and its flags; empty:
  /// the kernel does that by itself.
  std::vector<std::string> repair = {};
  std::string mount_options = {};
  bool physical_extents = true;  ///< FIEMAP tells places on the device
  /// The kernel knows such a file system by its identity alone, so that two copies of one on two
  /// disks are not to be mounted at once (btrfs, before Linux 6.7).
  bool one_at_a_time = false;
};

/// "ext4", "ext4-nojournal", "xfs" or "btrfs"; an unknown name is an error that lists them.
[[nodiscard]] Result<FileSystem> find_file_system(const std::string& name);

/// What this machine lacks to run such a file system on a disk of ours: a sentence, empty when
/// nothing is lacking. Tries it in a forked process.
[[nodiscard]] std::string what_is_lacking(const FileSystem& system);

/// A mount namespace of this process alone: what it mounts goes with its last process.
[[nodiscard]] Status enter_own_namespace();

[[nodiscard]] Status make_file_system(const FileSystem& system, const std::string& device);
/// {"type", "features", "block_bytes", "mount_options"}: read back from what is mounted.
[[nodiscard]] nlohmann::json describe_file_system(const FileSystem& system,
                                                  const std::string& device,
                                                  const std::string& directory);
/// What comes before the mount after a crash, as at the start of a machine.
[[nodiscard]] Status repair_file_system(const FileSystem& system, const std::string& device);
/// The errno is in the error's text.
[[nodiscard]] Status mount_file_system(const FileSystem& system, const std::string& device,
                                       const std::string& directory);
/// `discard`: what is not on the disk yet may be forgotten, where the file system can do that.
[[nodiscard]] Status unmount_file_system(const std::string& directory, bool discard);

/// Where the files of a directory lie on the device.
struct Extent {
  std::uint64_t device_offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::string file;
};
[[nodiscard]] std::vector<Extent> extents_below(const std::string& directory);

}  // namespace assay::qualify::block
