// Strong types for the numbers that must not be mixed up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lode {

/// A number with a meaning. No implicit conversions; arithmetic only where it makes sense.
template <class Tag>
struct Number {
  std::uint64_t value = 0;

  constexpr Number() = default;
  constexpr explicit Number(std::uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Number&) const = default;
  constexpr Number operator+(std::uint64_t n) const { return Number(value + n); }
  constexpr std::uint64_t operator-(Number other) const { return value - other.value; }
  constexpr Number& operator++() {
    ++value;
    return *this;
  }
};

/// Position in the log, in bytes of frames ever written; segment headers do not count.
using Lsn = Number<struct LsnTag>;
/// Number of a commit: 1 is the first one of a store.
using Sequence = Number<struct SequenceTag>;
/// Number of a page of the data file; byte offset = page_bytes * id.
using PageId = Number<struct PageIdTag>;
/// Number of a sealed state of the overlay; each state that readers can see has its own.
using Generation = Number<struct GenerationTag>;
/// Number of a writable opening of a store. Frames of different epochs never chain by accident.
using Epoch = Number<struct EpochTag>;

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

inline ConstBytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// How log writes become durable. Stored in the root, fixed for the life of a store.
enum class LogMethod : std::uint8_t {
  fdatasync = 0,     ///< write, then fdatasync
  dsync = 1,         ///< O_DSYNC
  direct_dsync = 2,  ///< O_DIRECT and O_DSYNC
};
[[nodiscard]] std::string_view to_string(LogMethod method);

enum class KeyKind : std::uint8_t { bytes = 0, u64 = 1 };

/// What an entry says about its key.
enum class EntryKind : std::uint8_t { value = 0, tombstone = 1 };

}  // namespace lode
