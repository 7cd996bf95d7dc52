#include "engine/tree/page.h"

#include <algorithm>
#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"
#include "engine/tree/page_search.h"

namespace lode {
namespace {

// Header: magic 0, checksum 4, page 8, tree 16, kind 24, level 25, count 26, prefix bytes 28,
// width of the keys 30.
constexpr std::size_t head_bytes = 4;
constexpr std::size_t offset_bytes = 2;

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
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

std::size_t PageView::keys_at() const {
  return page_header_bytes + (is_u64() ? 8 : padded(prefix_bytes()));
}

std::size_t PageView::keys_end() const {
  return keys_at() + (is_u64() ? key_width() : head_bytes) * count();
}

std::size_t PageView::offsets_at() const {
  return keys_end() + (leaf() ? 0 : page_ref_bytes * count());
}

std::string_view PageView::body(std::size_t i) const {
  const std::byte* offsets = page_ + offsets_at() + offset_bytes * i;
  const std::size_t begin = load<std::uint16_t>(offsets) & 0x3FFFU;
  const std::size_t end = load<std::uint16_t>(offsets + offset_bytes) & 0x3FFFU;
  return {reinterpret_cast<const char*>(page_) + begin, end - begin};
}

// The body of an entry of a byte page without the length at its beginning, which is the length of
// the key behind the page's prefix.
std::string_view PageView::rest(std::size_t i, std::size_t& suffix_bytes) const {
  std::string_view all = body(i);
  const auto first = static_cast<unsigned char>(all[0]);
  if (first < 0x80) {
    suffix_bytes = first;
    all.remove_prefix(1);
  } else {  // at most 1,024: two bytes
    suffix_bytes = (first & 0x7FU) | static_cast<std::size_t>(static_cast<unsigned char>(all[1]))
                                         << 7;
    all.remove_prefix(2);
  }
  return all;
}

Cell PageView::cell(std::size_t i) const {
  Cell cell;
  cell.kind =
      static_cast<CellKind>(load<std::uint16_t>(page_ + offsets_at() + offset_bytes * i) >> 14);
  if (is_u64()) {
    cell.data = body(i);
    return cell;
  }
  std::size_t suffix_bytes = 0;
  cell.data = rest(i, suffix_bytes);
  if (suffix_bytes > head_bytes) cell.data.remove_prefix(suffix_bytes - head_bytes);
  return cell;
}

std::uint64_t PageView::number(std::size_t i) const {
  const std::byte* at = page_ + page_header_bytes + 8 + key_width() * i;
  std::uint64_t difference = 0;
  switch (key_width()) {
    case 1:
      difference = std::to_integer<std::uint64_t>(*at);
      break;
    case 2:
      difference = load<std::uint16_t>(at);
      break;
    case 4:
      difference = load<std::uint32_t>(at);
      break;
    default:
      difference = load<std::uint64_t>(at);
      break;
  }
  return load<std::uint64_t>(page_ + page_header_bytes) + difference;
}

std::size_t PageView::key(std::size_t i, char* out, bool prefix_there) const {
  if (is_u64()) {
    const std::uint64_t big = __builtin_bswap64(number(i));
    std::memcpy(out, &big, 8);
    return 8;
  }
  const std::size_t prefix = prefix_bytes();
  if (!prefix_there) std::memcpy(out, page_ + page_header_bytes, prefix);
  const std::uint32_t head =
      __builtin_bswap32(load<std::uint32_t>(page_ + keys_at() + head_bytes * i));
  std::memcpy(out + prefix, &head, head_bytes);  // a shorter suffix leaves zeros behind the key
  std::size_t suffix_bytes = 0;
  const std::string_view more = rest(i, suffix_bytes);
  if (suffix_bytes > head_bytes) {
    std::memcpy(out + prefix + head_bytes, more.data(), suffix_bytes - head_bytes);
  }
  return prefix + suffix_bytes;
}

// The two compare in full keys whose heads are equal. Where one has fewer bytes than a head, the
// other one begins with it and zeros: the shorter one is lower.
bool PageView::suffix_below(std::size_t i, std::string_view suffix) const {
  std::size_t bytes = 0;
  const std::string_view more = rest(i, bytes);
  if (bytes < head_bytes || suffix.size() < head_bytes) return bytes < suffix.size();
  return more.substr(0, bytes - head_bytes) < suffix.substr(head_bytes);
}

bool PageView::suffix_is(std::size_t i, std::string_view suffix) const {
  std::size_t bytes = 0;
  const std::string_view more = rest(i, bytes);
  return bytes == suffix.size() &&
         (bytes <= head_bytes ||
          std::memcmp(more.data(), suffix.data() + head_bytes, bytes - head_bytes) == 0);
}

std::size_t PageView::lower_bound_bytes(std::string_view key, bool& equal) const {
  const std::string_view shared(reinterpret_cast<const char*>(page_) + page_header_bytes,
                                prefix_bytes());
  if (!key.starts_with(shared)) return key < shared ? 0 : count();
  const std::string_view suffix = key.substr(shared.size());
  const std::uint32_t head = head_of(suffix);
  const std::byte* heads = page_ + page_header_bytes + padded(shared.size());
  const std::size_t entries = count();
  std::size_t low = count_below<std::uint32_t>(heads, entries, head);
  const auto head_is = [&](std::size_t i) {
    return i < entries && load<std::uint32_t>(heads + head_bytes * i) == head;
  };
  if (!head_is(low)) return low;
  const char* entry = body(low).data();
  __builtin_prefetch(entry);
  __builtin_prefetch(entry + 64);
  __builtin_prefetch(entry + 128);
  if (head_is(low + 1)) {  // several equal heads: by their rests, by halves
    std::size_t step = 2;
    std::size_t high = low + 1;
    while (head_is(high)) {
      high += step;
      step *= 2;
    }
    high = std::min(high, entries);
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (head_is(middle) && suffix_below(middle, suffix)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (!head_is(low)) return low;
  } else if (suffix_below(low, suffix)) {
    return low + 1;
  }
  equal = suffix_is(low, suffix);
  return low;
}

std::size_t PageView::count_keys_below(std::uint64_t key) const {
  const auto base = load<std::uint64_t>(page_ + page_header_bytes);
  if (key <= base) return 0;
  const std::uint64_t difference = key - base;
  const std::byte* keys = page_ + page_header_bytes + 8;
  switch (key_width()) {
    case 1:
      return difference >> 8 != 0
                 ? count()
                 : count_below(keys, count(), static_cast<std::uint8_t>(difference));
    case 2:
      return difference >> 16 != 0
                 ? count()
                 : count_below(keys, count(), static_cast<std::uint16_t>(difference));
    case 4:
      return difference >> 32 != 0
                 ? count()
                 : count_below(keys, count(), static_cast<std::uint32_t>(difference));
    default:
      return count_below(keys, count(), difference);
  }
}

std::size_t PageView::lower_bound_u64(std::string_view key, bool& equal) const {
  // A text of another length than 8 lies between two numbers: a shorter one before all that begin
  // with it, a longer one behind the number that it begins with.
  const std::uint64_t wanted = long_head_of(key);
  if (key.size() > 8) {
    return wanted == ~std::uint64_t{0} ? count() : count_keys_below(wanted + 1);
  }
  const std::size_t at = count_keys_below(wanted);
  equal = key.size() == 8 && at < count() && number(at) == wanted;
  return at;
}

std::size_t PageView::lower_bound(std::string_view key, bool& equal) const {
  equal = false;
  return is_u64() ? lower_bound_u64(key, equal) : lower_bound_bytes(key, equal);
}

bool PageView::find(std::string_view key, Cell& found) const {
  bool equal = false;
  const std::size_t at = lower_bound(key, equal);
  if (!equal) return false;
  found = cell(at);
  return true;
}

std::size_t PageView::child_index(std::string_view key) const {
  bool equal = false;
  const std::size_t at = lower_bound(key, equal);
  if (equal) return at;
  return at == 0 ? 0 : at - 1;  // below the first separator: the first child
}

PageRef PageView::child(std::size_t i) const {
  return decode_page_ref(page_ + keys_end() + page_ref_bytes * i);
}

Status check_page_structure(const std::byte* page) {
  const PageView view(page);
  const auto bad = [](const char* what) { return fail(ErrorKind::corruption, what); };
  if (view.kind() < PageKind::leaf || view.kind() > PageKind::inner_u64) {
    return bad("unknown kind of page");
  }
  const std::size_t count = view.count();
  if (count == 0) return bad("a page without entries");
  const std::size_t width = view.key_width();
  if (view.is_u64() && width != 1 && width != 2 && width != 4 && width != 8) {
    return bad("unknown width of keys");
  }
  const bool bodies = view.leaf() || !view.is_u64();
  const std::size_t fixed = view.offsets_at() + (bodies ? offset_bytes * (count + 1) : 0);
  if (fixed > page_bytes || view.prefix_bytes() > max_key_bytes) {
    return bad("page header beyond the page");
  }
  if (!bodies) return {};
  std::size_t end = fixed;
  for (std::size_t i = 0; i <= count; ++i) {
    const std::size_t begin = view.offset(i);
    if (i == 0 ? begin != fixed : begin < end) return bad("entry offsets out of order");
    if (begin > page_bytes) return bad("entry offset beyond the page");
    end = begin;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view body = view.body(i);
    if (!view.is_u64()) {
      Decoder in(as_bytes(body));
      const std::uint64_t suffix_bytes = in.varint();
      if (in.failed() || suffix_bytes + view.prefix_bytes() > max_key_bytes ||
          body.size() - in.left() != varint_bytes(suffix_bytes) ||
          (suffix_bytes > head_bytes && in.left() < suffix_bytes - head_bytes)) {
        return bad("malformed key");
      }
    }
    const Cell cell = view.cell(i);
    const bool fits =
        view.leaf() ? cell.kind == CellKind::value ||
                          (cell.kind == CellKind::tombstone && cell.data.empty()) ||
                          (cell.kind == CellKind::reference && cell.data.size() == value_ref_bytes)
                    : cell.kind == CellKind::value && cell.data.empty();
    if (!fits) return bad("malformed entry");
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
