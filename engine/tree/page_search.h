// Searching sorted arrays of fixed-width numbers inside a page.
//
// Halving without a branch on the outcome narrows to a window of a few cache lines; the window is
// counted with SIMD where there is any. The scalar twin gives the same answers (tested).
// Arrays need no alignment and hold little-endian numbers.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "engine/base/coding.h"

namespace lode {

/// How many of the `count` rising numbers at `numbers` are below `target`.
template <class T>
[[nodiscard]] inline std::size_t count_below_scalar(const std::byte* numbers, std::size_t count,
                                                    T target) {
  std::size_t low = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    const bool below = load<T>(numbers + sizeof(T) * (low + half)) < target;
    low = below ? low + half + 1 : low;
    count = below ? count - half - 1 : half;
  }
  return low;
}

/// The same, faster.
template <class T>
[[nodiscard]] inline std::size_t count_below(const std::byte* numbers, std::size_t count,
                                             T target) {
  constexpr std::size_t window = 128 / sizeof(T);  // two cache lines
  const std::byte* low = numbers;
  while (count > window) {
    const std::size_t half = count / 2;
    // The number before `half` decides: when it is below, so is all before it.
    low = load<T>(low + sizeof(T) * (half - 1)) < target ? low + sizeof(T) * half : low;
    count -= half;
  }
  std::size_t below = static_cast<std::size_t>(low - numbers) / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    below += load<T>(low + sizeof(T) * i) < target ? 1U : 0U;
  }
  return below;
}

#if defined(__SSE2__)
template <>
[[nodiscard]] inline std::size_t count_below<std::uint32_t>(const std::byte* numbers,
                                                            std::size_t count,
                                                            std::uint32_t target) {
  constexpr std::size_t window = 64;
  const std::byte* low = numbers;
  while (count > window) {
    const std::size_t half = count / 2;
    low = load<std::uint32_t>(low + 4 * (half - 1)) < target ? low + 4 * half : low;
    count -= half;
  }
  std::size_t below = static_cast<std::size_t>(low - numbers) / 4;
  // SSE2 compares signed numbers only: moving both by 2^31 keeps the order.
  const __m128i sign = _mm_set1_epi32(static_cast<int>(0x80000000U));
  const __m128i wanted = _mm_xor_si128(_mm_set1_epi32(static_cast<int>(target)), sign);
  __m128i sums = _mm_setzero_si128();  // minus the number of hits in each lane
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low + 4 * i));
    sums = _mm_add_epi32(sums, _mm_cmpgt_epi32(wanted, _mm_xor_si128(four, sign)));
  }
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4E));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xB1));
  below += static_cast<std::size_t>(-_mm_cvtsi128_si32(sums));
  for (; i < count; ++i) below += load<std::uint32_t>(low + 4 * i) < target ? 1U : 0U;
  return below;
}
#endif

}  // namespace lode
