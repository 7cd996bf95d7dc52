// One SQLite connection with its prepared statements, and SQLite's errors as ours.
//
// A connection and its statements belong to one thread at a time (they are opened without
// SQLite's own mutex). Statements must be gone before their connection.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/result.h"

namespace assay {

struct SqliteFinalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteFinalize>;

class SqliteConnection {
 public:
  /// `shared`: used by several threads, so SQLite's mutex is kept.
  struct Opening {
    std::string path;
    bool create = false;
    bool shared = false;
    int busy_timeout_ms = 0;
  };
  [[nodiscard]] static Result<std::unique_ptr<SqliteConnection>> open(const Opening& opening);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  [[nodiscard]] Status run(const std::string& sql);
  /// The first column of the first row of `sql`; empty when there is no row.
  [[nodiscard]] Result<std::string> text(const std::string& sql);
  [[nodiscard]] Result<SqliteStatement> prepare(const std::string& sql);
  /// Syncs the journal or log, then the database file, whatever `synchronous` says.
  [[nodiscard]] Status sync_files();
  /// Closes; an error when something is still in use.
  [[nodiscard]] Status close();

  /// SQLite's message for the last failed call, with `what` before it.
  [[nodiscard]] Error error(std::string_view what) const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  SqliteConnection(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  sqlite3* handle_;
  std::string path_;
};

}  // namespace assay
