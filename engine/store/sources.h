// What a state of the store consists of, newest first: the active overlay, overlays that are being
// flushed, runs of trees. And the cursors that walk them as one.
// Threads: a Shape and a Run never change; cursors belong to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/overlay/radix_trie.h"
#include "engine/tree/tree.h"

namespace lode {

/// Trees with disjoint, rising key ranges: one sorted whole.
struct Run {
  using Trees = std::vector<std::shared_ptr<const Tree>>;
  Run(unsigned of_level, Trees of_trees);

  unsigned level;
  Trees trees;
  std::vector<std::uint64_t> last_heads;  ///< long_head_of the last key of each tree

  /// Index of the first tree that ends at or behind `key`; trees.size() when there is none.
  [[nodiscard]] std::size_t index_for(std::string_view key) const;
  /// The tree whose range covers `key`, or null.
  [[nodiscard]] const Tree* tree_for(std::string_view key) const;
  [[nodiscard]] std::uint64_t pages() const;
};
using Runs = std::vector<std::shared_ptr<const Run>>;  // newest first, levels never fall

struct FrozenOverlay {
  std::shared_ptr<RadixTrie> overlay;
  const trie::Node* root = nullptr;
};

struct Shape {
  std::shared_ptr<RadixTrie> active;
  std::vector<FrozenOverlay> frozen;  // newest first
  Runs runs;
};

/// A state: a root of the active overlay over the rest. `shape` keeps all of it alive except the
/// nodes of the active overlay, whose generation the reader has to hold.
struct State {
  const trie::Node* root = nullptr;
  std::shared_ptr<const Shape> shape;
};

/// True and the value when `key` is there.
[[nodiscard]] Result<bool> look_up(const State& state, std::string_view key, std::string& value);

/// The same from what is in memory, for readers that have announced themselves (page_pool.h).
[[nodiscard]] Resident look_up_resident(const State& state, std::string_view key,
                                        std::string& value, std::uint64_t& pages);

class OverlayCursor final : public EntryCursor {
 public:
  explicit OverlayCursor(const trie::Node* root) : cursor_(root) { at_ = &position_; }
  void seek_first() override {
    cursor_.seek_first();
    show();
  }
  void seek_last() override {
    cursor_.seek_last();
    show();
  }
  void seek(std::string_view key) override {
    cursor_.seek(key);
    show();
  }
  void next() override {
    cursor_.next();
    show();
  }
  void prev() override {
    cursor_.prev();
    show();
  }
  [[nodiscard]] Status status() const override { return {}; }

 private:
  Result<std::string_view> load_value() override { return position_.data; }
  void show() {
    position_.valid = cursor_.valid();
    if (!position_.valid) return;
    const trie::Leaf* leaf = cursor_.leaf();
    position_ = {true, true, leaf->kind, leaf->key(), leaf->value()};
  }

  TrieCursor cursor_;
  Position position_;
};

/// The trees of a run one after the other.
class RunCursor final : public EntryCursor {
 public:
  explicit RunCursor(std::shared_ptr<const Run> run) : run_(std::move(run)) {}
  void seek_first() override;
  void seek_last() override;
  void seek(std::string_view key) override;
  void next() override;
  void prev() override;
  [[nodiscard]] Status status() const override;

 private:
  Result<std::string_view> load_value() override { return cursor_->value(); }
  void open(std::size_t index);
  std::shared_ptr<const Run> run_;
  std::size_t index_ = 0;
  std::optional<TreeCursor> cursor_;
};

/// Several sources, newest first, as one: of equal keys the newest source's entry counts. With
/// `hide_tombstones`, deleted keys are passed over.
class MergeCursor final : public EntryCursor {
 public:
  MergeCursor(std::vector<std::unique_ptr<EntryCursor>> sources, bool hide_tombstones);
  void seek_first() override;
  void seek_last() override;
  void seek(std::string_view key) override;
  void next() override {
    do {
      step_forward();
    } while (hidden());
  }
  void prev() override {
    do {
      step_backward();
    } while (hidden());
  }
  [[nodiscard]] Status status() const override;

 private:
  Result<std::string_view> load_value() override { return sources_[current_]->value(); }
  void step_forward();
  void step_backward();
  void look_at(std::size_t source);
  template <bool Lowest>
  void pick();
  template <bool Lowest>
  std::size_t best_of_equal_heads(std::uint64_t best);
  void stand_at(std::size_t source);
  [[nodiscard]] bool hidden() const {
    return hide_tombstones_ && at_->valid && at_->kind == EntryKind::tombstone;
  }

  std::vector<std::unique_ptr<EntryCursor>> sources_;
  // long_head_of the key that each source stands at; a source at its end has an entry that no key
  // beats, and its position says so.
  std::vector<std::uint64_t> heads_;
  std::vector<std::size_t> same_;  // other sources that stand at the current key
  bool hide_tombstones_;
  bool forward_ = true;
  bool failed_ = false;
  std::size_t current_ = 0;
  std::string turning_key_;
};

/// All of a state in order, as its readers see it: newest entry of each key, no tombstones.
[[nodiscard]] std::unique_ptr<MergeCursor> open_cursor(const State& state);

}  // namespace lode
