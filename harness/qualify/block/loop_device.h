// A loop device of ours over a file.
//
// It carries a mark (its name in the kernel's table) that says which process it is for, and goes
// away with its last user (autoclear). So a killed assay leaves none but where the kernel still
// holds one; clear_stale_loops() takes those away, and no others.
// One thread uses an object.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "adapters/result.h"

namespace assay::qualify::block {

class LoopDevice {
 public:
  /// Direct I/O where the kernel takes it. ErrorKind::environment where no device is to be had.
  [[nodiscard]] static Result<LoopDevice> attach(const std::string& file);
  LoopDevice(LoopDevice&& other) noexcept;
  LoopDevice& operator=(LoopDevice&&) = delete;
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  /// Detaches; the device goes when nothing is mounted on it any more.
  ~LoopDevice();

  [[nodiscard]] const std::string& path() const { return path_; }  ///< "/dev/loop3"
  /// Forgets what the kernel keeps of the device's contents, after the file behind it has changed.
  [[nodiscard]] Status forget_cache() const;

 private:
  LoopDevice(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

/// Detaches loop devices with our mark whose process is gone. Returns how many.
int clear_stale_loops();
/// A device with our mark, stale or not.
struct MarkedLoop {
  std::string path;
  int owner = 0;  ///< pid
};
[[nodiscard]] std::vector<MarkedLoop> marked_loops();

}  // namespace assay::qualify::block
