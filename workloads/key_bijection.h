// Logical key index <-> key number, the part of a key that tells keys apart.
//
// A key number has `width` bits (8 a byte, at most 64) and is written big-endian, so numeric order
// is key order. Ordered keys: the number is the index. Hashed keys: the lowest 6 bits of the index
// and a hash of the rest choose the highest 6 bits of the number; the rest of the number is a
// bijection of the rest of the index. So every run of 64 indices has exactly one key below each of
// the 64 prefixes, which lets the distribution `hot_prefix` draw one without a table or a search.
#pragma once

#include <cstdint>

#include "workloads/random.h"

namespace assay {

class KeyBijection {
 public:
  static constexpr unsigned kPrefixBits = 6;
  static constexpr std::uint64_t kPrefixes = 1U << kPrefixBits;

  /// `width` in bits, from 8 to 64.
  constexpr KeyBijection(unsigned width, bool hashed, std::uint64_t seed)
      : hashed_(hashed), low_bits_(width - kPrefixBits), low_(low_bits_, derive_seed(seed, 0x6b)) {}

  [[nodiscard]] constexpr std::uint64_t number_of(std::uint64_t index) const {
    if (!hashed_) return index;
    const std::uint64_t low = low_.forward(index >> kPrefixBits);
    return (((index & (kPrefixes - 1)) ^ spread(low)) << low_bits_) | low;
  }
  [[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t number) const {
    if (!hashed_) return number;
    const std::uint64_t low = number & ((std::uint64_t{1} << low_bits_) - 1);
    return (low_.inverse(low) << kPrefixBits) | ((number >> low_bits_) ^ spread(low));
  }
  /// The index, among the 64 of `group`, whose key number begins with `prefix`. Hashed keys only.
  [[nodiscard]] constexpr std::uint64_t index_with_prefix(std::uint64_t group,
                                                          std::uint64_t prefix) const {
    return (group << kPrefixBits) | (prefix ^ spread(low_.forward(group)));
  }

 private:
  static constexpr std::uint64_t spread(std::uint64_t low) {
    return (low * 0x9E3779B97F4A7C15ULL) >> (64 - kPrefixBits);
  }

  bool hashed_;
  unsigned low_bits_;
  BitBijection low_;
};

}  // namespace assay
