#include "engine/tree/page.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"

namespace lode {
namespace {

// Header: magic 0, checksum 4, page 8, tree 16, kind 24, level 25, count 26, prefix bytes 28.
constexpr std::size_t head_bytes = 4;
constexpr std::size_t offset_bytes = 2;

std::size_t count_of(const std::byte* page) {
  return load<std::uint16_t>(page + 26);
}
std::size_t prefix_bytes_of(const std::byte* page) {
  return load<std::uint16_t>(page + 28);
}
std::size_t offsets_at(const std::byte* page) {
  return page_header_bytes + head_bytes * count_of(page);
}
std::size_t prefix_at(const std::byte* page) {
  return offsets_at(page) + offset_bytes * count_of(page);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same < length && a[same] == b[same]) ++same;
  return same;
}

}  // namespace

void encode_page_ref(const PageRef& ref, std::byte* out) {
  store(out, ref.page.value);
  store(out + 8, ref.checksum);
}

PageRef decode_page_ref(const std::byte* in) {
  return {PageId(load<std::uint64_t>(in)), load<std::uint32_t>(in + 8)};
}

void encode_value_ref(const ValueRef& ref, std::byte* out) {
  store(out, ref.offset);
  store(out + 8, ref.bytes);
  store(out + 16, ref.checksum);
}

ValueRef decode_value_ref(const std::byte* in) {
  return {load<std::uint64_t>(in), load<std::uint64_t>(in + 8), load<std::uint32_t>(in + 16)};
}

bool PageBuilder::add(std::string_view key, CellKind kind, std::string_view data) {
  const std::size_t prefix =
      cells_.empty() ? key.size() : std::min(prefix_bytes_, common_prefix(first_key(), key));
  const std::size_t count = cells_.size() + 1;
  // The length of a key in full bounds the length field of its rest.
  const std::size_t rest = rest_bytes_ + key.size() + varint_bytes(key.size()) + data.size() +
                           varint_bytes(data.size() << 2);
  const std::size_t size =
      page_header_bytes + (head_bytes + offset_bytes) * count + rest + prefix - prefix * count;
  if (size > page_bytes) {
    LODE_CHECK(!cells_.empty(), "an entry always fits an empty page");
    return false;
  }
  Pending cell{heap_.size(), key.size(), heap_.size() + key.size(), data.size(), kind};
  heap_.append(key);
  heap_.append(data);
  cells_.push_back(cell);
  prefix_bytes_ = prefix;
  rest_bytes_ = rest;
  return true;
}

std::uint32_t PageBuilder::finish(PageKind kind, std::uint8_t level, PageId page,
                                  std::uint64_t tree, std::byte* out) {
  std::memset(out, 0, page_bytes);
  store(out, page_magic);
  store(out + 8, page.value);
  store(out + 16, tree);
  out[24] = static_cast<std::byte>(kind);
  out[25] = static_cast<std::byte>(level);
  store(out + 26, static_cast<std::uint16_t>(cells_.size()));
  store(out + 28, static_cast<std::uint16_t>(prefix_bytes_));
  const std::size_t offsets = offsets_at(out);
  std::size_t at = prefix_at(out);
  if (!cells_.empty()) std::memcpy(out + at, heap_.data() + cells_[0].key_at, prefix_bytes_);
  at += prefix_bytes_;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Pending& cell = cells_[i];
    const std::string_view suffix = key_of(i).substr(prefix_bytes_);
    store(out + page_header_bytes + head_bytes * i, head_of(suffix));
    store(out + offsets + offset_bytes * i, static_cast<std::uint16_t>(at));
    std::byte* to = put_varint(out + at, suffix.size());
    to = put_varint(to, (cell.data_bytes << 2) | static_cast<std::uint64_t>(cell.kind));
    std::memcpy(to, suffix.data(), suffix.size());
    to += suffix.size();
    std::memcpy(to, heap_.data() + cell.data_at, cell.data_bytes);
    at = static_cast<std::size_t>(to - out) + cell.data_bytes;
  }
  LODE_CHECK(at <= page_bytes, "a page's entries fit it");
  const std::uint32_t checksum = crc32c(ConstBytes(out + 8, page_bytes - 8));
  store(out + 4, checksum);
  cells_.clear();
  heap_.clear();
  prefix_bytes_ = 0;
  rest_bytes_ = 0;
  return checksum;
}

std::size_t PageView::count() const {
  return count_of(page_);
}

std::string_view PageView::prefix() const {
  return {reinterpret_cast<const char*>(page_) + prefix_at(page_), prefix_bytes_of(page_)};
}

