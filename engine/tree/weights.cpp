#include "engine/tree/weights.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/base/mutation.h"
#include "engine/tree/filter.h"
#include "engine/tree/tree.h"

namespace lode {
namespace {

// Header, the last offset, and what a prefix may cost beyond what it saves.
constexpr std::uint64_t page_overhead_bytes = page_header_bytes + 2 + 8;
constexpr std::uint64_t page_room_bytes = page_bytes - page_overhead_bytes;
constexpr std::uint64_t head_and_offset_bytes = 4 + 2;
constexpr std::uint64_t filter_block_bytes = 64;
constexpr std::uint64_t filter_bits_a_key = 10;

std::uint64_t leaf_weight(std::size_t key_bytes, std::size_t value_bytes) {
  const std::uint64_t data = value_bytes > max_inline_value_bytes ? value_ref_bytes : value_bytes;
  return head_and_offset_bytes + varint_bytes(key_bytes) + (key_bytes > 4 ? key_bytes - 4 : 0) +
         data;
}

// A piece of a stream: itself, its alignment, and what it may leave unused before it.
std::uint64_t piece_weight(std::uint64_t bytes) {
  const std::uint64_t aligned = bytes + 16;
  return aligned + std::min<std::uint64_t>(aligned, page_bytes);
}

std::uint64_t large_weight(std::size_t value_bytes) {
  if (LODE_MUTATED("weights-forget-large-values")) return 0;
  return value_bytes > max_inline_value_bytes ? piece_weight(value_bytes) : 0;
}

std::uint64_t pages_for(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes;
}

// Of all filters together: each is rounded up to whole blocks.
std::uint64_t filter_bytes(std::uint64_t entries, std::uint64_t filters) {
  return (entries * filter_bits_a_key / (8 * filter_block_bytes) + filters) * filter_block_bytes;
}

// Large values and filters of the trees.
PageNeed stream_need(const EntryWeights& weights, std::uint64_t trees, const TreeLimits& limits) {
  const std::uint64_t filters = filter_bytes(weights.entries, trees) + 16 * trees;
  const std::uint64_t bytes =
      weights.large_bytes + filters + std::min<std::uint64_t>(filters, page_bytes * trees);
  const std::uint64_t in_a_tree = std::min(weights.entries, limits.entries);
  return {bytes / page_bytes + trees,
          std::max({std::uint64_t{1}, pages_for(weights.largest_value_bytes),
                    pages_for(filter_bytes(in_a_tree, 1))})};
}

}  // namespace

void EntryWeights::add(std::size_t key_bytes, std::size_t value_bytes) {
  const std::uint64_t leaf = leaf_weight(key_bytes, value_bytes);
  const std::uint64_t large = large_weight(value_bytes);
  ++entries;
  payload_bytes += key_bytes + value_bytes;
  leaf_bytes += leaf;
  large_bytes += large;
  largest_leaf_bytes = std::max(largest_leaf_bytes, leaf);
  longest_key_bytes = std::max<std::uint64_t>(longest_key_bytes, key_bytes);
  if (large > 0) largest_value_bytes = std::max<std::uint64_t>(largest_value_bytes, value_bytes);
}

void EntryWeights::remove(std::size_t key_bytes, std::size_t value_bytes) {
  --entries;
  payload_bytes -= key_bytes + value_bytes;
  leaf_bytes -= leaf_weight(key_bytes, value_bytes);
  large_bytes -= large_weight(value_bytes);
}

EntryWeights& EntryWeights::operator+=(const EntryWeights& other) {
  entries += other.entries;
  payload_bytes += other.payload_bytes;
  leaf_bytes += other.leaf_bytes;
  large_bytes += other.large_bytes;
  largest_leaf_bytes = std::max(largest_leaf_bytes, other.largest_leaf_bytes);
  longest_key_bytes = std::max(longest_key_bytes, other.longest_key_bytes);
  largest_value_bytes = std::max(largest_value_bytes, other.largest_value_bytes);
  return *this;
}

std::uint64_t EntryWeights::trees(const TreeLimits& limits, std::uint64_t starts) const {
  return payload_bytes / limits.payload_bytes + entries / limits.entries + starts;
}

PageNeed most_pages(const EntryWeights& weights, std::uint64_t trees, const TreeLimits& limits) {
  if (weights.entries == 0) return {};
  const std::uint64_t full =
      weights.leaf_bytes / (page_room_bytes - weights.largest_leaf_bytes + 1);
  const std::uint64_t leaves = full + trees;
  PageNeed need = stream_need(weights, trees, limits);
  need.pages += leaves;
  if (full == 0) return need;  // a leaf a tree, without inner pages
  const std::uint64_t references = page_room_bytes / (20 + weights.longest_key_bytes);
  for (std::uint64_t below = references;; below *= references) {
    need.pages += leaves / below + trees;
    if (below >= leaves) return need;
  }
}

void PageCounter::add_reference(std::size_t level, std::string_view key) {
  if (level == levels_.size()) {
    levels_.push_back(std::make_unique<Level>(page_kind(keys_, false)));
    levels_[level]->separator = key;
  }
  constexpr std::string_view no_reference;  // takes its room in the page all the same
  if (levels_[level]->page.add(key, CellKind::value, no_reference)) return;
  levels_[level]->page.clear();
  ++total_.pages;
  const std::string full = std::exchange(levels_[level]->separator, std::string(key));
  add_reference(level + 1, full);
  LODE_CHECK(levels_[level]->page.add(key, CellKind::value, no_reference),
             "a reference fits a page");
}

void PageCounter::add(std::string_view key, EntryKind kind, std::string_view value) {
  if (levels_.empty()) {
    levels_.push_back(std::make_unique<Level>(page_kind(keys_, true)));
    levels_[0]->separator = key;
  }
  constexpr std::string_view reference("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", value_ref_bytes);
  const std::string_view data = value.size() > max_inline_value_bytes ? reference : value;
  const CellKind cell = kind == EntryKind::tombstone ? CellKind::tombstone : CellKind::value;
  Level& leaves = *levels_[0];
  if (!leaves.page.add(key, cell, data)) {
    leaves.page.clear();
    ++total_.pages;
    const std::string full = leaves.separator;
    leaves.separator = leaf_separator(keys_, last_key_, key);
    add_reference(1, full);
    LODE_CHECK(leaves.page.add(key, cell, data), "an entry fits an empty page");
  }
  last_key_ = key;
  tree_.add(key.size(), value.size());
  if (tree_.payload_bytes >= limits_.payload_bytes || tree_.entries >= limits_.entries) {
    close_tree();
  }
}

void PageCounter::close_tree() {
  if (tree_.entries == 0) return;
  for (std::size_t level = 0;; ++level) {
    ++total_.pages;
    if (level + 1 == levels_.size()) break;
    add_reference(level + 1, levels_[level]->separator);
  }
  levels_.clear();
  const PageNeed stream = stream_need(tree_, 1, limits_);
  total_.pages += stream.pages;
  total_.piece = std::max(total_.piece, stream.piece);
  tree_ = {};
}

PageNeed PageCounter::finish() {
  close_tree();
  return total_;
}

}  // namespace lode
