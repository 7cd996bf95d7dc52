// An immutable sorted tree in the data file: built once from sorted entries, then only read.
//
// The tree owns its extents: when the last holder (a published state, a snapshot, a durable root)
// lets go, its pages are free. Every page carries the tree's number; every reference to a page
// carries its checksum, up to the manifest, which is covered by the root's.
// Threads: a Tree is read from any thread; a TreeBuilder and a TreeCursor by one.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/coding.h"
#include "engine/tree/entry_cursor.h"
#include "engine/tree/extent_stream.h"
#include "engine/tree/filter.h"
#include "engine/tree/inner_levels.h"
#include "engine/tree/leaf_reader.h"
#include "engine/tree/page_pool.h"
#include "engine/tree/weights.h"

namespace lode {

/// What a tree lives in. Outlives the trees.
struct TreeSpace {
  File& file;
  ExtentAllocator& space;
  PagePool& pool;
};

/// What the manifest keeps of a tree.
struct TreeInfo {
  std::uint64_t number = 0;  ///< never used twice in a store
  PageRef root;
  std::uint64_t entries = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t payload_bytes = 0;  ///< keys and values
  std::string first_key;
  std::string last_key;
  ValueRef filter;  ///< where the filter's bytes are
  std::vector<Extent> extents;
  std::optional<EntryWeights> weights;  ///< of a tree built since the opening; not stored

  [[nodiscard]] std::uint64_t pages() const;
  void encode(Encoder& out) const;
  [[nodiscard]] static std::optional<TreeInfo> decode(Decoder& in);
};

/// Answer of a look-up in one source: nothing known, a value, or "it was deleted".
struct Lookup {
  bool found = false;
  bool deleted = false;
};

/// Answer of a look-up that takes only what is in memory; `unknown` = ask get().
enum class Resident : std::uint8_t { unknown, absent, deleted, value };

class Tree {
 public:
  Tree(TreeSpace space, TreeInfo info) : space_(space), info_(std::move(info)) {}
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  /// Puts the value into `value` when the key is there. `hash` is filter_hash(key).
  Result<Lookup> get(std::string_view key, std::uint64_t hash, std::string& value) const;
  /// The same for announced readers (page_pool.h) without the filter: no lock, no pin, no wait.
  /// Adds the pages that it looked at to `pages`.
  [[nodiscard]] Resident get_resident(std::string_view key, std::string& value,
                                      std::uint64_t& pages) const;
  /// Null until something has asked it.
  [[nodiscard]] const Filter* loaded_filter() const {
    return filter_.load(std::memory_order_acquire);
  }
  [[nodiscard]] const TreeInfo& info() const { return info_; }
  /// Reads every page and value and checks order, counts and checksums.
  Status verify() const;
  Status read_value(const ValueRef& ref, std::string& out) const;

 private:
  friend class TreeCursor;
  Result<bool> may_hold(std::uint64_t hash) const;
  [[nodiscard]] bool in_range(std::string_view key) const {
    return key >= info_.first_key && key <= info_.last_key;
  }
  struct Walk;
  Status verify_page(const PageRef& ref, unsigned level, Walk& walk) const;

  mutable std::atomic<const Filter*> filter_{nullptr};  // loaded at the first question
  TreeSpace space_;
  TreeInfo info_;
  mutable std::mutex filter_mutex_;
  mutable std::unique_ptr<Filter> filter_storage_;
};

/// Builds a tree from entries in strictly rising key order. Nothing is durable before the caller
/// has synced the file.
class TreeBuilder final : private PageSink {
 public:
  TreeBuilder(TreeSpace space, std::uint64_t number, KeyKind keys = KeyKind::bytes);
  Status add(std::string_view key, EntryKind kind, std::string_view value);
  [[nodiscard]] std::uint64_t entries() const { return info_.entries; }
  /// Bytes of pages and values so far, about.
  [[nodiscard]] std::uint64_t bytes() const;
  /// The finished tree; the builder is spent. There must be an entry.
  Result<std::shared_ptr<const Tree>> finish();
  [[nodiscard]] std::uint64_t written_bytes() const {
    return pages_.written_bytes() + values_.written_bytes();
  }
  /// Of these, large values and the filter; and the pages by kind.
  [[nodiscard]] std::uint64_t value_written_bytes() const { return values_.written_bytes(); }
  [[nodiscard]] std::uint64_t leaf_pages() const { return leaf_pages_; }
  [[nodiscard]] std::uint64_t inner_pages() const { return inner_pages_; }
  /// Bytes of large values that were to be stored.
  [[nodiscard]] std::uint64_t value_requested_bytes() const { return value_requested_bytes_; }

 private:
  Result<PageRef> put(PageBuilder& page, std::size_t level) override;

  TreeSpace space_;
  KeyKind keys_;
  TreeInfo info_;
  ExtentStream pages_;
  ExtentStream values_;
  PageBuilder leaf_;
  std::string leaf_key_;  // lowest key that leads to the leaf being filled
  InnerLevels inner_;
  std::vector<std::uint64_t> hashes_;
  std::uint64_t leaf_pages_ = 0;
  std::uint64_t inner_pages_ = 0;
  std::uint64_t value_requested_bytes_ = 0;
  std::string last_key_;
  AlignedBuffer scratch_;
};

class TreeCursor final : public EntryCursor {
 public:
  explicit TreeCursor(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {
    at_ = &position_;
    path_.reserve(4);  // inner levels: more than most trees have
  }
  void seek_first() override;
  void seek_last() override;
  void seek(std::string_view key) override;
  void next() override {
    if (index_ + 1 < leaf_.count()) [[likely]] {
      ++index_;
      show(1);
    } else {
      next_leaf();
    }
  }
  void prev() override {
    if (index_ > 0) [[likely]] {
      --index_;
      show(-1);
    } else {
      previous_leaf();
    }
  }
  [[nodiscard]] Status status() const override;

 private:
  struct Step {
    PinnedPage page;
    std::size_t index = 0;  // of the child
  };
  Result<std::string_view> load_value() override;
  bool descend(PageRef from, bool to_last);
  bool pin(const PageRef& ref, PinnedPage& page);
  void begin_leaf();
  void next_leaf();
  void previous_leaf();
  void show(std::ptrdiff_t ahead) {
    Cell cell;
    std::size_t key_bytes = 0;
    leaf_.read(index_, key_.data(), key_bytes, cell, ahead);
    position_ = {true, cell.kind != CellKind::reference,
                 cell.kind == CellKind::tombstone ? EntryKind::tombstone : EntryKind::value,
                 std::string_view(key_.data(), key_bytes), cell.data};
  }

  std::shared_ptr<const Tree> tree_;
  Position position_;
  std::vector<Step> path_;  // inner pages from the root down
  PinnedPage leaf_page_;
  LeafReader leaf_;
  std::size_t index_ = 0;
  std::array<char, key_buffer_bytes> key_;
  std::string scratch_;
  std::optional<Error> error_;
};

}  // namespace lode
