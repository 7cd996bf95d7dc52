// SQLite's settings: what a class maps to, and the pragmas that they come to.
//
// Private to the adapter. Stateless; a connection belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/sqlite_connection.h"
#include "adapters/store.h"

namespace assay {

/// What a connection is opened with; every session's connection gets the same.
struct SqlitePragmas {
  std::string journal_mode;
  std::string synchronous;
  std::string locking_mode;
  std::uint64_t page_size = 0;
  std::uint64_t cache_kib = 0;
  std::uint64_t mmap_bytes = 0;
  std::uint64_t autocheckpoint_pages = 0;
  int busy_timeout_ms = 0;
};

[[nodiscard]] std::vector<Setting> sqlite_settings(DurabilityClass durability);
/// The strongest class that the pragmas keep.
[[nodiscard]] DurabilityClass sqlite_durability(const Settings& settings);
/// `open` says what "auto" comes to: the memory budget and the data expected in it.
[[nodiscard]] Result<SqlitePragmas> sqlite_pragmas(const Settings& settings,
                                                   const OpenOptions& open);

/// Makes a new connection what `pragmas` says; an error when SQLite does not go along.
[[nodiscard]] Status sqlite_configure(SqliteConnection& connection, const SqlitePragmas& pragmas);
/// Lets the connection sort what its memory does not hold in files below `directory`.
[[nodiscard]] Status sqlite_spill_into(SqliteConnection& connection, const std::string& directory);
/// The settings in force, read back from the connection's pragmas.
[[nodiscard]] Result<Settings> sqlite_effective_settings(SqliteConnection& connection);

}  // namespace assay
