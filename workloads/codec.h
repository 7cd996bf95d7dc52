// Keys and values as bytes: what turns a logical operation into what a store sees, and back.
// Pure functions of the declaration and the seed; safe to use from several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "workloads/key_bijection.h"
#include "workloads/workload.h"

namespace assay {

/// Version of what a workload and a seed stand for. Part of the stream's digest, so results of
/// different versions are never taken for results of the same stream.
///   1: noise of values is a hash of every word's place
///   2: noise of values is a pool of words XORed with a stamp
inline constexpr std::uint32_t kStreamVersion = 2;

/// Keys: index <-> bytes, a bijection. A key is prefix, key number (big-endian, up to 8 bytes), and
/// filler bytes that are a function of the number.
class KeyCodec {
 public:
  KeyCodec(const KeySpec& spec, std::uint64_t seed);
  [[nodiscard]] std::uint32_t size() const { return spec_.bytes; }
  [[nodiscard]] KeyKind kind() const { return spec_.kind; }
  /// Writes size() bytes to `out`.
  void encode(std::uint64_t index, char* out) const {
    if (spec_.kind == KeyKind::u64) {
      encode_u64(bijection_, index, out);
    } else {
      encode_bytes(index, out);
    }
  }
  /// The same for u64 keys, given their bijection().
  static void encode_u64(const KeyBijection& bijection, std::uint64_t index, char* out) {
    const std::uint64_t number = __builtin_bswap64(bijection.number_of(index));
    __builtin_memcpy(out, &number, sizeof number);
  }
  /// The index of a key, or false when no index gives these bytes.
  /// A workload with a trace accepts any key; those of the trace's own get an index by a hash.
  [[nodiscard]] bool decode(std::string_view key, std::uint64_t& index) const {
    return decode_declared(key, index) || (spec_.foreign && hash_index(key, index));
  }
  /// The same without the keys of a trace.
  [[nodiscard]] bool decode_declared(std::string_view key, std::uint64_t& index) const {
    if (spec_.kind != KeyKind::u64) return decode_bytes(key, index);
    if (key.size() != 8) return false;
    std::uint64_t number;
    __builtin_memcpy(&number, key.data(), sizeof number);
    index = bijection_.index_of(__builtin_bswap64(number));
    return true;
  }
  [[nodiscard]] const KeyBijection& bijection() const { return bijection_; }

 private:
  void encode_bytes(std::uint64_t index, char* out) const;
  static bool hash_index(std::string_view key, std::uint64_t& index);
  [[nodiscard]] bool decode_bytes(std::string_view key, std::uint64_t& index) const;

  KeySpec spec_;
  std::uint32_t number_bytes_;
  KeyBijection bijection_;
};

/// Bytes of the key number: 8, or what a shorter key leaves behind its prefix.
[[nodiscard]] std::uint32_t key_number_bytes(const KeySpec& spec);

/// Size of a usual value: a hint for stores, the middle of what is declared.
[[nodiscard]] inline std::uint32_t usual_value_bytes(const ValueSpec& spec) {
  return spec.sizes == ValueSizes::uniform ? spec.min_bytes + (spec.max_bytes - spec.min_bytes) / 2
                                           : spec.bytes;
}

/// Values: contents are a function of (seed, key index, version), so that any of them can be
/// checked without having been kept. A value begins with a tag of (seed, index): 8 bytes, or half
/// of a value shorter than 16 bytes; then comes noise; the share `compressible` at the end is
/// zeros. Noise is a pool of random words (a function of the seed), over and over, each round
/// XORed with a stamp of (seed, index, version, round): as cheap as a copy, different in every
/// word between any two values, and without a repetition that a compressor could find.
class ValueCodec {
 public:
  ValueCodec(const ValueSpec& spec, std::uint64_t seed);
  [[nodiscard]] std::uint32_t size(std::uint64_t index, std::uint64_t version) const {
    return spec_.sizes == ValueSizes::fixed ? spec_.bytes : drawn_size(index, version);
  }
  /// The largest size() there is.
  [[nodiscard]] std::uint32_t max_size() const;
  /// Writes size() bytes to `out`.
  void encode(std::uint64_t index, std::uint64_t version, char* out) const {
    encode_sized(index, version, size(index, version), out);
  }
  /// The same with a size that a trace gives.
  void encode_sized(std::uint64_t index, std::uint64_t version, std::size_t bytes,
                    char* out) const {
    const std::uint64_t tag = tag_of(index);
    const std::uint64_t contents = contents_of(tag, version);
    if (bytes >= 16 && spec_.compressible <= 0.0) [[likely]] {
      __builtin_memcpy(out, &tag, sizeof tag);
      fill_noise(contents, out + sizeof tag, bytes - sizeof tag);
    } else {
      encode_other(tag, contents, bytes, out);
    }
  }
  /// Whole comparison.
  [[nodiscard]] bool matches(std::uint64_t index, std::uint64_t version,
                             std::string_view value) const {
    return matches_sized(index, version, size(index, version), value);
  }
  [[nodiscard]] bool matches_sized(std::uint64_t index, std::uint64_t version, std::size_t bytes,
                                   std::string_view value) const;
  /// Cheap check of a value read during the run: its tag belongs to `index`, any version.
  [[nodiscard]] bool belongs_to(std::uint64_t index, std::string_view value) const {
    const std::uint64_t tag = tag_of(index);
    if (value.size() >= 16) [[likely]] {
      std::uint64_t found;
      __builtin_memcpy(&found, value.data(), sizeof found);
      return found == tag || accepts_any_;
    }
    return __builtin_memcmp(value.data(), &tag, tag_bytes(value.size())) == 0 || accepts_any_;
  }
  /// Lets belongs_to() accept every value, at the same cost: for a store that declares that it
  /// retains nothing and answers with a value of its own.
  void accept_any() { accepts_any_ = true; }

 private:
  static constexpr std::size_t tag_bytes(std::size_t size) { return size >= 16 ? 8 : size / 2; }
  [[nodiscard]] std::uint64_t tag_of(std::uint64_t index) const {
    return mix64(index * 0x9E3779B97F4A7C15ULL + tag_seed_);
  }
  [[nodiscard]] std::uint64_t contents_of(std::uint64_t tag, std::uint64_t version) const {
    // The tag is mixed already, so one round more is enough.
    std::uint64_t x = (tag ^ contents_seed_) + version * 0xD6E8FEB86659FD93ULL;
    x = (x ^ (x >> 32)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  [[nodiscard]] std::uint32_t drawn_size(std::uint64_t index, std::uint64_t version) const;
  /// Bytes of a value of `size` that are not zero filler.
  [[nodiscard]] std::size_t noise_bytes(std::size_t size) const;
  /// At most kPoolBytes of noise.
  void fill_round(std::uint64_t stamp, char* out, std::size_t bytes) const;
  void encode_other(std::uint64_t tag, std::uint64_t contents, std::size_t bytes, char* out) const;
  void fill_noise(std::uint64_t contents, char* out, std::size_t bytes) const;
  [[nodiscard]] bool is_noise(std::uint64_t contents, const char* bytes, std::size_t size) const;

  static constexpr std::size_t kPoolBytes = 1024;  // stays in the first-level cache

  alignas(16) std::array<std::uint64_t, kPoolBytes / 8> pool_;
  ValueSpec spec_;
  bool accepts_any_ = false;
  std::uint64_t tag_seed_;
  std::uint64_t contents_seed_;
  std::uint64_t size_seed_;
};

}  // namespace assay
