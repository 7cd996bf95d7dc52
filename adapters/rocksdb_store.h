// RocksDB: one database a store, synced or unsynced write-ahead log by class.
//
// Sessions may be used at the same time; RocksDB groups the commits of concurrent writers.
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& rocksdb_driver();

}  // namespace assay
