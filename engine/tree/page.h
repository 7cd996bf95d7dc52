// One page of a sorted tree: building, searching, checking. FORMAT.md describes the bytes.
//
// A page holds entries in key order. Pages of byte keys keep the prefix that all keys share once
// and the first four bytes of each rest in an array of numbers that the search compares first;
// pages of u64 keys keep an array of differences to the lowest key, as narrow as the page allows.
// Leaves hold values, tombstones and references to large values; inner pages an array of references
// to children with the child's checksum, so that a write that was lost or went astray is found by
// its parent. Threads: a PageView is plain reading of memory that does not change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

constexpr std::size_t page_bytes = 8192;
constexpr std::size_t page_header_bytes = 32;
constexpr std::uint32_t page_magic = 0x6761506CU;  // "lPag"
constexpr std::size_t max_key_bytes = 1024;
/// A value above this is stored outside of its leaf, so that a leaf holds four entries at least.
constexpr std::size_t max_inline_value_bytes = 1024;

enum class PageKind : std::uint8_t { leaf = 1, inner = 2, leaf_u64 = 3, inner_u64 = 4 };
[[nodiscard]] constexpr PageKind page_kind(KeyKind keys, bool leaf) {
  if (keys == KeyKind::u64) return leaf ? PageKind::leaf_u64 : PageKind::inner_u64;
  return leaf ? PageKind::leaf : PageKind::inner;
}

/// What an entry of a page holds besides its key.
enum class CellKind : std::uint8_t {
  value = 0,      ///< the value itself; in an inner page a PageRef
  tombstone = 1,  ///< nothing
  reference = 2,  ///< a ValueRef
};

struct PageRef {
  PageId page;
  std::uint32_t checksum = 0;
};
constexpr std::size_t page_ref_bytes = 12;

/// A large value: where it is in the data file, and its checksum.
struct ValueRef {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
};
constexpr std::size_t value_ref_bytes = 20;

void encode_page_ref(const PageRef& ref, std::byte* out);
[[nodiscard]] PageRef decode_page_ref(const std::byte* in);
void encode_value_ref(const ValueRef& ref, std::byte* out);
[[nodiscard]] ValueRef decode_value_ref(const std::byte* in);

struct Cell {
  CellKind kind = CellKind::value;
  std::string_view data;
};

/// Collects entries in key order and lays them out.
class PageBuilder {
 public:
  explicit PageBuilder(PageKind kind) : kind_(kind) {}
  /// False: the page is full and the entry belongs to the next one. Keys of u64 pages have 8
  /// bytes; the data of inner pages are a PageRef.
  [[nodiscard]] bool add(std::string_view key, CellKind kind, std::string_view data);
  [[nodiscard]] std::size_t count() const { return cells_.size(); }
  /// Begins a new page.
  void clear();
  /// Writes the page into `out` (page_bytes) and begins a new one. Returns its checksum.
  std::uint32_t finish(std::uint8_t level, PageId page, std::uint64_t tree, std::byte* out);

 private:
  struct Pending {
    std::size_t key_at;
    std::size_t key_bytes;
    std::size_t data_at;
    std::size_t data_bytes;
    CellKind kind;
  };
  [[nodiscard]] std::string_view key_of(std::size_t i) const {
    return std::string_view(heap_).substr(cells_[i].key_at, cells_[i].key_bytes);
  }
  [[nodiscard]] std::string_view data_of(std::size_t i) const {
    return std::string_view(heap_).substr(cells_[i].data_at, cells_[i].data_bytes);
  }
  [[nodiscard]] std::uint64_t number_of(std::size_t i) const;
  void lay_out_bytes(std::byte* out) const;
  void lay_out_u64(std::byte* out) const;

  PageKind kind_;
  std::vector<Pending> cells_;
  std::string heap_;
  std::size_t prefix_bytes_ = 0;
  std::size_t bodies_bytes_ = 0;  // of all cells: what of the keys is not in arrays, and data
};

