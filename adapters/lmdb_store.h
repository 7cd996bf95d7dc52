// LMDB: one memory-mapped environment a store, whose map grows without failing the caller.
//
// Sessions may be used at the same time; LMDB lets one writer in and makes the others wait.
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& lmdb_driver();

}  // namespace assay
