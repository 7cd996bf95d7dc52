#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/tree/tree.h"

namespace lode {
namespace {

constexpr std::uint64_t value_alignment = 16;

}  // namespace

TreeBuilder::TreeBuilder(TreeSpace space, std::uint64_t number, KeyKind keys)
    : space_(space),
      keys_(keys),
      pages_(space.file, space.space),
      values_(space.file, space.space),
      leaf_(page_kind(keys, true)),
      inner_(keys, *this),
      scratch_(page_bytes) {
  info_.number = number;
}

std::uint64_t TreeBuilder::bytes() const {
  return info_.payload_bytes;
}

Result<PageRef> TreeBuilder::put(PageBuilder& page, std::size_t level) {
  LODE_ASSIGN(const std::uint64_t offset, pages_.reserve(page_bytes, page_bytes));
  PageRef ref{PageId(offset / page_bytes), 0};
  ref.checksum =
      page.finish(static_cast<std::uint8_t>(level), ref.page, info_.number, scratch_.data());
  LODE_TRY(pages_.append(scratch_.bytes()));
  ++(level == 0 ? leaf_pages_ : inner_pages_);
  return ref;
}

Status TreeBuilder::add(std::string_view key, EntryKind kind, std::string_view value) {
  LODE_CHECK(info_.entries == 0 || key > last_key_, "I12: a tree's keys rise");
  if (!info_.weights) info_.weights.emplace();
  EntryWeights& weights = *info_.weights;
  CellKind cell = kind == EntryKind::tombstone ? CellKind::tombstone : CellKind::value;
  std::byte reference[value_ref_bytes];
  std::string_view data = value;
  if (value.size() > max_inline_value_bytes) {
    LODE_ASSIGN(const std::uint64_t offset, values_.reserve(value.size(), value_alignment));
    LODE_TRY(values_.append(as_bytes(value)));
    value_requested_bytes_ += value.size();
    encode_value_ref({offset, value.size(), crc32c(as_bytes(value))}, reference);
    data = as_text(ConstBytes(reference, sizeof reference));
    cell = CellKind::reference;
  }
  if (!leaf_.add(key, cell, data)) {
    LODE_ASSIGN(const PageRef full, put(leaf_, 0));
    LODE_TRY(inner_.add(leaf_key_, full));
    leaf_key_ = leaf_separator(keys_, last_key_, key);
    LODE_CHECK(leaf_.add(key, cell, data), "an entry fits an empty page");
  }
  if (info_.entries == 0) info_.first_key = leaf_key_ = key;
  last_key_ = key;
  hashes_.push_back(filter_hash(key));
  ++info_.entries;
  if (kind == EntryKind::tombstone) ++info_.tombstones;
  info_.payload_bytes += key.size() + value.size();
  weights.add(key.size(), value.size());
  return {};
}

Result<std::shared_ptr<const Tree>> TreeBuilder::finish() {
  LODE_CHECK(info_.entries > 0, "a tree has entries");
  info_.last_key = last_key_;
  LODE_ASSIGN(const PageRef last_leaf, put(leaf_, 0));
  LODE_ASSIGN(info_.root, inner_.finish(leaf_key_, last_leaf));
  const Filter filter(hashes_);
  LODE_ASSIGN(info_.filter.offset, values_.reserve(filter.bytes().size(), value_alignment));
  LODE_TRY(values_.append(filter.bytes()));
  info_.filter.bytes = filter.bytes().size();
  info_.filter.checksum = crc32c(filter.bytes());
  LODE_ASSIGN(info_.extents, pages_.finish());
  auto values = values_.finish();
  if (!values) {
    for (const Extent& extent : info_.extents) space_.space.free(extent);
    return std::unexpected(std::move(values).error());
  }
  info_.extents.insert(info_.extents.end(), values->begin(), values->end());
  return std::make_shared<const Tree>(space_, std::move(info_));
}

}  // namespace lode
