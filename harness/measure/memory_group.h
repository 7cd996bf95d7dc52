// A control group of the kernel that holds the processes in it to a memory budget, the page cache
// that they fill included. So a store that keeps its pages in a cache of its own and one that maps
// its files get the same.
//
// The group is made below the one that this process is in, named after this process, and removed
// with the object; what a killed process has left behind is removed by the next one. Works with
// both versions of the kernel's interface where the user may make groups; elsewhere make() says why
// not. One thread uses an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

/// Where this process's memory group is, and which interface it has.
struct MemoryGroupPlace {
  std::string directory;
  int version = 0;  ///< 1 or 2
  bool operator==(const MemoryGroupPlace&) const = default;
};

/// From the texts of /proc/self/mountinfo and /proc/self/cgroup. ErrorKind::environment when no
/// memory controller is mounted.
[[nodiscard]] Result<MemoryGroupPlace> find_memory_group(std::string_view mountinfo,
                                                         std::string_view cgroup);

struct MemoryGroupFigures {
  std::uint64_t limit_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< the page cache included; 0 = the kernel does not tell
  std::uint64_t reclaims = 0;    ///< how often the limit was met and something given back
  std::uint64_t killed = 0;      ///< processes that the kernel killed for want of memory
};

class MemoryGroup {
 public:
  /// A group below this process's own.
  [[nodiscard]] static Result<MemoryGroup> make(std::uint64_t limit_bytes);
  /// A group below `place`.
  [[nodiscard]] static Result<MemoryGroup> make(const MemoryGroupPlace& place,
                                                std::uint64_t limit_bytes);
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&& other) noexcept;
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  /// Removes the group; its processes must have ended.
  ~MemoryGroup();

  [[nodiscard]] const std::string& directory() const { return place_.directory; }
  [[nodiscard]] Result<MemoryGroupFigures> figures() const;

 private:
  explicit MemoryGroup(MemoryGroupPlace place) : place_(std::move(place)) {}
  MemoryGroupPlace place_;  ///< its own directory; empty after a move
};

/// Moves the calling process into the group in `directory`. What it has touched before stays
/// charged where it was.
[[nodiscard]] Status join_memory_group(const std::string& directory);

}  // namespace assay
