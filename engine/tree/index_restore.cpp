#include "engine/tree/index_restore.h"

#include <array>
#include <cstring>

namespace lode {
namespace {

std::string key_at(const PageView& view, std::size_t i) {
  std::array<char, key_buffer_bytes> buffer;
  return std::string(buffer.data(), view.key(i, buffer.data()));
}

/// The places of a tree's pages up to the root, which was written last.
std::vector<PageId> places_of(const TreeInfo& info) {
  std::vector<PageId> places;
  for (const Extent& extent : info.extents) {
    for (std::uint64_t i = 0; i < extent.pages; ++i) {
      places.push_back(extent.first + i);
      if (places.back() == info.root.page) return places;
    }
  }
  return {};
}

/// Gives inner pages the places between the leaves, and keeps those that differ from the file.
class Restorer final : public PageSink {
 public:
  Restorer(File& data, const TreeInfo& info)
      : data_(data), info_(info), places_(places_of(info)), found_(page_bytes) {}

  Result<PageRef> put(PageBuilder& page, std::size_t level) override {
    if (at_ == places_.size()) return fail(ErrorKind::corruption, "more pages than places");
    PageRef ref{places_[at_++], 0};
    AlignedBuffer made(page_bytes);
    ref.checksum =
        page.finish(static_cast<std::uint8_t>(level), ref.page, info_.number, made.data());
    const std::uint64_t offset = ref.page.value * page_bytes;
    const bool same = read_exactly(data_, found_.bytes(), offset) &&
                      std::memcmp(found_.data(), made.data(), page_bytes) == 0;
    if (!same) restored_.push_back({ref.page, std::move(made)});
    return ref;
  }
  /// The page at the next place, when it is an intact leaf.
  bool next_leaf(PageRef& ref) {
    if (at_ == places_.size()) return false;
    ref.page = places_[at_++];
    if (!read_own_page(data_, ref.page, info_.number, found_.data())) return false;
    ref.checksum = load<std::uint32_t>(found_.data() + 4);
    return leaf().leaf();
  }
  /// Valid until the next call of put() or next_leaf().
  [[nodiscard]] PageView leaf() const { return PageView(found_.data()); }
  [[nodiscard]] bool all_placed() const { return at_ == places_.size(); }
  [[nodiscard]] RestoredIndex take() { return std::move(restored_); }

 private:
  File& data_;
  const TreeInfo& info_;
  std::vector<PageId> places_;
  std::size_t at_ = 0;
  AlignedBuffer found_;
  RestoredIndex restored_;
};

}  // namespace

bool read_own_page(File& data, PageId page, std::uint64_t tree, std::byte* out) {
  if (!read_exactly(data, Bytes(out, page_bytes), page.value * page_bytes)) return false;
  return check_page(out, {page, load<std::uint32_t>(out + 4)}, tree).has_value();
}

std::optional<RestoredIndex> restore_index(File& data, const TreeInfo& info, KeyKind keys,
                                           const std::function<bool(const PageView&)>& leaf) {
  Restorer restorer(data, info);
  InnerLevels inner(keys, restorer);
  std::string last_key;
  std::uint64_t entries = 0;
  std::optional<Result<PageRef>> root;
  while (!root) {
    PageRef ref;
    if (!restorer.next_leaf(ref)) return std::nullopt;
    const PageView view = restorer.leaf();
    if (view.kind() != page_kind(keys, true) || !leaf(view)) return std::nullopt;
    const std::string first = key_at(view, 0);
    const std::string separator(entries == 0 ? std::string_view(first)
                                             : leaf_separator(keys, last_key, first));
    last_key = key_at(view, view.count() - 1);
    entries += view.count();
    if (entries >= info.entries) {
      root = inner.finish(separator, ref);
    } else if (!inner.add(separator, ref)) {
      return std::nullopt;
    }
  }
  const bool proven = entries == info.entries && *root && (*root)->page == info.root.page &&
                      (*root)->checksum == info.root.checksum && restorer.all_placed();
  if (!proven) return std::nullopt;
  return restorer.take();
}

}  // namespace lode
