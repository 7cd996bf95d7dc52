#include "workloads/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <xxhash.h>

namespace assay {
namespace {

/// Two words at once; the compiler has an instruction for each operation on them.
using WordPair [[gnu::vector_size(16)]] = std::uint64_t;

/// 8 bytes of a key's filler.
std::uint64_t block(std::uint64_t start, std::uint64_t position) {
  std::uint64_t x = start + position * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

void fill_blocks(std::uint64_t start, char* out, std::size_t bytes) {
  std::size_t done = 0;
  std::uint64_t position = 0;
  for (; done + 8 <= bytes; done += 8, ++position) {
    const std::uint64_t word = block(start, position);
    std::memcpy(out + done, &word, 8);
  }
  std::uint64_t word = block(start, position);
  if (bytes - done >= 4) {  // sizes known to the compiler: no call for the last few bytes
    std::memcpy(out + done, &word, 4);
    word >>= 32;
    done += 4;
  }
  for (; done < bytes; ++done, word >>= 8) out[done] = static_cast<char>(word);
}

bool equal_blocks(std::uint64_t start, const char* bytes, std::size_t size) {
  std::size_t done = 0;
  std::uint64_t differing = 0;
  for (std::uint64_t position = 0; done + 8 <= size; done += 8, ++position) {
    std::uint64_t word;
    std::memcpy(&word, bytes + done, 8);
    differing |= word ^ block(start, position);
  }
  if (differing != 0) return false;
  const std::uint64_t word = block(start, done / 8);
  return std::memcmp(bytes + done, &word, size - done) == 0;
}

/// The stamp of a round over the pool; the first is the contents word itself.
std::uint64_t stamp_of(std::uint64_t contents, std::uint64_t round) {
  return round == 0 ? contents : mix64(contents + round * 0x9E3779B97F4A7C15ULL);
}

bool all_zero(const char* bytes, std::size_t size) {
  return std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; });
}

/// A standard normal deviate from one hash, by the Box-Muller transform.
double normal_of(std::uint64_t hash) {
  const double u = (static_cast<double>(hash >> 32) + 1.0) * 0x1p-32;
  const double v = static_cast<double>(hash & 0xffffffffU) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * 3.14159265358979323846 * v);
}

}  // namespace

std::uint32_t key_number_bytes(const KeySpec& spec) {
  if (spec.kind == KeyKind::u64) return 8;
  const auto prefix = static_cast<std::uint32_t>(spec.prefix.size());
  ASSAY_CHECK(spec.bytes > prefix, "a key is longer than its prefix");
  return std::min<std::uint32_t>(8, spec.bytes - prefix);
}

KeyCodec::KeyCodec(const KeySpec& spec, std::uint64_t seed)
    : spec_(spec),
      number_bytes_(key_number_bytes(spec)),
      bijection_(8 * number_bytes_, spec.hashed, derive_seed(seed, 0x6b6579)) {}

void KeyCodec::encode_bytes(std::uint64_t index, char* out) const {
  const std::uint64_t number = bijection_.number_of(index);
  std::memcpy(out, spec_.prefix.data(), spec_.prefix.size());
  out += spec_.prefix.size();
  const std::uint64_t big_endian = __builtin_bswap64(number << (64 - 8 * number_bytes_));
  std::memcpy(out, &big_endian, number_bytes_);
  fill_blocks(mix64(number), out + number_bytes_,
              spec_.bytes - spec_.prefix.size() - number_bytes_);
}

bool KeyCodec::hash_index(std::string_view key, std::uint64_t& index) {
  index = XXH3_64bits(key.data(), key.size()) | (std::uint64_t{1} << 63);
  return true;
}

bool KeyCodec::decode_bytes(std::string_view key, std::uint64_t& index) const {
  if (key.size() != spec_.bytes || !key.starts_with(spec_.prefix)) return false;
  key.remove_prefix(spec_.prefix.size());
  std::uint64_t big_endian = 0;
  std::memcpy(&big_endian, key.data(), number_bytes_);
  const std::uint64_t number = __builtin_bswap64(big_endian) >> (64 - 8 * number_bytes_);
  key.remove_prefix(number_bytes_);
  if (!equal_blocks(mix64(number), key.data(), key.size())) return false;
  index = bijection_.index_of(number);
  return true;
}

