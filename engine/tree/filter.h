// A filter that tells for most keys that a tree does not hold them: a Bloom filter in blocks of one
// cache line, so that a question costs one miss. 10 bits a key, 6 probes: about 1.5 % false answers
// in this blocked form (measured by the test). The hash is part of the format: FORMAT.md.
// Threads: a built filter is only read.
#pragma once

#include <array>
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

  [[nodiscard]] bool may_hold(std::uint64_t hash) const {
    return test(block(hash), probe_bits(hash));
  }
  /// The same in steps, for who asks several filters: the cache line that decides, to be fetched
  /// ahead, and the question itself, which has no branches.
  [[nodiscard]] const std::uint64_t* block(std::uint64_t hash) const {
    return words_.empty() ? every_key.data()
                          : &words_[block_of(hash, words_.size() / block_words) * block_words];
  }
  [[nodiscard]] static bool test(const std::uint64_t* block, std::uint64_t bits) {
    std::uint64_t all = 1;
    for (unsigned i = 0; i < probes; ++i, bits >>= 9)
      all &= block[(bits & 511) / 64] >> (bits & 63);
    return all != 0;
  }
  [[nodiscard]] static std::uint64_t probe_bits(std::uint64_t hash);
  [[nodiscard]] ConstBytes bytes() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), words_.size() * sizeof(words_[0])};
  }

 private:
  static constexpr std::size_t block_words = 8;
  static constexpr unsigned probes = 6;
  static const std::array<std::uint64_t, block_words> every_key;
  [[nodiscard]] static std::size_t block_of(std::uint64_t hash, std::size_t blocks) {
    return static_cast<std::size_t>(((hash >> 32) * blocks) >> 32);
  }
  std::vector<std::uint64_t> words_;
};

}  // namespace lode
