// One run at a time in a directory that a run can be gone on with in: two would each count what the
// other did.
//
// A lock of the file `assay.lock` (flock) that the system lets go of when the process ends, however
// it ends; the file stays. One thread.
#pragma once

#include <string>
#include <utility>

#include "adapters/result.h"

namespace assay {

class DirectoryLock {
 public:
  /// `directory` is there. Error of kind environment when another run has it.
  [[nodiscard]] static Result<DirectoryLock> take(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace assay
