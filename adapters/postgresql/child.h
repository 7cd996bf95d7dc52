// Starts a program of PostgreSQL as the user who may run it, in a directory given as a handle.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay::postgresql {

/// Who runs the programs and owns a cluster.
struct Account {
  uid_t user = 0;
  gid_t group = 0;
  bool change = false;  ///< this process is root and becomes that user
};
[[nodiscard]] Account account();

/// How a child names the directory that it is given.
inline constexpr const char* kChildDirectory = "/proc/self/fd/3";

struct Child {
  std::vector<std::string> words;  ///< the program's path first
  int directory = -1;              ///< handles, 10 or more
  int log = -1;
  int death_signal = 0;  ///< sent to it when the thread that called ends
};
/// Starts it with no other handle of ours and none of our environment; the process, or an error.
[[nodiscard]] Result<pid_t> start_child(const Child& child);
/// Waits; 0 when it ended well, else its exit status, or 128 and the signal that ended it.
[[nodiscard]] int wait_child(pid_t pid);

/// A handle, closed with its owner. Always 10 or more, so that children can place it.
class Handle {
 public:
  Handle() = default;
  explicit Handle(int value);
  ~Handle();
  Handle(Handle&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Handle& operator=(Handle&& other) noexcept;
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_ = -1;
};
/// Error with `what` and the path.
[[nodiscard]] Result<Handle> open_handle(const std::string& path, int flags, const char* what);

}  // namespace assay::postgresql
