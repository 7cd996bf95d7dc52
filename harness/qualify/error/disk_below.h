// What a disk holds below a page cache some of whose syncs have failed.
//
// On Linux a page whose writeback failed is clean afterwards: the failed fsync is told once, the
// page still reads as it was written, no later fsync writes it again, and after a power loss the
// disk has what it had before (Rebello et al., Can Applications Recover from fsync Failures?,
// USENIX ATC 2020, for ext4 and XFS). Only a page that is written again goes to the disk. So a
// store that goes on after a failed sync as if nothing had happened, or that just syncs again,
// acknowledges what the disk does not have.
// The model: pages of 4 KiB; a page is dirty when a call wrote to it or when its bytes differ from
// those at the last sync of its file. A sync that succeeds puts the dirty pages on the disk, one
// that fails only makes them clean. What is dirty at the cut is taken to have reached the disk:
// unsynced data are another level's matter. Names and sizes are taken as they are.
// One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "adapters/result.h"

namespace assay::qualify::error {

using FileId = std::pair<dev_t, ino_t>;

/// A part of a file, in bytes.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = UINT64_MAX;  ///< to the end, whatever it is
};

class DiskBelow {
 public:
  /// Everything in the directory is on the disk.
  [[nodiscard]] Status begin(const std::string& directory);

  /// A call is about to write there; `through`: it returns when the disk has it (O_DSYNC,
  /// O_DIRECT). `content` is a path under which the file can be read.
  void writes(FileId file, const std::string& content, FileRange range, bool through);
  /// A sync of the file is about to succeed, or fails.
  void synced(FileId file, const std::string& content, FileRange range);
  void sync_failed(FileId file, const std::string& content, FileRange range);
  /// The name's last file is gone: its number may be given to another.
  void forget(FileId file) { files_.erase(file); }

  /// Copies `directory` as the disk has it now to `to`; returns the pages that are not as the
  /// store's process sees them.
  [[nodiscard]] Result<std::uint64_t> write_out(const std::string& directory,
                                                const std::string& to) const;

 private:
  struct File {
    std::string disk;                 ///< what a power loss leaves
    std::string seen;                 ///< what the file held at its last sync
    std::set<std::uint64_t> written;  ///< pages since then
    std::set<std::uint64_t> through;  ///< pages that go to the disk by the write itself
  };
  static bool is_dirty(const File& file, const std::string& now, std::uint64_t page);
  static void absorb(File& file, const std::string& content);

  std::map<FileId, File> files_;
};

}  // namespace assay::qualify::error
