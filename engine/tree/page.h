// One page of a sorted tree: building, searching, checking. FORMAT.md describes the bytes.
//
// A page holds entries in key order. The prefix that all keys share is stored once; the first four
// bytes of each rest are kept in an array of numbers that the search compares first. Leaves hold
// values, tombstones and references to large values; inner pages hold references to children with
// the child's checksum, so that a write that was lost or went astray is found by its parent.
// Threads: a PageView is plain reading of memory that does not change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

constexpr std::size_t page_bytes = 8192;
constexpr std::size_t page_header_bytes = 32;
constexpr std::uint32_t page_magic = 0x6761506CU;  // "lPag"
constexpr std::size_t max_key_bytes = 1024;
/// A value above this is stored outside of its leaf, so that a leaf holds four entries at least.
constexpr std::size_t max_inline_value_bytes = 1024;

enum class PageKind : std::uint8_t { leaf = 1, inner = 2 };

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
  std::string_view suffix;  ///< the key behind the page's prefix
  std::string_view data;
};

/// Collects entries in key order and lays them out.
class PageBuilder {
 public:
  /// False: the page is full and the entry belongs to the next one.
  [[nodiscard]] bool add(std::string_view key, CellKind kind, std::string_view data);
  [[nodiscard]] std::size_t count() const { return cells_.size(); }
  [[nodiscard]] std::string_view first_key() const { return key_of(0); }
  [[nodiscard]] std::string_view last_key() const { return key_of(cells_.size() - 1); }
  /// Writes the page into `out` (page_bytes) and begins a new one. Returns its checksum.
  std::uint32_t finish(PageKind kind, std::uint8_t level, PageId page, std::uint64_t tree,
                       std::byte* out);

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
  std::vector<Pending> cells_;
  std::string heap_;
  std::size_t prefix_bytes_ = 0;
  std::size_t rest_bytes_ = 0;  // of all cells: keys in full, data, length fields
};

/// Reads a page whose checksum and structure have been checked.
class PageView {
 public:
  PageView() = default;
  explicit PageView(const std::byte* page) : page_(page) {}

  [[nodiscard]] PageKind kind() const { return static_cast<PageKind>(page_[24]); }
  [[nodiscard]] unsigned level() const { return std::to_integer<unsigned>(page_[25]); }
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string_view prefix() const;
  [[nodiscard]] Cell cell(std::size_t i) const;
  /// Index of the first entry with a key >= `key`; `equal` tells whether it is that key.
  [[nodiscard]] std::size_t lower_bound(std::string_view key, bool& equal) const;
  /// Inner pages: index of the child that `key` belongs to.
  [[nodiscard]] std::size_t child_index(std::string_view key) const;
  [[nodiscard]] PageRef child(std::size_t i) const;

 private:
  const std::byte* page_ = nullptr;
};

/// Checks everything that reading relies on: magic, place, tree, checksum (against the parent's
/// reference as well), and that every offset stays inside. The error names what is wrong.
[[nodiscard]] Status check_page(const std::byte* page, const PageRef& expected, std::uint64_t tree);
/// The structure alone, for pages from anywhere.
[[nodiscard]] Status check_page_structure(const std::byte* page);

}  // namespace lode
