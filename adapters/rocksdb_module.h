// The RocksDB adapter stands in a shared object of its own (assay_rocksdb.so, beside the command)
// that is loaded when it is first asked for.
//
// Linked in, librocksdb's relocations and static constructors would cost every trial of every other
// store some 5 ms at its start. This header is all that the rest of the adapters know of it; the
// object itself is rocksdb_store.cpp and rocksdb_settings.cpp.
#pragma once

#include "adapters/store.h"

namespace assay {

inline constexpr const char* kRocksdbEntrySymbol = "assay_rocksdb_entry";
/// What the symbol is: an extern "C" function of this type.
using RocksdbEntry = const Driver* (*)();

/// Loads the object at the first call; it stays loaded. An error of kind `environment` when the
/// file is missing or cannot be loaded. Callable from any thread.
[[nodiscard]] Result<const Driver*> load_rocksdb_driver();

}  // namespace assay
