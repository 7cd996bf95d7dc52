// Reading the entries of a leaf one after the other, for cursors. Kept in the header, for a scan
// does little else. Threads: as PageView.
#pragma once

#include <cstddef>
#include <cstring>

#include "engine/tree/page.h"

namespace lode {

/// Reads the entries of one leaf one by one: what is the same for all of them is worked out once.
class LeafReader {
 public:
  LeafReader() = default;
  explicit LeafReader(PageView leaf);
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Entry `i`. Writes its key into `key_out` (key_buffer_bytes), where the page's prefix is kept
  /// since begin_key().
  /// `ahead`: in which direction the next ones will be read, for which the CPU fetches them.
  void read(std::size_t i, char* key_out, std::size_t& key_bytes, Cell& cell,
            std::ptrdiff_t ahead) const;
  void begin_key(char* key_out) const;

 private:
  static constexpr std::size_t head_bytes = 4;

  PageView view_;
  const std::byte* page_ = nullptr;
  const std::byte* heads_ = nullptr;
  const std::byte* offsets_ = nullptr;
  std::size_t count_ = 0;
  std::size_t prefix_bytes_ = 0;
  bool u64_ = false;
};

inline LeafReader::LeafReader(PageView leaf)
    : view_(leaf),
      page_(leaf.page_),
      heads_(leaf.page_ + leaf.keys_at()),
      offsets_(leaf.page_ + leaf.offsets_at()),
      count_(leaf.count()),
      prefix_bytes_(leaf.prefix_bytes()),
      u64_(leaf.is_u64()) {}

inline void LeafReader::begin_key(char* key_out) const {
  std::memcpy(key_out, page_ + page_header_bytes, prefix_bytes_);
}

inline void LeafReader::read(std::size_t i, char* key_out, std::size_t& key_bytes, Cell& cell,
                             std::ptrdiff_t ahead) const {
  const auto two = load<std::uint32_t>(offsets_ + 2 * i);  // this offset and the next
  const char* at = reinterpret_cast<const char*>(page_) + (two & 0x3FFFU);
  const char* end = reinterpret_cast<const char*>(page_) + ((two >> 16) & 0x3FFFU);
  cell.kind = static_cast<CellKind>((two >> 14) & 3);
  // Some entries on, and at least some lines; a prefetch beyond the page does no harm.
  const std::ptrdiff_t distance = ahead * (3 * (end - at) + 128);
  __builtin_prefetch(at + distance);
  __builtin_prefetch(at + distance + 64);
  if (u64_) {
    key_bytes = view_.key(i, key_out);
    cell.data = {at, static_cast<std::size_t>(end - at)};
    return;
  }
  const std::uint32_t head = __builtin_bswap32(load<std::uint32_t>(heads_ + head_bytes * i));
  char* out = key_out + prefix_bytes_;
  std::memcpy(out, &head, head_bytes);
  std::size_t suffix_bytes = static_cast<unsigned char>(*at++);
  if (suffix_bytes >= 0x80) {
    suffix_bytes =
        (suffix_bytes & 0x7F) | static_cast<std::size_t>(static_cast<unsigned char>(*at++)) << 7;
  }
  key_bytes = prefix_bytes_ + suffix_bytes;
  if (suffix_bytes > head_bytes) {
    const std::size_t more = suffix_bytes - head_bytes;
    const char* page_end = reinterpret_cast<const char*>(page_) + page_bytes;
    if (more <= 16 && page_end - at >= 16) {
      std::memcpy(out + head_bytes, at, 16);  // a fixed length: two moves and no call
    } else {
      std::memcpy(out + head_bytes, at, more);
    }
    at += more;
  }
  cell.data = {at, static_cast<std::size_t>(end - at)};
}

}  // namespace lode
