// A control group of the kernel that holds the processes in it to a memory budget, the page cache
// that they fill included. So a store that keeps its pages in a cache of its own and one that maps
// its files get the same.
//
// The group is named after this process and removed with the object; what a killed process has left
// behind is removed by the next one. With the first version of the kernel's interface it is made
// below the group that this process is in. The second one allows no groups beside processes, so it
// is made below the nearest group above that already hands the memory controller to its children
// (on a system under systemd the slice of the user). Nothing of a group that is not ours is
// changed; where the user may not make groups, make() says so. One thread uses an object.
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
  std::string top;  ///< of the hierarchy, as far as it is seen here
  bool operator==(const MemoryGroupPlace&) const = default;
};

/// From the texts of /proc/self/mountinfo and /proc/self/cgroup. ErrorKind::environment when no
/// memory controller is mounted.
[[nodiscard]] Result<MemoryGroupPlace> find_memory_group(std::string_view mountinfo,
                                                         std::string_view cgroup);

/// The nearest group from `own` upwards below which a group with a memory limit can be made.
[[nodiscard]] Result<MemoryGroupPlace> place_for_new_groups(const MemoryGroupPlace& own);

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
  /// A group below `place`, which place_for_new_groups() gave.
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

/// Moves the calling process, which must have one thread yet, into the group in `directory`. What
/// it has touched before stays charged where it was.
[[nodiscard]] Status join_memory_group(const std::string& directory);

}  // namespace assay
