// The logging disk: a FUSE file system of ours with one file, `disk`, which is a block device's
// contents. A process of its own serves it; the process next to it puts a loop device on the file.
//
// The disk has three phases. In `base`, writes change the base. In `record`, they go to a layer
// above it and every write, discard and flush is noted in the log before it is answered. In
// `state`, the layer begins as a crash left it and takes what is written on top, unlogged.
// Invariant: requests are served one after the other, so the log has the order of answers.
// Threads: serve_disk() takes over the calling process's thread until the other end of `control`
// is closed; DiskControl is used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/result.h"
#include "harness/qualify/block/disk_states.h"
#include "harness/qualify/block/shared_disk.h"

namespace assay::qualify::block {

/// Name of the file below the mount point.
inline constexpr const char* kDiskName = "disk";

/// How the disk is made to misbehave, to see that it is noticed.
struct DiskFault {
  bool forgets_flushes = false;  ///< answers flushes, and keeps nothing on account of them
};

/// Mounts the disk at `directory` and serves it. `ready` is answered on `control` with 0 or an
/// errno. Returns when `control` ends.
void serve_disk(SharedDisk& disk, const std::string& directory, int control,
                const DiskFault& fault);

/// The other end of `control`.
class DiskControl {
 public:
  explicit DiskControl(int fd) : fd_(fd) {}
  /// Waits until the disk is mounted.
  [[nodiscard]] Status wait_until_ready() const;
  /// Empties the disk; what is written from now on is the base.
  [[nodiscard]] Status begin_base() const;
  [[nodiscard]] Status begin_record() const;
  /// Nothing more is logged. ErrorKind::internal when base and log together are not what the disk
  /// holds.
  [[nodiscard]] Status end_record() const;
  /// The disk is what a power cut left.
  [[nodiscard]] Status become(const DiskState& state) const;

 private:
  [[nodiscard]] Status ask(std::uint32_t verb, const DiskState* state, const char* what) const;
  int fd_;
};

}  // namespace assay::qualify::block
