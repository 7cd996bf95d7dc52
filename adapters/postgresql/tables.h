// PostgreSQL's tables: the operations of table_store.h in its own SQL. Private to the adapter.
#pragma once

#include <atomic>
#include <memory>

#include "adapters/postgresql/connection.h"
#include "adapters/table_store.h"

namespace assay::postgresql {

/// A session over `connection`, its own. `open_sessions` counts it as long as it is there.
[[nodiscard]] std::unique_ptr<TableSession> table_session(std::unique_ptr<Connection> connection,
                                                          std::atomic<int>& open_sessions);

}  // namespace assay::postgresql
