// Pseudo-random numbers and bijections of the operation streams. Everything here is a pure
// function of its seed and gives the same on every machine; nothing is shared between threads.
//
// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014)
// is a counter with a mixing function over it, so a stream is named by its start alone.
// Bounded draws: Lemire, "Fast random integer generation in an interval", TOMACS 2019.
#pragma once

#include <bit>
#include <cstdint>

namespace assay {

__extension__ using Wide = unsigned __int128;

/// Mixing function of 64 bits onto 64 bits, a bijection (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Seed of an independent purpose: mixes any number of parts into one.
template <class... Parts>
[[nodiscard]] constexpr std::uint64_t derive_seed(std::uint64_t seed, Parts... parts) {
  std::uint64_t state = mix64(seed + 0x9E3779B97F4A7C15ULL);
  ((state = mix64(state ^ (static_cast<std::uint64_t>(parts) * 0xD6E8FEB86659FD93ULL +
                           0xA0761D6478BD642FULL))),
   ...);
  return state;
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] constexpr std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    return mix64(state_);
  }
  /// Uniform in [0, n), without bias; n > 0.
  [[nodiscard]] constexpr std::uint64_t bounded(std::uint64_t n) {
    Wide product = static_cast<Wide>(next()) * n;
    if (static_cast<std::uint64_t>(product) < n) [[unlikely]] {
      const std::uint64_t rejected = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < rejected) {
        product = static_cast<Wide>(next()) * n;
      }
    }
    return static_cast<std::uint64_t>(product >> 64);
  }
  /// Uniform in (0, 1]: never 0, so that its logarithm is finite.
  [[nodiscard]] constexpr double unit() {
    return static_cast<double>((next() >> 11) + 1) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

/// A probability as a threshold for `random.next() < threshold`; 1 and more is always.
[[nodiscard]] constexpr std::uint64_t threshold_of(double probability) {
  if (probability >= 1.0) return ~std::uint64_t{0};
  if (probability <= 0.0) return 0;
  return static_cast<std::uint64_t>(probability * 0x1p64);
}

/// A pseudo-random bijection of [0, 2^width) onto itself: odd multiplications and xor-shifts by
/// half the width, each of which is invertible.
class BitBijection {
 public:
  constexpr BitBijection(unsigned width, std::uint64_t seed)
      : mask_(width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1),
        half_((width + 1) / 2),
        add_(derive_seed(seed, 1) & mask_),
        first_(derive_seed(seed, 2) | 1),
        second_(derive_seed(seed, 3) | 1),
        first_inverse_(inverse_of(first_)),
        second_inverse_(inverse_of(second_)) {}

  [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t x) const {
    x = (x + add_) & mask_;
    x ^= x >> half_;
    x = (x * first_) & mask_;
    x ^= x >> half_;
    x = (x * second_) & mask_;
    return x ^ (x >> half_);
  }
  [[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t x) const {
    x ^= x >> half_;  // its own inverse: the shift is at least half of the width
    x = (x * second_inverse_) & mask_;
    x ^= x >> half_;
    x = (x * first_inverse_) & mask_;
    x ^= x >> half_;
    return (x - add_) & mask_;
  }

 private:
  /// Modulo 2^64, by Newton's iteration: each step doubles the number of correct bits.
  static constexpr std::uint64_t inverse_of(std::uint64_t odd) {
    std::uint64_t inverse = odd;  // correct in 3 bits
    for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
    return inverse;
  }

  std::uint64_t mask_;
  unsigned half_;
  std::uint64_t add_;
  std::uint64_t first_;
  std::uint64_t second_;
  std::uint64_t first_inverse_;
  std::uint64_t second_inverse_;
};

/// A pseudo-random bijection of [0, n) onto itself: walks along the cycle of the bijection of the
/// next power of two until it is inside, fewer than 2 steps on average.
class RangeBijection {
 public:
  constexpr RangeBijection(std::uint64_t n, std::uint64_t seed)
      : n_(n), bits_(n < 2 ? 0 : static_cast<unsigned>(std::bit_width(n - 1)), seed) {}

  [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t x) const {
    do x = bits_.forward(x);
    while (x >= n_);
    return x;
  }
  [[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t x) const {
    do x = bits_.inverse(x);
    while (x >= n_);
    return x;
  }

 private:
  std::uint64_t n_;
  BitBijection bits_;
};

}  // namespace assay
