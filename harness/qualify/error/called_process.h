// What a system call of another process is about, read from outside while the call waits.
//
// Files are told by /proc, paths by the process's memory. A descriptor that is closed meanwhile by
// another thread makes the file unknown, never wrong.
// One thread uses an object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/qualify/error/disk_below.h"

struct seccomp_data;

namespace assay::qualify::error {

struct CalledFile {
  bool ours = false;  ///< it lies below the store's directory
  bool directory = false;
  bool through = false;    ///< a write that returns when the disk has it
  bool last_name = false;  ///< of a call that removes a name: the file has no other
  FileId id{};             ///< of a file that is there
  std::string content;     ///< a path under which it can be read
  std::string name;        ///< relative to the store's directory
  FileRange range;         ///< that the call writes or syncs
};

class CalledProcess {
 public:
  CalledProcess(pid_t pid, std::string directory) : pid_(pid), directory_(std::move(directory)) {}

  [[nodiscard]] CalledFile file_of_call(const seccomp_data& call) const;
  /// Does the first half of the write that the call asks for, through the process's own file.
  /// Bytes written; 0 or less when it cannot be halved.
  [[nodiscard]] std::int64_t write_half(const seccomp_data& call) const;

 private:
  struct Descriptor {
    std::uint64_t position = 0;
    int flags = 0;
  };
  [[nodiscard]] Descriptor descriptor(int fd) const;
  [[nodiscard]] std::string link_of(const std::string& below_proc) const;
  [[nodiscard]] std::string text_at(std::uint64_t address) const;
  [[nodiscard]] bool read_memory(std::uint64_t address, void* into, std::size_t bytes) const;
  /// The buffers of a write, one after the other: address and size.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers(
      const seccomp_data& call) const;
  [[nodiscard]] CalledFile by_descriptor(const seccomp_data& call, int fd) const;
  [[nodiscard]] CalledFile by_path(const seccomp_data& call, int directory, int path) const;
  [[nodiscard]] CalledFile by_address(const seccomp_data& call) const;
  [[nodiscard]] bool is_below(const std::string& path) const;

  pid_t pid_;
  std::string directory_;
};

}  // namespace assay::qualify::error
