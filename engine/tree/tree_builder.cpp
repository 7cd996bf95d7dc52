#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/tree/tree.h"

namespace lode {
namespace {

constexpr std::uint64_t value_alignment = 16;

}  // namespace

std::string_view separator_of(std::string_view left, std::string_view right) {
  const std::size_t length = std::min(left.size(), right.size());
  std::size_t same = 0;
  while (same < length && left[same] == right[same]) ++same;
  return right.substr(0, same + 1);
}

TreeBuilder::TreeBuilder(TreeSpace space, std::uint64_t number, KeyKind keys)
    : space_(space),
      keys_(keys),
      pages_(space.file, space.space),
      values_(space.file, space.space),
      scratch_(page_bytes) {
  info_.number = number;
  levels_.push_back(std::make_unique<Level>(page_kind(keys, true)));
}

std::uint64_t TreeBuilder::bytes() const {
  return info_.payload_bytes;
}

Result<PageRef> TreeBuilder::emit(std::size_t level) {
  LODE_ASSIGN(const std::uint64_t offset, pages_.reserve(page_bytes, page_bytes));
  PageRef ref{PageId(offset / page_bytes), 0};
  ref.checksum = levels_[level]->page.finish(static_cast<std::uint8_t>(level), ref.page,
                                             info_.number, scratch_.data());
  LODE_TRY(pages_.append(scratch_.bytes()));
  ++(level == 0 ? leaf_pages_ : inner_pages_);
  return ref;
}

Status TreeBuilder::add_reference(std::size_t level, std::string_view key, const PageRef& ref) {
  if (level == levels_.size()) {
    levels_.push_back(std::make_unique<Level>(page_kind(keys_, false)));
    levels_[level]->separator = key;
  }
  std::byte data[page_ref_bytes];
  encode_page_ref(ref, data);
  const std::string_view text = as_text(ConstBytes(data, sizeof data));
  if (levels_[level]->page.add(key, CellKind::value, text)) return {};
  LODE_ASSIGN(const PageRef full, emit(level));
  const std::string full_separator = std::exchange(levels_[level]->separator, std::string(key));
  LODE_TRY(add_reference(level + 1, full_separator, full));
  LODE_CHECK(levels_[level]->page.add(key, CellKind::value, text), "a reference fits a page");
  return {};
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
  Level& leaves = *levels_[0];
  if (!leaves.page.add(key, cell, data)) {
    LODE_ASSIGN(const PageRef full, emit(0));
    const std::string full_separator = leaves.separator;
    // Numbers are as narrow as they get; of texts the shortest does.
    leaves.separator = keys_ == KeyKind::u64 ? key : separator_of(last_key_, key);
    LODE_TRY(add_reference(1, full_separator, full));
    LODE_CHECK(leaves.page.add(key, cell, data), "an entry fits an empty page");
  }
  if (info_.entries == 0) {
    info_.first_key = key;
    leaves.separator = key;
  }
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
  for (std::size_t level = 0;; ++level) {
    LODE_ASSIGN(const PageRef ref, emit(level));
    if (level + 1 == levels_.size()) {
      info_.root = ref;
      break;
    }
    const std::string key = levels_[level]->separator;
    LODE_TRY(add_reference(level + 1, key, ref));
  }
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
