#include "engine/tree/tree.h"

#include <algorithm>

#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"

namespace lode {

std::uint64_t TreeInfo::pages() const {
  std::uint64_t count = 0;
  for (const Extent& extent : extents) count += extent.pages;
  return count;
}

void TreeInfo::encode(Encoder& out) const {
  out.varint(number);
  out.varint(root.page.value);
  out.fixed(root.checksum);
  out.varint(entries);
  out.varint(tombstones);
  out.varint(payload_bytes);
  out.text(first_key);
  out.text(last_key);
  out.varint(filter.offset);
  out.varint(filter.bytes);
  out.fixed(filter.checksum);
  out.varint(extents.size());
  for (const Extent& extent : extents) {
    out.varint(extent.first.value);
    out.varint(extent.pages);
  }
}

std::optional<TreeInfo> TreeInfo::decode(Decoder& in) {
  TreeInfo info;
  info.number = in.varint();
  info.root.page = PageId(in.varint());
  info.root.checksum = in.fixed<std::uint32_t>();
  info.entries = in.varint();
  info.tombstones = in.varint();
  info.payload_bytes = in.varint();
  info.first_key = in.text();
  info.last_key = in.text();
  info.filter.offset = in.varint();
  info.filter.bytes = in.varint();
  info.filter.checksum = in.fixed<std::uint32_t>();
  const std::uint64_t count = in.varint();
  if (in.failed() || count > in.left()) return std::nullopt;  // an extent takes two bytes at least
  for (std::uint64_t i = 0; i < count; ++i) {
    Extent extent;
    extent.first = PageId(in.varint());
    extent.pages = in.varint();
    if (extent.pages == 0 || extent.pages > (std::uint64_t{1} << 40) ||
        extent.first.value > (std::uint64_t{1} << 40)) {
      return std::nullopt;
    }
    info.extents.push_back(extent);
  }
  if (in.failed() || info.entries == 0) return std::nullopt;
  return info;
}

Tree::~Tree() {
  for (const Extent& extent : info_.extents) {
    space_.pool.forget(extent);
    space_.space.free(extent);
  }
}

Result<bool> Tree::may_hold(std::uint64_t hash) const {
  const Filter* filter = filter_.load(std::memory_order_acquire);
  if (filter == nullptr) {
    const std::lock_guard guard(filter_mutex_);
    filter = filter_.load(std::memory_order_acquire);
    if (filter == nullptr) {
      std::string stored;
      auto status = read_value(info_.filter, stored);
      if (!status) return std::unexpected(std::move(status).error().in("filter of a tree"));
      filter_storage_ = std::make_unique<Filter>(as_bytes(stored));
      filter = filter_storage_.get();
      filter_.store(filter, std::memory_order_release);
    }
  }
  return filter->may_hold(hash);
}

Status Tree::read_value(const ValueRef& ref, std::string& out) const {
  // Whole blocks around it, so that the file may be open for direct access.
  constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
  out.clear();
  const std::uint64_t end_page = space_.space.end_page();
  if (ref.offset / page_bytes > end_page || ref.bytes / page_bytes > end_page) {
    return fail(ErrorKind::corruption, "a reference to a value leads beyond the file");
  }
  const std::uint64_t end = ref.offset + ref.bytes;
  std::uint64_t block = ref.offset / direct_alignment * direct_alignment;
  const std::uint64_t last = (end + direct_alignment - 1) / direct_alignment * direct_alignment;
  const AlignedBuffer buffer(std::min<std::uint64_t>(chunk_bytes, last - block));
  out.reserve(ref.bytes);
  while (block < end) {
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), last - block);
    LODE_TRY(read_exactly(space_.file, buffer.bytes().first(part), block));
    const std::uint64_t from = std::max(block, ref.offset);
    const std::uint64_t to = std::min(block + part, end);
    out.append(as_text(ConstBytes(buffer.data() + (from - block), to - from)));
    block += part;
  }
  if (crc32c(as_bytes(out)) != ref.checksum && !LODE_MUTATED("value-checksum-ignored")) {
    return fail(ErrorKind::corruption,
                "the value at offset " + std::to_string(ref.offset) + " is damaged (checksum)");
  }
  return {};
}

