// Adapters that stand in shared objects of their own (assay_rocksdb.so, assay_postgresql.so, beside
// the command) and are loaded when they are first asked for.
//
// Linked in, librocksdb's relocations and static constructors would cost every trial of every other
// store some 5 ms at its start; and a machine without libpq must still run every other store. This
// header is all that the rest of the adapters know of them.
#pragma once

#include "adapters/store.h"

namespace assay {

inline constexpr const char* kRocksdbEntrySymbol = "assay_rocksdb_entry";
inline constexpr const char* kPostgresqlEntrySymbol = "assay_postgresql_entry";
/// What each symbol is: an extern "C" function of this type.
using StoreEntry = const Driver* (*)();

/// Load the object at the first call; it stays loaded. An error of kind `environment` when the
/// file is missing or cannot be loaded. Callable from any thread.
[[nodiscard]] Result<const Driver*> load_rocksdb_driver();
[[nodiscard]] Result<const Driver*> load_postgresql_driver();

}  // namespace assay
