#include "engine/tree/filter.h"

#include <cstring>

namespace lode {
namespace {

constexpr std::size_t bits_a_key = 10;
constexpr std::size_t block_bits = 512;

std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t filter_hash(std::string_view key) {
  std::uint64_t hash = 0x9E3779B97F4A7C15U ^ key.size();
  while (key.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, key.data(), 8);
    hash = mixed(hash + word) + 0x9E3779B97F4A7C15U;
    key.remove_prefix(8);
  }
  std::uint64_t word = 0;
  if (!key.empty()) std::memcpy(&word, key.data(), key.size());
  return mixed(hash + word);
}

Filter::Filter(const std::vector<std::uint64_t>& hashes) {
  const std::size_t blocks = (hashes.size() * bits_a_key + block_bits - 1) / block_bits;
  words_.assign(blocks * block_words, 0);
  for (const std::uint64_t hash : hashes) {
    std::uint64_t* block = &words_[block_of(hash, blocks) * block_words];
    std::uint64_t bits = mixed(hash);
    for (unsigned i = 0; i < probes; ++i, bits >>= 9) {
      block[(bits & 511) / 64] |= std::uint64_t{1} << (bits & 63);
    }
  }
}

Filter::Filter(ConstBytes stored) : words_(stored.size() / sizeof(std::uint64_t)) {
  if (!words_.empty()) std::memcpy(words_.data(), stored.data(), words_.size() * 8);
}

std::uint64_t Filter::probe_bits(std::uint64_t hash) {
  return mixed(hash);
}

const std::array<std::uint64_t, Filter::block_words> Filter::every_key = [] {
  std::array<std::uint64_t, block_words> ones;
  ones.fill(~std::uint64_t{0});
  return ones;
}();

}  // namespace lode