ValueCodec::ValueCodec(const ValueSpec& spec, std::uint64_t seed)
    : spec_(spec),
      tag_seed_(derive_seed(seed, 0x746167)),
      contents_seed_(derive_seed(seed, 0x76616c)),
      size_seed_(derive_seed(seed, 0x73697a)) {
  Random random(derive_seed(seed, 0x706f6f));
  for (std::uint64_t& word : pool_) word = random.next();
}

inline void ValueCodec::fill_round(std::uint64_t stamp, char* out, std::size_t bytes) const {
  const auto* const pool = reinterpret_cast<const char*>(pool_.data());
  const WordPair stamps{stamp, stamp};
  std::size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    WordPair words;
    std::memcpy(&words, pool + at, 16);
    words ^= stamps;
    std::memcpy(out + at, &words, 16);
  }
  if (at == bytes) return;
  // Sizes known to the compiler: no call for the last few bytes.
  WordPair words;
  std::memcpy(&words, pool + at, 16);
  words ^= stamps;
  std::uint64_t word = words[0];
  if (((bytes - at) & 8) != 0) {
    std::memcpy(out + at, &word, 8);
    word = words[1];
    at += 8;
  }
  if (((bytes - at) & 4) != 0) {
    std::memcpy(out + at, &word, 4);
    word >>= 32;
    at += 4;
  }
  for (; at < bytes; ++at, word >>= 8) out[at] = static_cast<char>(word);
}

void ValueCodec::fill_noise(std::uint64_t contents, char* out, std::size_t bytes) const {
  fill_round(contents, out, std::min(bytes, kPoolBytes));
  for (std::size_t done = kPoolBytes; done < bytes; done += kPoolBytes) {
    fill_round(stamp_of(contents, done / kPoolBytes), out + done,
               std::min(bytes - done, kPoolBytes));
  }
}

bool ValueCodec::is_noise(std::uint64_t contents, const char* bytes, std::size_t size) const {
  char expected[kPoolBytes];
  for (std::uint64_t round = 0; size > 0; ++round) {
    const std::size_t part = std::min(size, kPoolBytes);
    fill_round(stamp_of(contents, round), expected, part);
    if (std::memcmp(bytes, expected, part) != 0) return false;
    bytes += part;
    size -= part;
  }
  return true;
}

std::uint32_t ValueCodec::max_size() const {
  return spec_.sizes == ValueSizes::fixed ? spec_.bytes : spec_.max_bytes;
}

std::uint32_t ValueCodec::drawn_size(std::uint64_t index, std::uint64_t version) const {
  const std::uint64_t hash = derive_seed(size_seed_, index, version);
  if (spec_.sizes == ValueSizes::uniform) {
    const std::uint64_t sizes = std::uint64_t{spec_.max_bytes} - spec_.min_bytes + 1;
    return spec_.min_bytes + static_cast<std::uint32_t>((static_cast<Wide>(hash) * sizes) >> 64);
  }
  const double size = spec_.bytes * std::exp(spec_.sigma * normal_of(hash));
  return static_cast<std::uint32_t>(std::clamp(std::round(size),
                                               static_cast<double>(spec_.min_bytes),
                                               static_cast<double>(spec_.max_bytes)));
}

std::size_t ValueCodec::noise_bytes(std::size_t size) const {
  if (spec_.compressible <= 0.0) return size;
  const auto zeros = static_cast<std::size_t>(spec_.compressible * static_cast<double>(size));
  return std::max(size - std::min(zeros, size), std::min<std::size_t>(size, 16));
}

void ValueCodec::encode_other(std::uint64_t tag, std::uint64_t contents, std::size_t bytes,
                              char* out) const {
  const std::size_t noise = noise_bytes(bytes);
  if (bytes >= 16) {
    std::memcpy(out, &tag, 8);
    fill_noise(contents, out + 8, noise - 8);
    std::memset(out + noise, 0, bytes - noise);
    return;
  }
  char both[16];
  std::memcpy(both, &tag, 8);
  const std::uint64_t first = pool_[0] ^ contents;
  std::memcpy(both + tag_bytes(bytes), &first, 8);
  std::memcpy(out, both, bytes);
}

bool ValueCodec::matches_sized(std::uint64_t index, std::uint64_t version, std::size_t bytes,
                               std::string_view value) const {
  if (value.size() != bytes || !belongs_to(index, value)) return false;
  const std::size_t noise = noise_bytes(bytes);
  const std::size_t tag = tag_bytes(bytes);
  return is_noise(contents_of(tag_of(index), version), value.data() + tag, noise - tag) &&
         all_zero(value.data() + noise, bytes - noise);
}

}  // namespace assay
