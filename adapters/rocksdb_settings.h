// RocksDB's settings: what a class maps to, and the options that they come to.
//
// Private to the adapter. Pure functions, callable from any thread.
#pragma once

#include <rocksdb/options.h>

#include <memory>
#include <vector>

#include "adapters/store.h"

namespace assay {

/// RocksDB's options, and what is not an option of the database but of every write.
struct RocksdbPlan {
  rocksdb::Options options;
  bool sync = false;
  bool write_ahead_log = true;
};

[[nodiscard]] std::vector<Setting> rocksdb_settings(DurabilityClass durability);
/// The strongest class that the log's settings keep.
[[nodiscard]] DurabilityClass rocksdb_durability(const Settings& settings);
[[nodiscard]] Result<RocksdbPlan> rocksdb_plan(const Settings& settings,
                                               const OpenOptions& options);

}  // namespace assay