Cell PageView::cell(std::size_t i) const {
  const std::byte* at = page_ + load<std::uint16_t>(page_ + offsets_at(page_) + offset_bytes * i);
  Decoder in(ConstBytes(at, static_cast<std::size_t>(page_ + page_bytes - at)));
  const std::uint64_t suffix_bytes = in.varint();
  const std::uint64_t tag = in.varint();
  Cell cell;
  cell.kind = static_cast<CellKind>(tag & 3);
  cell.suffix = in.bytes(suffix_bytes);
  cell.data = in.bytes(tag >> 2);
  return cell;
}

std::size_t PageView::lower_bound(std::string_view key, bool& equal) const {
  equal = false;
  const std::string_view shared = prefix();
  const int order = shared.compare(key.substr(0, shared.size()));
  if (order > 0) return 0;
  if (order < 0) return count();
  const std::string_view suffix = key.substr(shared.size());
  const std::uint32_t head = head_of(suffix);
  const std::byte* heads = page_ + page_header_bytes;
  // First by heads, without a branch on the outcome of a comparison.
  std::size_t low = 0;
  std::size_t length = count();
  while (length > 0) {
    const std::size_t half = length / 2;
    const bool below = load<std::uint32_t>(heads + head_bytes * (low + half)) < head;
    low = below ? low + half + 1 : low;
    length = below ? length - half - 1 : half;
  }
  // Then the equal heads in full, again by halves.
  std::size_t high = low;
  std::size_t step = 1;
  while (high < count() && load<std::uint32_t>(heads + head_bytes * high) == head) {
    high += step;
    step *= 2;
  }
  high = std::min(high, count());
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (load<std::uint32_t>(heads + head_bytes * middle) == head && cell(middle).suffix < suffix) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  equal = low < count() && load<std::uint32_t>(heads + head_bytes * low) == head &&
          cell(low).suffix == suffix;
  return low;
}

std::size_t PageView::child_index(std::string_view key) const {
  bool equal = false;
  const std::size_t at = lower_bound(key, equal);
  if (equal) return at;
  return at == 0 ? 0 : at - 1;  // below the first separator: the first child
}

PageRef PageView::child(std::size_t i) const {
  return decode_page_ref(reinterpret_cast<const std::byte*>(cell(i).data.data()));
}

Status check_page_structure(const std::byte* page) {
  const std::size_t count = count_of(page);
  const auto kind = static_cast<PageKind>(page[24]);
  if (kind != PageKind::leaf && kind != PageKind::inner) {
    return fail(ErrorKind::corruption, "unknown kind of page");
  }
  if (count == 0) return fail(ErrorKind::corruption, "a page without entries");
  const std::size_t entries =
      page_header_bytes + (head_bytes + offset_bytes) * count + prefix_bytes_of(page);
  if (entries > page_bytes) return fail(ErrorKind::corruption, "page header beyond the page");
  const std::size_t offsets = offsets_at(page);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = load<std::uint16_t>(page + offsets + offset_bytes * i);
    if (at < entries || at >= page_bytes) {
      return fail(ErrorKind::corruption, "entry offset beyond the page");
    }
    Decoder in(ConstBytes(page + at, page_bytes - at));
    const std::uint64_t suffix_bytes = in.varint();
    const std::uint64_t tag = in.varint();
    (void)in.bytes(suffix_bytes);
    (void)in.bytes(tag >> 2);
    const auto cell = static_cast<CellKind>(tag & 3);
    const std::uint64_t data_bytes = tag >> 2;
    const bool fits = kind == PageKind::inner
                          ? cell == CellKind::value && data_bytes == page_ref_bytes
                          : cell == CellKind::value ||
                                (cell == CellKind::tombstone && data_bytes == 0) ||
                                (cell == CellKind::reference && data_bytes == value_ref_bytes);
    if (in.failed() || !fits) return fail(ErrorKind::corruption, "malformed entry");
  }
  return {};
}

Status check_page(const std::byte* page, const PageRef& expected, std::uint64_t tree) {
  const std::string place = "page " + std::to_string(expected.page.value);
  if (load<std::uint32_t>(page) != page_magic) {
    return fail(ErrorKind::corruption, place + " is not a page (lost or foreign write)");
  }
  if (load<std::uint64_t>(page + 8) != expected.page.value) {
    return fail(ErrorKind::corruption, place + " holds another page (misdirected write)");
  }
  const auto stored = load<std::uint32_t>(page + 4);
  if (crc32c(ConstBytes(page + 8, page_bytes - 8)) != stored &&
      !LODE_MUTATED("page-checksum-ignored")) {
    return fail(ErrorKind::corruption, place + " is damaged (checksum)");
  }
  if ((stored != expected.checksum && !LODE_MUTATED("parents-checksum-ignored")) ||
      load<std::uint64_t>(page + 16) != tree) {
    return fail(ErrorKind::corruption, place + " holds an older state (lost write)");
  }
  auto status = check_page_structure(page);
  if (!status) return std::unexpected(std::move(status).error().in(place));
  return {};
}

}  // namespace lode
