// Sums over entries that are kept as entries come and go; weights.h says what they bound.
// Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lode {

/// When a tree is closed and the next one begun.
struct TreeLimits {
  std::uint64_t payload_bytes = ~std::uint64_t{0};
  std::uint64_t entries = ~std::uint64_t{0};
};

/// Sums over entries. What is largest never falls: it bounds those that were there as well.
struct EntryWeights {
  std::uint64_t entries = 0;
  std::uint64_t payload_bytes = 0;  ///< keys and values
  std::uint64_t leaf_bytes = 0;     ///< in leaves, at most
  std::uint64_t large_bytes = 0;    ///< of large values in extents, at most
  std::uint64_t largest_leaf_bytes = 0;
  std::uint64_t longest_key_bytes = 0;
  std::uint64_t largest_value_bytes = 0;  ///< of large values

  void add(std::size_t key_bytes, std::size_t value_bytes);
  /// Takes back what was added for an entry.
  void remove(std::size_t key_bytes, std::size_t value_bytes);
  EntryWeights& operator+=(const EntryWeights& other);
  /// Trees that these entries make, if `starts` times a tree is begun anew.
  [[nodiscard]] std::uint64_t trees(const TreeLimits& limits, std::uint64_t starts) const;
};

}  // namespace lode
