// How a directory becomes a store: steps O2 of PROTOCOLS.md, for an empty one and for a backup.
//
// Invariant: the name `data` appears only when everything that makes up the store is durable. Until
// then the directory holds no store, whatever of ours is in it.
// Threads: one at a time, with the directory's lock.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "engine/file/disk.h"
#include "engine/store/root.h"

namespace lode {

constexpr std::string_view data_name = "data";
constexpr std::string_view unfinished_data_name = "data.new";

/// A random number of a store, never 0.
[[nodiscard]] std::uint64_t random_store_id();

/// Writes into the data file of the new store and fills in what the root says of it.
using FillData = std::function<Status(File& data, Root& root)>;

/// Makes a store in an empty directory: `fill` (none: no trees) and the root in data.new, the first
/// log segment, all synced, then the rename to `data`, synced.
[[nodiscard]] Status make_store(Disk& disk, Root root, std::optional<LogMethod> log_method,
                                std::uint64_t log_segment_bytes, const FillData& fill);

}  // namespace lode
