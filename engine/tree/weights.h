// How many pages entries need at most once they are in trees, from sums that are kept as entries
// come and go: the account behind admission into a bounded arena (PROTOCOLS.md, Admission).
//
// The bound, proven by what PageBuilder and ExtentStream do:
// - A page of entries that have the weights w costs at most page_overhead_bytes + sum(w), whatever
//   prefix it cuts off (a prefix of p bytes costs at most p + 3 and saves at least p - 4). So every
//   leaf but a tree's last has entries above page_room_bytes - largest w, and there are at most
//   sum(w) / (page_room_bytes - largest w + 1) + trees of them.
// - An inner page but the last of its level has at least f = page_room_bytes / (20 + longest key)
//   references, so level l has at most leaves / f^l + trees pages.
// - A large value or filter of v bytes takes v + 15 bytes of its stream, and where it begins an
//   extent it may have left unused less than itself, and less than a page, of the one before.
// Threads: values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/tree/entry_weights.h"
#include "engine/tree/page.h"

namespace lode {

struct PageNeed {
  std::uint64_t pages = 0;
  std::uint64_t piece = 1;  ///< the most that have to lie in a row
};

/// Pages of `trees` trees with these entries, at most.
[[nodiscard]] PageNeed most_pages(const EntryWeights& weights, std::uint64_t trees,
                                  const TreeLimits& limits);

/// Counts the pages that the same entries take, in key order, as the builder of trees lays them
/// out. Of large values and filters, whose place depends on the free space, the bound.
class PageCounter {
 public:
  PageCounter(KeyKind keys, const TreeLimits& limits) : keys_(keys), limits_(limits) {}
  void add(std::string_view key, EntryKind kind, std::string_view value);
  /// Of all entries so far.
  [[nodiscard]] PageNeed finish();

 private:
  void add_reference(std::size_t level, std::string_view key);
  void close_tree();

  KeyKind keys_;
  TreeLimits limits_;
  PageNeed total_;
  EntryWeights tree_;
  struct Level {
    explicit Level(PageKind kind) : page(kind) {}
    PageBuilder page;
    std::string separator;  ///< lowest key that leads to the page being filled
  };
  std::vector<std::unique_ptr<Level>> levels_;
  std::string last_key_;
};

}  // namespace lode
