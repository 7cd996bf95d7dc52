#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/tree/page.h"

namespace lode {
namespace {

constexpr std::size_t head_bytes = 4;
constexpr std::size_t offset_bytes = 2;

bool is_inner(PageKind kind) {
  return kind == PageKind::inner || kind == PageKind::inner_u64;
}
bool is_u64(PageKind kind) {
  return kind == PageKind::leaf_u64 || kind == PageKind::inner_u64;
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same < length && a[same] == b[same]) ++same;
  return same;
}

// Bytes of a key of a byte page that lie with its data.
std::size_t rest_bytes(std::size_t key_bytes, std::size_t prefix) {
  const std::size_t suffix = key_bytes - prefix;
  return varint_bytes(suffix) + (suffix > head_bytes ? suffix - head_bytes : 0);
}

std::size_t width_for(std::uint64_t largest) {
  return largest < (1U << 8) ? 1 : largest < (1U << 16) ? 2 : largest >> 32 == 0 ? 4 : 8;
}

// Arrays and header of a page, all but the bodies.
std::size_t fixed_bytes(PageKind kind, std::size_t count, std::size_t prefix, std::size_t width) {
  const std::size_t references = is_inner(kind) ? page_ref_bytes * count : 0;
  if (!is_u64(kind)) {
    return page_header_bytes + padded(prefix) + head_bytes * count + references +
           offset_bytes * (count + 1);
  }
  return page_header_bytes + 8 + width * count + references +
         (is_inner(kind) ? 0 : offset_bytes * (count + 1));
}

}  // namespace

std::uint64_t PageBuilder::number_of(std::size_t i) const {
  return long_head_of(key_of(i));
}

bool PageBuilder::add(std::string_view key, CellKind kind, std::string_view data) {
  const bool first = cells_.empty();
  const std::size_t data_bytes = is_inner(kind_) ? 0 : data.size();
  std::size_t prefix = 0;
  std::size_t bodies = bodies_bytes_ + data_bytes;
  std::size_t width = 0;
  if (is_u64(kind_)) {
    LODE_CHECK(key.size() == 8, "a key of a u64 page has 8 bytes");
    width = width_for(first ? 0 : long_head_of(key) - number_of(0));
  } else {
    prefix = first ? key.size() : std::min(prefix_bytes_, common_prefix(key_of(0), key));
    if (!first && prefix != prefix_bytes_) {
      for (const Pending& cell : cells_) {
        bodies += rest_bytes(cell.key_bytes, prefix) - rest_bytes(cell.key_bytes, prefix_bytes_);
      }
    }
    bodies += rest_bytes(key.size(), prefix);
  }
  if (fixed_bytes(kind_, cells_.size() + 1, prefix, width) + bodies > page_bytes) {
    LODE_CHECK(!first, "an entry always fits an empty page");
    return false;
  }
  cells_.push_back({heap_.size(), key.size(), heap_.size() + key.size(), data.size(), kind});
  heap_.append(key);
  heap_.append(data);
  prefix_bytes_ = prefix;
  bodies_bytes_ = bodies;
  return true;
}

void PageBuilder::lay_out_bytes(std::byte* out) const {
  const std::size_t count = cells_.size();
  store(out + 28, static_cast<std::uint16_t>(prefix_bytes_));
  std::byte* at = out + page_header_bytes;
  std::memcpy(at, heap_.data() + cells_[0].key_at, prefix_bytes_);
  std::byte* heads = at + padded(prefix_bytes_);
  std::byte* references = heads + head_bytes * count;
  std::byte* offsets = references + (is_inner(kind_) ? page_ref_bytes * count : 0);
  at = offsets + offset_bytes * (count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view suffix = key_of(i).substr(prefix_bytes_);
    const std::string_view data = data_of(i);
    store(heads + head_bytes * i, head_of(suffix));
    const auto offset = static_cast<std::uint16_t>(at - out);
    store(offsets + offset_bytes * i,
          static_cast<std::uint16_t>(offset | static_cast<unsigned>(cells_[i].kind) << 14));
    at = put_varint(at, suffix.size());
    if (suffix.size() > head_bytes) {
      std::memcpy(at, suffix.data() + head_bytes, suffix.size() - head_bytes);
      at += suffix.size() - head_bytes;
    }
    std::byte* to = is_inner(kind_) ? references + page_ref_bytes * i : at;
    std::memcpy(to, data.data(), data.size());
    if (!is_inner(kind_)) at += data.size();
  }
  LODE_CHECK(at <= out + page_bytes, "a page's entries fit it");
  store(offsets + offset_bytes * count, static_cast<std::uint16_t>(at - out));
}

void PageBuilder::lay_out_u64(std::byte* out) const {
  const std::size_t count = cells_.size();
  const std::uint64_t base = number_of(0);
  const std::size_t width = width_for(number_of(count - 1) - base);
  out[30] = static_cast<std::byte>(width);
  store(out + page_header_bytes, base);
  std::byte* keys = out + page_header_bytes + 8;
  std::byte* rest = keys + width * count;  // references or offsets
  std::byte* at = rest + offset_bytes * (count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t difference = number_of(i) - base;
    std::memcpy(keys + width * i, &difference, width);  // little-endian: the low bytes
    const std::string_view data = data_of(i);
    if (is_inner(kind_)) {
      std::memcpy(rest + page_ref_bytes * i, data.data(), page_ref_bytes);
      continue;
    }
    const auto offset = static_cast<std::uint16_t>(at - out);
    store(rest + offset_bytes * i,
          static_cast<std::uint16_t>(offset | static_cast<unsigned>(cells_[i].kind) << 14));
    std::memcpy(at, data.data(), data.size());
    at += data.size();
  }
  if (is_inner(kind_)) return;
  LODE_CHECK(at <= out + page_bytes, "a page's entries fit it");
  store(rest + offset_bytes * count, static_cast<std::uint16_t>(at - out));
}

std::uint32_t PageBuilder::finish(std::uint8_t level, PageId page, std::uint64_t tree,
                                  std::byte* out) {
  LODE_CHECK(!cells_.empty(), "a page has entries");
  std::memset(out, 0, page_bytes);
  store(out, page_magic);
  store(out + 8, page.value);
  store(out + 16, tree);
  out[24] = static_cast<std::byte>(kind_);
  out[25] = static_cast<std::byte>(level);
  store(out + 26, static_cast<std::uint16_t>(cells_.size()));
  if (is_u64(kind_)) {
    lay_out_u64(out);
  } else {
    lay_out_bytes(out);
  }
  const std::uint32_t checksum = crc32c(ConstBytes(out + 8, page_bytes - 8));
  store(out + 4, checksum);
  clear();
  return checksum;
}

void PageBuilder::clear() {
  cells_.clear();
  heap_.clear();
  prefix_bytes_ = 0;
  bodies_bytes_ = 0;
}

}  // namespace lode
