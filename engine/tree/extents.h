// Space of the data file, in pages. What is used is kept in memory only: at opening it is the union
// of the extents that the roots' manifests name, so there is no allocation map on disk that could
// disagree with them.
// Threads: all calls from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

struct Extent {
  PageId first;
  std::uint64_t pages = 0;
};

class ExtentAllocator {
 public:
  /// Pages below `reserved` (the roots) are never handed out.
  explicit ExtentAllocator(std::uint64_t reserved);

  /// Marks an extent that a manifest names. False: it overlaps another one.
  [[nodiscard]] bool claim(const Extent& extent);
  /// A run of `least` to `preferred` free pages; at the end of the file when there is none.
  [[nodiscard]] Extent allocate(std::uint64_t least, std::uint64_t preferred);
  void free(const Extent& extent);

  [[nodiscard]] std::uint64_t used_pages() const;
  /// Highest page ever in use, plus one.
  [[nodiscard]] std::uint64_t end_page() const;

 private:
  [[nodiscard]] bool used(std::uint64_t page) const;
  void set(const Extent& extent, bool value);

  mutable std::mutex mutex_;
  std::vector<std::uint64_t> words_;
  std::uint64_t reserved_;
  std::uint64_t used_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t lowest_free_ = 0;  // no page below is free
};

}  // namespace lode
