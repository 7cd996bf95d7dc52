// The inner levels of a tree, built while its leaves are written: the same calls with the same keys
// give the same pages, which is what lets a rebuild make them again at their own places.
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tree/page.h"

namespace lode {

/// Where finished pages go.
class PageSink {
 public:
  virtual ~PageSink() = default;
  /// Lays `page` out at the next place and begins it anew.
  virtual Result<PageRef> put(PageBuilder& page, std::size_t level) = 0;
};

class InnerLevels {
 public:
  /// `sink` outlives this.
  InnerLevels(KeyKind keys, PageSink& sink) : keys_(keys), sink_(sink) {}
  /// The next leaf, and the lowest key that leads to it.
  Status add(std::string_view separator, const PageRef& leaf) {
    return add_reference(1, separator, leaf);
  }
  /// The last leaf. Returns the tree's root, which is that leaf when it is the only one.
  Result<PageRef> finish(std::string_view separator, const PageRef& last_leaf);

 private:
  struct Level {
    explicit Level(PageKind kind) : page(kind) {}
    PageBuilder page;
    std::string separator;  ///< lowest key that leads to the page being filled
  };
  Status add_reference(std::size_t level, std::string_view key, const PageRef& ref);

  KeyKind keys_;
  PageSink& sink_;
  std::vector<std::unique_ptr<Level>> levels_;  // [0] is level 1
};

/// The key that leads to a leaf which begins with `first`, behind one that ends with `last_before`.
[[nodiscard]] std::string_view leaf_separator(KeyKind keys, std::string_view last_before,
                                              std::string_view first);

/// The shortest text that is above `left` and not above `right`; a part of `right`.
[[nodiscard]] std::string_view separator_of(std::string_view left, std::string_view right);

}  // namespace lode
