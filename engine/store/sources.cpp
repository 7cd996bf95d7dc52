#include "engine/store/sources.h"

#include <algorithm>

namespace lode {

const Tree* Run::tree_for(std::string_view key) const {
  const auto found = std::lower_bound(
      trees.begin(), trees.end(), key,
      [](const auto& tree, std::string_view k) { return tree->info().last_key < k; });
  if (found == trees.end() || key < (*found)->info().first_key) return nullptr;
  return found->get();
}

std::uint64_t Run::pages() const {
  std::uint64_t count = 0;
  for (const auto& tree : trees) count += tree->info().pages();
  return count;
}

Result<bool> look_up(const State& state, std::string_view key, std::string& value) {
  const auto answer = [&](const trie::Leaf* leaf) {
    if (leaf->kind == EntryKind::tombstone) return false;
    value.assign(leaf->value());
    return true;
  };
  if (const trie::Leaf* leaf = RadixTrie::find(state.root, key)) return answer(leaf);
  for (const FrozenOverlay& frozen : state.shape->frozen) {
    if (const trie::Leaf* leaf = RadixTrie::find(frozen.root, key)) return answer(leaf);
  }
  if (state.shape->runs.empty()) return false;
  const std::uint64_t hash = filter_hash(key);
  for (const auto& run : state.shape->runs) {
    const Tree* tree = run->tree_for(key);
    if (tree == nullptr) continue;
    LODE_ASSIGN(const Lookup lookup, tree->get(key, hash, value));
    if (lookup.found) return !lookup.deleted;
  }
  return false;
}

std::unique_ptr<EntryCursor> open_cursor(const State& state) {
  std::vector<std::unique_ptr<EntryCursor>> sources;
  sources.push_back(std::make_unique<OverlayCursor>(state.root));
  for (const FrozenOverlay& frozen : state.shape->frozen) {
    sources.push_back(std::make_unique<OverlayCursor>(frozen.root));
  }
  for (const auto& run : state.shape->runs) sources.push_back(std::make_unique<RunCursor>(run));
  return std::make_unique<MergeCursor>(std::move(sources), true);
}

void RunCursor::open(std::size_t index) {
  index_ = index;
  cursor_ = std::make_unique<TreeCursor>(run_->trees[index]);
}

void RunCursor::seek_first() {
  open(0);
  cursor_->seek_first();
}

void RunCursor::seek_last() {
  open(run_->trees.size() - 1);
  cursor_->seek_last();
}

void RunCursor::seek(std::string_view key) {
  const auto found = std::lower_bound(
      run_->trees.begin(), run_->trees.end(), key,
      [](const auto& tree, std::string_view k) { return tree->info().last_key < k; });
  if (found == run_->trees.end()) {
    cursor_.reset();
    return;
  }
  const auto index = static_cast<std::size_t>(found - run_->trees.begin());
  if (!cursor_ || index != index_) open(index);
  cursor_->seek(key);
}

void RunCursor::next() {
  cursor_->next();
  if (cursor_->valid() || !cursor_->status() || index_ + 1 == run_->trees.size()) return;
  open(index_ + 1);
  cursor_->seek_first();
}

void RunCursor::prev() {
  cursor_->prev();
  if (cursor_->valid() || !cursor_->status() || index_ == 0) return;
  open(index_ - 1);
  cursor_->seek_last();
}

Status RunCursor::status() const {
  if (!cursor_) return {};
  return cursor_->status();
}

// An invalid source is at its end or has failed. What follows behind a failed source is unknown, so
// the whole cursor becomes invalid and reports the error.
bool MergeCursor::failed() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return !source->valid() && !source->status(); });
}

void MergeCursor::pick_lowest() {
  current_ = nullptr;
  if (failed()) return;
  for (const auto& source : sources_) {
    if (source->valid() && (current_ == nullptr || source->key() < current_->key())) {
      current_ = source.get();
    }
  }
}

void MergeCursor::pick_highest() {
  current_ = nullptr;
  if (failed()) return;
  for (const auto& source : sources_) {
    if (source->valid() && (current_ == nullptr || source->key() > current_->key())) {
      current_ = source.get();
    }
  }
}

// Moving on in one direction, every source stands at its first entry at or beyond the current key.
void MergeCursor::step_forward() {
  at_.assign(current_->key());
  if (!forward_) {
    forward_ = true;
    for (const auto& source : sources_) source->seek(at_);
  }
  for (const auto& source : sources_) {
    if (source->valid() && source->key() == at_) source->next();
  }
  pick_lowest();
}

void MergeCursor::step_backward() {
  at_.assign(current_->key());
  if (forward_) {
    forward_ = false;
    for (const auto& source : sources_) {
      source->seek(at_);
      if (source->valid()) {
        source->prev();
      } else if (source->status()) {
        source->seek_last();
      }
    }
  } else {
    for (const auto& source : sources_) {
      if (source->valid() && source->key() == at_) source->prev();
    }
  }
  pick_highest();
}

void MergeCursor::seek_first() {
  forward_ = true;
  for (const auto& source : sources_) source->seek_first();
  pick_lowest();
  while (hidden()) step_forward();
}

void MergeCursor::seek_last() {
  forward_ = false;
  for (const auto& source : sources_) source->seek_last();
  pick_highest();
  while (hidden()) step_backward();
}

void MergeCursor::seek(std::string_view key) {
  forward_ = true;
  for (const auto& source : sources_) source->seek(key);
  pick_lowest();
  while (hidden()) step_forward();
}

void MergeCursor::next() {
  do {
    step_forward();
  } while (hidden());
}

void MergeCursor::prev() {
  do {
    step_backward();
  } while (hidden());
}

Status MergeCursor::status() const {
  for (const auto& source : sources_) LODE_TRY(source->status());
  return {};
}

}  // namespace lode
