// LMDB's settings: what a class maps to, and the flags and sizes that they come to.
//
// Private to the adapter. Pure functions, callable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "adapters/store.h"

namespace assay {

/// What the settings come to.
struct LmdbPlan {
  unsigned flags = 0;
  std::uint64_t map_bytes = 0;
  std::uint64_t readers = 0;
  std::uint64_t zero_copy_bytes = 0;
  bool append = true;  ///< MDB_APPEND for batches of ascending keys behind the last one
};

[[nodiscard]] std::vector<Setting> lmdb_settings(DurabilityClass durability);
/// The strongest class that the flags keep.
[[nodiscard]] DurabilityClass lmdb_durability(const Settings& settings);
[[nodiscard]] Result<LmdbPlan> lmdb_plan(const Settings& settings, const OpenOptions& options);

}  // namespace assay
