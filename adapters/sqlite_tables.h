// SQLite's tables: the operations of table_store.h in its own SQL. Private to the adapter.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "adapters/sqlite_connection.h"
#include "adapters/table_store.h"

namespace assay {

/// A session over `connection`, its own. `writers` is locked by who writes; null: nobody queues.
/// `ended` is called when the session is gone.
[[nodiscard]] std::unique_ptr<TableSession> sqlite_tables(
    std::shared_ptr<SqliteConnection> connection, std::mutex* writers, std::function<void()> ended);

}  // namespace assay
