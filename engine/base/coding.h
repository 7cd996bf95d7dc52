// Little-endian numbers and variable-length numbers (7 bits a byte, least significant first) in
// byte buffers. Readers check bounds and never trust a length.
#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "engine/base/types.h"

namespace lode {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

template <class T>
[[nodiscard]] T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// Big-endian 32-bit number of the first four bytes of `text`, padded with zeros: comparing two
/// of them compares the texts as far as they go.
[[nodiscard]] inline std::uint32_t head_of(std::string_view text) {
  if (text.size() >= 4) {
    std::uint32_t raw = 0;
    std::memcpy(&raw, text.data(), 4);
    return __builtin_bswap32(raw);
  }
  std::uint32_t head = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    head |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << (24 - 8 * i);
  }
  return head;
}

/// Big-endian 64-bit number of the first eight bytes of `text`, padded with zeros.
[[nodiscard]] inline std::uint64_t long_head_of(std::string_view text) {
  std::uint64_t raw = 0;
  if (text.size() >= 8) {
    std::memcpy(&raw, text.data(), 8);
  } else if (!text.empty()) {
    std::memcpy(&raw, text.data(), text.size());
  }
  return __builtin_bswap64(raw);
}

constexpr std::size_t max_varint_bytes = 10;

inline std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// Writes `value` at `at`, which has room for it; returns the end.
inline std::byte* put_varint(std::byte* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::byte>((value & 0x7F) | 0x80);
  *at++ = static_cast<std::byte>(value);
  return at;
}

/// Appends to a growing buffer.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  template <class T>
  void fixed(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void varint(std::uint64_t value) {
    std::byte buffer[max_varint_bytes];
    const std::byte* end = put_varint(buffer, value);
    out_.append(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(end - buffer));
  }
  void bytes(std::string_view text) { out_.append(text); }
  /// Length, then the bytes.
  void text(std::string_view value) {
    varint(value.size());
    bytes(value);
  }

 private:
  std::string& out_;
};

/// Reads what an Encoder wrote. After a read beyond the end, failed() stays true and reads give 0.
class Decoder {
 public:
  explicit Decoder(ConstBytes data) : at_(data.data()), end_(data.data() + data.size()) {}
  template <class T>
  T fixed() {
    if (left() < sizeof(T)) return give_up(), T{};
    T value = load<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return give_up(), 0;
      const auto byte = std::to_integer<std::uint64_t>(*at_++);
      if (shift == 63 && byte > 1) return give_up(), 0;
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return give_up(), 0;
  }
  std::string_view bytes(std::uint64_t count) {
    if (left() < count) return give_up(), std::string_view{};
    const std::string_view view(reinterpret_cast<const char*>(at_), count);
    at_ += count;
    return view;
  }
  std::string_view text() { return bytes(varint()); }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::byte* position() const { return at_; }

 private:
  void give_up() {
    failed_ = true;
    at_ = end_;
  }
  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

}  // namespace lode
