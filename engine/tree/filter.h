// A filter that tells for most keys that a tree does not hold them: a Bloom filter in blocks of one
// cache line, so that a question costs one miss. 10 bits a key, 6 probes: about 1.5 % false answers
// in this blocked form (measured by the test). The hash is part of the format: FORMAT.md.
// Threads: a built filter is only read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/types.h"

namespace lode {

/// The hash that filters are built with; stable for ever.
[[nodiscard]] std::uint64_t filter_hash(std::string_view key);

class Filter {
 public:
  Filter() = default;
  /// A filter over the keys with these hashes.
  explicit Filter(const std::vector<std::uint64_t>& hashes);
  /// A filter from its stored bytes, a multiple of 64; empty = "perhaps" for every key.
  explicit Filter(ConstBytes stored);

  [[nodiscard]] bool may_hold(std::uint64_t hash) const;
  [[nodiscard]] ConstBytes bytes() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), words_.size() * sizeof(words_[0])};
  }

 private:
  static constexpr std::size_t block_words = 8;
  std::vector<std::uint64_t> words_;
};

}  // namespace lode
