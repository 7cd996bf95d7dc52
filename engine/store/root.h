// The two alternating roots and the manifest that a root names. FORMAT.md describes the bytes.
//
// A root says which trees make up the store, which commits are in them, and from where the log is
// to be replayed. The older root stays valid until the newer one is durable, and everything that it
// needs (its pages, its log) stays until it is overwritten (invariants I7 and I8).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/file/disk.h"
#include "engine/lode.h"
#include "engine/tree/tree.h"
#include "engine/wal/log_segments.h"

namespace lode {

constexpr std::uint64_t root_magic = 0x746F6F5265646F6CU;  // "lodeRoot"
constexpr std::uint32_t format_version = 3;
constexpr std::uint32_t oldest_format_version = 2;  // readable: its manifests have no markers
constexpr std::uint64_t root_slots = 2;             // pages 0 and 1 of the data file
constexpr std::size_t root_record_bytes = 128;      // in one sector: never torn

struct Root {
  std::uint64_t store_id = 0;
  std::uint64_t generation = 0;  ///< 1 for the first root of a store; the higher one counts
  std::uint8_t key_kind = 0;
  LogMethod log_method = LogMethod::fdatasync;
  Epoch epoch;                  ///< in which it was written
  Sequence sequence;            ///< the last commit that is in the trees
  Lsn log_start;                ///< the frame behind that commit
  std::uint32_t log_chain = 0;  ///< checksum of the frame before log_start
  std::uint64_t next_tree = 1;  ///< the next free number of a tree
  ValueRef manifest;            ///< bytes = 0: no trees
};

/// One run of the manifest: trees with disjoint, rising key ranges.
struct RunInfo {
  unsigned level = 0;
  std::vector<TreeInfo> trees;
};

/// Writes the record into `block`, which is zero otherwise.
void encode_root(const Root& root, Bytes block);
/// nullopt: not a valid root. An error: a valid root of another version or page size.
[[nodiscard]] Result<std::optional<Root>> decode_root(ConstBytes block);

struct Manifest {
  std::vector<RunInfo> runs;
  std::vector<Marker> markers;  ///< up to the root's sequence, oldest first
};
[[nodiscard]] std::string encode_manifest(const Manifest& manifest);
[[nodiscard]] std::optional<Manifest> decode_manifest(ConstBytes bytes);

/// What opening finds in the two slots.
struct RootSlots {
  std::array<std::optional<Root>, root_slots> root;
  /// The slot with the higher generation; nullopt when neither is valid.
  [[nodiscard]] std::optional<std::size_t> newest() const;
};
[[nodiscard]] Result<RootSlots> read_roots(File& data);
/// Writes the root of one slot; not yet synced.
[[nodiscard]] Status write_root(File& data, std::size_t slot, const Root& root);
/// Tells roots of one store apart, those of one generation too; never 0.
[[nodiscard]] std::uint64_t root_identity(const Root& root);
/// Pages that hold the manifest.
[[nodiscard]] Extent manifest_extent(const ValueRef& manifest);

}  // namespace lode
