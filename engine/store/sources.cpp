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

std::unique_ptr<MergeCursor> open_cursor(const State& state) {
  const Shape& shape = *state.shape;
  std::vector<std::unique_ptr<EntryCursor>> sources;
  sources.reserve(1 + shape.frozen.size() + shape.runs.size());
  if (state.root != nullptr) sources.push_back(std::make_unique<OverlayCursor>(state.root));
  for (const FrozenOverlay& frozen : shape.frozen) {
    sources.push_back(std::make_unique<OverlayCursor>(frozen.root));
  }
  for (const auto& run : shape.runs) sources.push_back(std::make_unique<RunCursor>(run));
  return std::make_unique<MergeCursor>(std::move(sources), true);
}

void RunCursor::open(std::size_t index) {
  index_ = index;
  cursor_.emplace(run_->trees[index]);
  at_ = cursor_->position();
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
    at_ = &nowhere;
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

MergeCursor::MergeCursor(std::vector<std::unique_ptr<EntryCursor>> sources, bool hide_tombstones)
    : sources_(std::move(sources)), heads_(sources_.size()), hide_tombstones_(hide_tombstones) {}

// After a source has moved. An invalid source is at its end or has failed; what follows behind a
// failed source is unknown, so the whole cursor becomes invalid and reports the error.
void MergeCursor::look_at(std::size_t source) {
  const Position* position = sources_[source]->position();
  if (position->valid) [[likely]] {
    heads_[source] = long_head_of(position->key);
    return;
  }
  heads_[source] = forward_ ? ~std::uint64_t{0} : 0;
  if (!sources_[source]->status()) failed_ = true;
}

void MergeCursor::stand_at(std::size_t source) {
  current_ = source;
  at_ = failed_ || !sources_[source]->valid() ? &nowhere : sources_[source]->position();
}

// Several sources have the best head: the keys in full decide, of equal ones the newest.
template <bool Lowest>
std::size_t MergeCursor::best_of_equal_heads(std::uint64_t best) {
  std::size_t found = sources_.size();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (heads_[i] != best || !sources_[i]->valid()) continue;
    if (found == sources_.size()) {
      found = i;
      continue;
    }
    const int order = sources_[i]->key().compare(sources_[found]->key());
    if (order == 0) {
      same_.push_back(i);
    } else if (Lowest ? order < 0 : order > 0) {
      found = i;
      same_.clear();
    }
  }
  return found == sources_.size() ? 0 : found;  // 0: all are at their end
}

template <bool Lowest>
void MergeCursor::pick() {
  same_.clear();
  const std::size_t count = sources_.size();
  if (count == 0) return;
  std::uint64_t best = heads_[0];
  std::size_t found = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const bool better = Lowest ? heads_[i] < best : heads_[i] > best;
    best = better ? heads_[i] : best;
    found = better ? i : found;
  }
  std::size_t equal = 0;
  for (std::size_t i = 0; i < count; ++i) equal += heads_[i] == best ? 1U : 0U;
  if (equal > 1) found = best_of_equal_heads<Lowest>(best);
  stand_at(found);
}

// Moving on in one direction, every source stands at its first entry at or beyond the current key.
void MergeCursor::step_forward() {
  if (!forward_) [[unlikely]] {
    turning_key_.assign(key());
    forward_ = true;
    same_.clear();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      sources_[i]->seek(turning_key_);
      if (sources_[i]->valid() && sources_[i]->key() == turning_key_) sources_[i]->next();
      look_at(i);
    }
    return pick<true>();
  }
  if (sources_.size() == 1) {  // a failed source is an invalid one, and status() asks it
    sources_[0]->next();
    at_ = sources_[0]->position();
    return;
  }
  for (const std::size_t i : same_) {
    sources_[i]->next();
    look_at(i);
  }
  sources_[current_]->next();
  look_at(current_);
  pick<true>();
}

void MergeCursor::step_backward() {
  if (forward_) [[unlikely]] {
    turning_key_.assign(key());
    forward_ = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      EntryCursor& source = *sources_[i];
      source.seek(turning_key_);
      if (source.valid()) {
        source.prev();
      } else if (source.status()) {
        source.seek_last();
      }
      look_at(i);
    }
    return pick<false>();
  }
  if (sources_.size() == 1) {
    sources_[0]->prev();
    at_ = sources_[0]->position();
    return;
  }
  for (const std::size_t i : same_) {
    sources_[i]->prev();
    look_at(i);
  }
  sources_[current_]->prev();
  look_at(current_);
  pick<false>();
}

void MergeCursor::seek_first() {
  forward_ = true;
  failed_ = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i]->seek_first();
    look_at(i);
  }
  pick<true>();
  while (hidden()) step_forward();
}

void MergeCursor::seek_last() {
  forward_ = false;
  failed_ = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i]->seek_last();
    look_at(i);
  }
  pick<false>();
  while (hidden()) step_backward();
}

void MergeCursor::seek(std::string_view key) {
  forward_ = true;
  failed_ = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i]->seek(key);
    look_at(i);
  }
  pick<true>();
  while (hidden()) step_forward();
}

Status MergeCursor::status() const {
  for (const auto& source : sources_) LODE_TRY(source->status());
  return {};
}

}  // namespace lode
