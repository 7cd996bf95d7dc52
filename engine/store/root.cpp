#include "engine/store/root.h"

#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"

namespace lode {
namespace {

constexpr std::uint64_t most_trees = 1 << 24;

std::uint32_t record_checksum(const std::byte* record) {
  std::byte copy[root_record_bytes];
  std::memcpy(copy, record, sizeof copy);
  store(copy + 12, std::uint32_t{0});
  return crc32c(ConstBytes(copy, sizeof copy));
}

}  // namespace

void encode_root(const Root& root, Bytes block) {
  std::byte* out = block.data();
  std::memset(out, 0, block.size());
  store(out, root_magic);
  store(out + 8, format_version);
  store(out + 16, root.store_id);
  store(out + 24, root.generation);
  store(out + 32, static_cast<std::uint32_t>(page_bytes));
  out[36] = static_cast<std::byte>(root.key_kind);
  out[37] = static_cast<std::byte>(root.log_method);
  store(out + 40, root.epoch.value);
  store(out + 48, root.sequence.value);
  store(out + 56, root.log_start.value);
  store(out + 64, root.log_chain);
  store(out + 72, root.next_tree);
  encode_value_ref(root.manifest, out + 80);
  store(out + 12, record_checksum(out));
}

Result<std::optional<Root>> decode_root(ConstBytes block) {
  if (block.size() < root_record_bytes) return std::nullopt;
  const std::byte* in = block.data();
  if (load<std::uint64_t>(in) != root_magic) return std::nullopt;
  if (load<std::uint32_t>(in + 12) != record_checksum(in)) return std::nullopt;
  const auto version = load<std::uint32_t>(in + 8);
  if (version < oldest_format_version || version > format_version ||
      load<std::uint32_t>(in + 32) != page_bytes) {
    return fail(ErrorKind::wrong_version,
                "the store has format version " + std::to_string(version) + " with pages of " +
                    std::to_string(load<std::uint32_t>(in + 32)) + " bytes; this engine reads " +
                    std::to_string(oldest_format_version) + " to " +
                    std::to_string(format_version) + " with " + std::to_string(page_bytes));
  }
  Root root;
  root.store_id = load<std::uint64_t>(in + 16);
  root.generation = load<std::uint64_t>(in + 24);
  root.key_kind = std::to_integer<std::uint8_t>(in[36]);
  root.log_method = static_cast<LogMethod>(in[37]);
  root.epoch = Epoch(load<std::uint64_t>(in + 40));
  root.sequence = Sequence(load<std::uint64_t>(in + 48));
  root.log_start = Lsn(load<std::uint64_t>(in + 56));
  root.log_chain = load<std::uint32_t>(in + 64);
  root.next_tree = load<std::uint64_t>(in + 72);
  root.manifest = decode_value_ref(in + 80);
  if (root.key_kind > 1 || root.log_method > LogMethod::direct_dsync) return std::nullopt;
  return root;
}

std::string encode_manifest(const Manifest& manifest) {
  std::string out;
  Encoder encoder(out);
  encoder.varint(manifest.runs.size());
  for (const RunInfo& run : manifest.runs) {
    encoder.varint(run.level);
    encoder.varint(run.trees.size());
    for (const TreeInfo& tree : run.trees) tree.encode(encoder);
  }
  encoder.varint(manifest.markers.size());
  for (const Marker& marker : manifest.markers) {
    encoder.text(marker.name);
    encoder.varint(marker.sequence);
  }
  return out;
}

std::optional<Manifest> decode_manifest(ConstBytes bytes) {
  Decoder in(bytes);
  Manifest manifest;
  const std::uint64_t run_count = in.varint();
  for (std::uint64_t r = 0; r < run_count && !in.failed(); ++r) {
    RunInfo run;
    run.level = static_cast<unsigned>(in.varint());
    const std::uint64_t tree_count = in.varint();
    if (tree_count == 0 || tree_count > most_trees) return std::nullopt;
    for (std::uint64_t t = 0; t < tree_count; ++t) {
      auto tree = TreeInfo::decode(in);
      if (!tree) return std::nullopt;
      run.trees.push_back(std::move(*tree));
    }
    manifest.runs.push_back(std::move(run));
  }
  // Manifests of version 2 end here.
  const std::uint64_t marker_count = !in.failed() && in.left() == 0 ? 0 : in.varint();
  if (marker_count > most_markers) return std::nullopt;
  for (std::uint64_t m = 0; m < marker_count; ++m) {
    Marker marker;
    marker.name = in.text();
    marker.sequence = in.varint();
    manifest.markers.push_back(std::move(marker));
  }
  if (in.failed() || in.left() != 0) return std::nullopt;
  return manifest;
}

std::optional<std::size_t> RootSlots::newest() const {
  if (root[0] && root[1]) return root[0]->generation > root[1]->generation ? 0 : 1;
  if (root[0]) return 0;
  if (root[1]) return 1;
  return std::nullopt;
}

Result<RootSlots> read_roots(File& data) {
  RootSlots slots;
  const AlignedBuffer block(direct_alignment);
  for (std::size_t slot = 0; slot < root_slots; ++slot) {
    LODE_ASSIGN(const std::size_t count, data.read_at(block.bytes(), slot * page_bytes));
    LODE_ASSIGN(slots.root[slot], decode_root(block.bytes().first(count)));
  }
  return slots;
}

std::uint64_t root_identity(const Root& root) {
  std::array<std::byte, root_record_bytes> record{};
  encode_root(root, record);
  return (root.generation << 32) | load<std::uint32_t>(record.data() + 12);
}

Status write_root(File& data, std::size_t slot, const Root& root) {
  const AlignedBuffer block(direct_alignment);
  encode_root(root, block.bytes());
  return data.write_at(block.bytes(), slot * page_bytes);
}

Extent manifest_extent(const ValueRef& manifest) {
  return {PageId(manifest.offset / page_bytes), (manifest.bytes + page_bytes - 1) / page_bytes};
}

}  // namespace lode
