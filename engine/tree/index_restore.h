// The inner pages of a tree, made again from its leaves at their own places.
//
// A builder is deterministic, so that the leaves tell what every inner page held. The checksum of
// the root, which the manifest has, proves that the pages found and made are the tree's, each of
// them, since every page holds the checksums of its children.
#pragma once

#include <functional>
#include <vector>

#include "engine/file/disk.h"
#include "engine/tree/tree.h"

namespace lode {

/// Reads page `page` of the tree with this number; false: it is damaged or cannot be read. The
/// parent's copy of its checksum is not asked.
[[nodiscard]] bool read_own_page(File& data, PageId page, std::uint64_t tree, std::byte* out);

/// A page that is to be written, `page_bytes` long.
struct RestoredPage {
  PageId page;
  AlignedBuffer bytes;
};

/// What has to be written so that the pages of a tree are whole; empty: they are.
using RestoredIndex = std::vector<RestoredPage>;

/// Nothing: it cannot be proven that the leaves are all there and that the pages would be the ones
/// that were. `leaf` is asked about each leaf; false ends with nothing. Nothing is written.
[[nodiscard]] std::optional<RestoredIndex> restore_index(
    File& data, const TreeInfo& info, KeyKind keys,
    const std::function<bool(const PageView&)>& leaf);

}  // namespace lode
