// SQLite: one database file, one connection a session, write-ahead log by default.
//
// Sessions may be used at the same time; writers queue in the adapter (SQLite lets one in).
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& sqlite_driver();

}  // namespace assay
