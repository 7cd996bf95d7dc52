// Space of the data file, in pages. What is used is kept in memory only: at opening it is the union
// of the extents that the roots' manifests name, so there is no allocation map on disk that could
// disagree with them.
// Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/tree/page.h"

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
  /// Bounds the file to so many pages, the reserved ones among them. Before anything is claimed.
  void set_limit(std::uint64_t pages) { limit_ = pages; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  /// Pages that a stream should take ahead at most: what it holds unused, others cannot have.
  [[nodiscard]] std::uint64_t largest_extent() const;
  /// A run of `least` to `preferred` free pages; at the end of the file when there is none.
  /// ErrorKind::arena_full beyond the limit.
  [[nodiscard]] Result<Extent> allocate(std::uint64_t least, std::uint64_t preferred);
  /// With a limit: so many pages can be had at least in pieces of up to `piece` pages, however
  /// they are asked for. Each gap counts with what is beyond piece - 1, so that no allocation of n
  /// pages takes off more than n and no free takes off anything.
  [[nodiscard]] std::uint64_t usable(std::uint64_t piece) const;
  /// Changes with whatever is used.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  void free(const Extent& extent);

  [[nodiscard]] std::uint64_t used_pages() const;
  /// Highest page ever in use, plus one.
  [[nodiscard]] std::uint64_t end_page() const;

 private:
  [[nodiscard]] bool used(std::uint64_t page) const;
  void set(const Extent& extent, bool value);
  [[nodiscard]] std::uint64_t room_from(std::uint64_t page) const {
    return page < limit_ ? limit_ - page : 0;
  }

  mutable std::mutex mutex_;
  std::vector<std::uint64_t> words_;
  std::uint64_t reserved_;
  std::uint64_t used_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t lowest_free_ = 0;  // no page below is free
  std::uint64_t limit_ = ~std::uint64_t{0} / page_bytes;
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace lode
