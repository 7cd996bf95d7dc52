#include "engine/store/sources.h"

#include <algorithm>
#include <array>
#include <bit>

#include "engine/base/coding.h"
#include "engine/tree/page_search.h"

namespace lode {

Run::Run(unsigned of_level, Trees of_trees) : level(of_level), trees(std::move(of_trees)) {
  last_heads.reserve(trees.size());
  for (const auto& tree : trees) last_heads.push_back(long_head_of(tree->info().last_key));
}

std::size_t Run::index_for(std::string_view key) const {
  const std::uint64_t head = long_head_of(key);
  const std::size_t index = count_below<std::uint64_t>(
      reinterpret_cast<const std::byte*>(last_heads.data()), last_heads.size(), head);
  // Where the heads are equal the keys in full decide.
  if (index == trees.size() || last_heads[index] != head) return index;
  const auto from = trees.begin() + static_cast<std::ptrdiff_t>(index);
  const auto to = std::partition_point(
      from, trees.end(), [&](const auto& tree) { return tree->info().last_key < key; });
  return static_cast<std::size_t>(to - trees.begin());
}

const Tree* Run::tree_for(std::string_view key) const {
  const std::size_t index = index_for(key);
  return index < trees.size() ? trees[index].get() : nullptr;
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

namespace {

constexpr std::size_t runs_at_once = 16;

// The newest of `count` runs that has an answer.
Resident look_up_runs(const std::shared_ptr<const Run>* runs, std::size_t count,
                      std::string_view key, std::string& value, std::uint64_t& pages) {
  const std::uint64_t hash = filter_hash(key);
  const std::uint64_t bits = Filter::probe_bits(hash);
  std::array<const Tree*, runs_at_once> trees;
  std::array<const std::uint64_t*, runs_at_once> blocks;
  std::size_t candidates = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tree* tree = runs[i]->tree_for(key);
    if (tree == nullptr) continue;
    const Filter* filter = tree->loaded_filter();
    if (filter == nullptr) return Resident::unknown;
    blocks[candidates] = filter->block(hash);
    __builtin_prefetch(blocks[candidates]);
    trees[candidates++] = tree;
  }
  // All filters are asked at once, so that their cache misses overlap and the outcome of each is no
  // branch for the CPU to guess.
  std::uint32_t perhaps = 0;
  for (std::size_t i = 0; i < candidates; ++i) {
    perhaps |= static_cast<std::uint32_t>(Filter::test(blocks[i], bits)) << i;
  }
  for (; perhaps != 0; perhaps &= perhaps - 1) {
    const Tree* tree = trees[static_cast<std::size_t>(std::countr_zero(perhaps))];
    const Resident answer = tree->get_resident(key, value, pages);
    if (answer != Resident::absent) return answer;
  }
  return Resident::absent;
}

}  // namespace

Resident look_up_resident(const State& state, std::string_view key, std::string& value,
                          std::uint64_t& pages) {
  const auto answer = [&](const trie::Leaf* leaf) {
    if (leaf->kind == EntryKind::tombstone) return Resident::deleted;
    value.assign(leaf->value());
    return Resident::value;
  };
  const Shape& shape = *state.shape;
  if (const trie::Leaf* leaf = RadixTrie::find(state.root, key)) return answer(leaf);
  for (const FrozenOverlay& frozen : shape.frozen) {
    if (const trie::Leaf* leaf = RadixTrie::find(frozen.root, key)) return answer(leaf);
  }
  for (std::size_t i = 0; i < shape.runs.size(); i += runs_at_once) {
    const std::size_t count = std::min(runs_at_once, shape.runs.size() - i);
    const Resident found = look_up_runs(&shape.runs[i], count, key, value, pages);
    if (found != Resident::absent) return found;
  }
  return Resident::absent;
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
  const std::size_t index = run_->index_for(key);
  if (index == run_->trees.size()) {
    cursor_.reset();
    return;
  }
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