/// Reads a page whose checksum and structure have been checked.
class PageView {
 public:
  PageView() = default;
  explicit PageView(const std::byte* page) : page_(page) {}

  [[nodiscard]] PageKind kind() const { return static_cast<PageKind>(page_[24]); }
  [[nodiscard]] bool leaf() const {
    return kind() == PageKind::leaf || kind() == PageKind::leaf_u64;
  }
  [[nodiscard]] unsigned level() const { return std::to_integer<unsigned>(page_[25]); }
  [[nodiscard]] std::size_t count() const { return load<std::uint16_t>(page_ + 26); }
  /// Leaves: kind and data of an entry.
  [[nodiscard]] Cell cell(std::size_t i) const;
  /// Leaves: true and the entry when `key` is there.
  [[nodiscard]] bool find(std::string_view key, Cell& cell) const;
  /// Writes the key of an entry into `out`, which has key_buffer_bytes; returns its length.
  /// `prefix_there`: the page's prefix stands in `out` already.
  [[nodiscard]] std::size_t key(std::size_t i, char* out, bool prefix_there = false) const;
  /// Index of the first entry with a key >= `key`; `equal` tells whether it is that key.
  [[nodiscard]] std::size_t lower_bound(std::string_view key, bool& equal) const;
  /// Inner pages: index of the child that `key` belongs to.
  [[nodiscard]] std::size_t child_index(std::string_view key) const;
  [[nodiscard]] PageRef child(std::size_t i) const;
  /// Asks the CPU for the lines that a search reads first.
  void prefetch() const {
    for (std::size_t at = 0; at < 384; at += 64) __builtin_prefetch(page_ + at);
  }

 private:
  friend Status check_page_structure(const std::byte* page);
  friend class LeafReader;
  [[nodiscard]] bool is_u64() const { return std::to_integer<unsigned>(page_[24]) >= 3; }
  [[nodiscard]] std::size_t prefix_bytes() const { return load<std::uint16_t>(page_ + 28); }
  [[nodiscard]] std::size_t key_width() const { return std::to_integer<std::size_t>(page_[30]); }
  [[nodiscard]] std::size_t keys_at() const;   // heads or differences
  [[nodiscard]] std::size_t keys_end() const;  // references or offsets
  [[nodiscard]] std::size_t offsets_at() const;
  [[nodiscard]] std::size_t offset(std::size_t i) const {
    return load<std::uint16_t>(page_ + offsets_at() + 2 * i) & 0x3FFFU;
  }
  [[nodiscard]] std::string_view body(std::size_t i) const;
  [[nodiscard]] std::string_view rest(std::size_t i, std::size_t& suffix_bytes) const;
  [[nodiscard]] bool suffix_below(std::size_t i, std::string_view suffix) const;
  [[nodiscard]] bool suffix_is(std::size_t i, std::string_view suffix) const;
  [[nodiscard]] std::size_t lower_bound_bytes(std::string_view key, bool& equal) const;
  [[nodiscard]] std::size_t lower_bound_u64(std::string_view key, bool& equal) const;
  [[nodiscard]] std::size_t count_keys_below(std::uint64_t key) const;
  [[nodiscard]] std::uint64_t number(std::size_t i) const;

  const std::byte* page_ = nullptr;
};
/// Room that PageView::key() may write to: the longest key and what whole words overshoot.
constexpr std::size_t key_buffer_bytes = max_key_bytes + 24;

/// Checks everything that reading relies on: magic, place, tree, checksum (against the parent's
/// reference as well), and that every offset stays inside. The error names what is wrong.
[[nodiscard]] Status check_page(const std::byte* page, const PageRef& expected, std::uint64_t tree);
/// The structure alone, for pages from anywhere.
[[nodiscard]] Status check_page_structure(const std::byte* page);

}  // namespace lode
