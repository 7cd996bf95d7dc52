#include "adapters/sqlite_connection.h"

#include <fmt/format.h>

#include <cerrno>
#include <mutex>

#include "adapters/opening.h"

namespace assay {
namespace {

ErrorKind kind_of(sqlite3* handle, int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return ErrorKind::environment;
    case SQLITE_NOTADB:
      return ErrorKind::bad_input;
    case SQLITE_IOERR:
      return kind_of_errno(sqlite3_system_errno(handle));
    default:
      return ErrorKind::store;
  }
}

// Memory statistics take a global mutex at every allocation; nobody reads them here. SQLite's own
// compile-time advice turns them off too. Refused when SQLite is in use already, which is harmless.
void configure_process() {
  static std::once_flag once;
  std::call_once(once, [] { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
}

}  // namespace

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open(const Opening& opening) {
  configure_process();
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (opening.create ? SQLITE_OPEN_CREATE : 0) |
                    (opening.shared ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX);
  const int code = sqlite3_open_v2(opening.path.c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return fail(ErrorKind::environment, "SQLite: no memory for a connection");
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(handle, opening.path));
  if (code != SQLITE_OK) return fail(connection->error("cannot open the database"));
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, opening.busy_timeout_ms);
  return connection;
}

SqliteConnection::~SqliteConnection() {
  sqlite3_close_v2(handle_);
}

Status SqliteConnection::close() {
  const int code = sqlite3_close(handle_);
  if (code != SQLITE_OK) return fail(error("cannot close"));
  handle_ = nullptr;
  return {};
}

Error SqliteConnection::error(std::string_view what) const {
  const int code = sqlite3_extended_errcode(handle_);
  std::string text = fmt::format("SQLite: {}: {}", what, sqlite3_errmsg(handle_));
  if ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN) {
    const int system_code = sqlite3_system_errno(handle_);
    if (system_code != 0) text += fmt::format(" (errno {})", system_code);
  }
  Error error(kind_of(handle_, code), std::move(text));
  error.at(path_);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      error.hint("the file is no SQLite database; give the store a directory of its own");
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      error.hint("another process or session holds the database");
      break;
    case SQLITE_FULL:
      error.hint("free some space on the file system");
      break;
    default:
      break;
  }
  return error;
}

Status SqliteConnection::run(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(error(sql));
  }
  return {};
}

Result<std::string> SqliteConnection::text(const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    return fail(error(sql));
  }
  const SqliteStatement statement(raw);
  const int code = sqlite3_step(raw);
  if (code == SQLITE_DONE) return std::string();
  if (code != SQLITE_ROW) return fail(error(sql));
  const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
  return std::string(value == nullptr ? "" : value);
}

Result<SqliteStatement> SqliteConnection::prepare(const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(handle_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr) !=
      SQLITE_OK) {
    return fail(error(sql));
  }
  return SqliteStatement(raw);
}

// The files are synced through SQLite's own handles: opening and closing the database file beside
// SQLite would drop the process's POSIX locks on it.
Status SqliteConnection::sync_files() {
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    const int code = sqlite3_file_control(handle_, "main", which, static_cast<void*>(&file));
    if (code != SQLITE_OK || file == nullptr || file->pMethods == nullptr) continue;
    if (file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK) {
      return fail(
          system_error("SQLite: cannot sync a file", sqlite3_system_errno(handle_)).at(path_));
    }
  }
  return {};
}

}  // namespace assay