Result<Lookup> Tree::get(std::string_view key, std::uint64_t hash, std::string& value) const {
  if (!in_range(key)) return Lookup{};
  LODE_ASSIGN(const bool perhaps, may_hold(hash));
  if (!perhaps) return Lookup{};
  PageRef ref = info_.root;
  while (true) {
    LODE_ASSIGN(const PinnedPage page, space_.pool.pin(ref, info_.number));
    const PageView view = page.view();
    if (!view.leaf()) {
      ref = view.child(view.child_index(key));
      continue;
    }
    Cell cell;
    if (!view.find(key, cell)) return Lookup{};
    if (cell.kind == CellKind::tombstone) return Lookup{.found = true, .deleted = true};
    if (cell.kind == CellKind::reference) {
      LODE_TRY(read_value(decode_value_ref(as_bytes(cell.data).data()), value));
    } else {
      value.assign(cell.data);
    }
    return Lookup{.found = true, .deleted = false};
  }
}

Resident Tree::get_resident(std::string_view key, std::string& value, std::uint64_t& pages) const {
  PageId at = info_.root.page;
  while (true) {
    const std::byte* page = space_.pool.resident(at);
    if (page == nullptr) return Resident::unknown;
    ++pages;
    const PageView view(page);
    view.prefetch();
    if (!view.leaf()) {
      at = view.child(view.child_index(key)).page;
      continue;
    }
    Cell cell;
    if (!view.find(key, cell)) return Resident::absent;
    if (cell.kind == CellKind::tombstone) return Resident::deleted;
    if (cell.kind == CellKind::reference) return Resident::unknown;
    value.assign(cell.data);
    return Resident::value;
  }
}

struct Tree::Walk {
  std::string last_key;
  std::uint64_t entries = 0;
  std::uint64_t tombstones = 0;
  std::string scratch;
};

Status Tree::verify_page(const PageRef& ref, unsigned level, Walk& walk) const {
  LODE_ASSIGN(const PinnedPage page, space_.pool.pin(ref, info_.number));
  const PageView view = page.view();
  const std::string place = "page " + std::to_string(ref.page.value) + ": ";
  if (view.level() != level || view.leaf() != (level == 0)) {
    return fail(ErrorKind::corruption, place + "wrong level");
  }
  std::array<char, key_buffer_bytes> buffer;
  for (std::size_t i = 0; i < view.count(); ++i) {
    const std::string key(buffer.data(), view.key(i, buffer.data()));
    if (level > 0) {
      if (i > 0 && key <= walk.last_key) {
        return fail(ErrorKind::corruption, place + "a separator is not above its left subtree");
      }
      LODE_TRY(verify_page(view.child(i), level - 1, walk));
      continue;
    }
    if (walk.entries > 0 && key <= walk.last_key) {
      return fail(ErrorKind::corruption, place + "keys out of order");
    }
    bool equal = false;
    if (view.lower_bound(key, equal) != i || !equal) {
      return fail(ErrorKind::corruption, place + "an entry is not found by its key");
    }
    LODE_ASSIGN(const bool perhaps, may_hold(filter_hash(key)));
    if (!perhaps) return fail(ErrorKind::corruption, place + "the filter denies a key");
    const Cell cell = view.cell(i);
    if (cell.kind == CellKind::reference) {
      LODE_TRY(read_value(decode_value_ref(as_bytes(cell.data).data()), walk.scratch));
    }
    walk.last_key = key;
    ++walk.entries;
    if (cell.kind == CellKind::tombstone) ++walk.tombstones;
  }
  return {};
}

Status Tree::verify() const {
  Walk walk;
  unsigned height = 0;
  {
    LODE_ASSIGN(const PinnedPage root, space_.pool.pin(info_.root, info_.number));
    height = root.view().level();
  }
  LODE_TRY(verify_page(info_.root, height, walk));
  if (walk.entries != info_.entries || walk.tombstones != info_.tombstones ||
      walk.last_key != info_.last_key) {
    return fail(ErrorKind::corruption,
                "tree " + std::to_string(info_.number) + " differs from its manifest");
  }
  return {};
}

}  // namespace lode
