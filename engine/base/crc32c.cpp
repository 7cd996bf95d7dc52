#include "engine/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lode {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> table_of_bytes = make_table();

#if defined(__x86_64__)
// One stream of the instruction has a latency of three cycles for eight bytes; three streams side
// by side would be faster and are not needed while the device is the limit.
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(ConstBytes data, std::uint32_t seed) {
  std::uint64_t crc = seed ^ 0xFFFFFFFFU;
  const std::byte* at = data.data();
  std::size_t left = data.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*at));
  return narrow ^ 0xFFFFFFFFU;
}
#endif

}  // namespace

std::uint32_t crc32c_scalar(ConstBytes data, std::uint32_t seed) {
  std::uint32_t crc = seed ^ 0xFFFFFFFFU;
  for (const std::byte b : data) {
    crc = (crc >> 8) ^ table_of_bytes[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFFU];
  }
  return crc ^ 0xFFFFFFFFU;
}

bool crc32c_has_hardware() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
#else
  return false;
#endif
}

std::uint32_t crc32c(ConstBytes data, std::uint32_t seed) {
#if defined(__x86_64__)
  if (crc32c_has_hardware()) return crc32c_sse42(data, seed);
#endif
  return crc32c_scalar(data, seed);
}

}  // namespace lode
