#include "adapters/sqlite_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>

#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::string_view kName = "sqlite";
constexpr std::uint64_t kMmapBytesMost = 0x7fff0000;  // Debian's SQLITE_MAX_MMAP_SIZE

// Every session may fill its own page cache, and their number is not known when the store is
// opened: an eighth of the budget each, and at least SQLite's default of 2000 KiB.
std::uint64_t cache_kib(std::uint64_t memory_bytes) {
  return std::max<std::uint64_t>(memory_bytes / 8 / 1024, 2000);
}

// Pages read through the mapping are charged to the memory budget, and a fault of a mapping that
// nobody calls random (SQLite gives no madvise) reads the pages around it too:
// do_sync_mmap_readahead in the kernel's mm/filemap.c. Where the file outgrows the budget, those
// pages push each other out before they are used: ycsb-a with 1 GB in 256 MiB read 190 MB/s from
// the disk and stood still; with pread 40 MB/s, and went on. So it is mapped as a whole or not at
// all. What the budget leaves is all but one writer's page cache; a B-tree filled in random order
// is about two thirds full (Yao, On random 2-3 trees, 1978), so the file is taken for half as much
// again as its entries. Nothing known: at most what is left is mapped.
std::uint64_t mapping_bytes(const OpenOptions& open) {
  const std::uint64_t left = open.memory_bytes - open.memory_bytes / 8;
  if (open.expected_bytes > left - left / 3) return 0;
  return std::min(left, kMmapBytesMost);
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string synchronous_for(DurabilityClass durability) {
  switch (durability) {
    case DurabilityClass::volatile_:
    case DurabilityClass::process:
      return "off";
    case DurabilityClass::power_prefix:
      return "normal";
    case DurabilityClass::power_last:
    case DurabilityClass::power:
      break;
  }
  return "full";
}

}  // namespace

std::vector<Setting> sqlite_settings(DurabilityClass durability) {
  return {
      {"journal_mode",
       "wal",
       "one sync a commit, readers go on beside the writer; stronger and cheaper than a rollback "
       "journal",
       "sqlite.org/wal.html, Overview",
       {"wal", "delete", "truncate", "persist", "memory", "off"}},
      {"synchronous",
       synchronous_for(durability),
       "with WAL: full syncs the log at every commit, normal only before a checkpoint (a suffix "
       "may "
       "be lost with the power), off never (safe when only the process dies)",
       "sqlite.org/pragma.html#pragma_synchronous",
       {"off", "normal", "full", "extra"}},
      {"locking_mode",
       "normal",
       "exclusive saves the lock calls of every transaction but allows one session only",
       "sqlite.org/pragma.html#pragma_locking_mode",
       {"normal", "exclusive"}},
      {"page_size",
       "4096",
       "SQLite's default, and the page of the file system below",
       "sqlite.org/pragma.html#pragma_page_size",
       {}},
      {"cache_kib",
       "auto",
       "auto: an eighth of the memory budget for each session's own page cache, at least SQLite's "
       "default of 2000 KiB; pages read through the mapping take no room in it",
       "sqlite.org/pragma.html#pragma_cache_size",
       {}},
      {"mmap_bytes",
       "auto",
       "auto: 0 (reads by pread) when expected_bytes and half as much again exceed seven eighths "
       "of "
       "the memory budget, because faults of a mapping that does not fit read pages around them "
       "and "
       "push each other out; else those seven eighths, so that reads take pages from the operating "
       "system's cache without a copy",
       "sqlite.org/mmap.html; Linux, do_sync_mmap_readahead in mm/filemap.c",
       {}},
      {"wal_autocheckpoint_pages",
       "1000",
       "SQLite's default: a checkpoint about every 4 MB of log",
       "sqlite.org/wal.html, Automatic Checkpoint",
       {}},
      {"busy_timeout_ms",
       "60000",
       "a writer of another process is waited for, not failed on",
       "sqlite.org/c3ref/busy_timeout.html",
       {}},
      {"bytes_table",
       "without_rowid",
       "one B-tree keyed by the bytes instead of a table and an index; u64 keys use INTEGER "
       "PRIMARY "
       "KEY. Rows far above a twentieth of a page do better with rowid",
       "sqlite.org/withoutrowid.html, When To Use WITHOUT ROWID",
       {"without_rowid", "rowid"}},
      {"writers",
       "queue",
       "SQLite lets one writer in; threads that wait on a mutex are woken at once, while its busy "
       "handler sleeps 1 to 100 ms between tries",
       "sqlite.org/src, sqliteDefaultBusyCallback; sqlite.org/whentouse.html on concurrency",
       {"queue", "busy_handler"}},
  };
}

// sqlite.org/pragma.html on journal_mode and synchronous: a journal in memory or none leaves a
// database that a process which dies in mid-transaction corrupts. Off hands everything to the
// operating system. Normal keeps a prefix with WAL; with a rollback journal the power may corrupt
// the database. Full with a deleted journal lacks the sync of the directory after the deletion,
// which extra adds, so that the journal may come back and roll the last commit back.
DurabilityClass sqlite_durability(const Settings& settings) {
  const std::string& journal = settings.at("journal_mode");
  const std::string& level = settings.at("synchronous");
  if (journal == "memory" || journal == "off") return DurabilityClass::volatile_;
  if (level == "off") return DurabilityClass::process;
  if (level == "normal") {
    return journal == "wal" ? DurabilityClass::power_prefix : DurabilityClass::process;
  }
  const bool last = journal == "delete" && level == "full";
  return last ? DurabilityClass::power_last : DurabilityClass::power;
}

Result<SqlitePragmas> sqlite_pragmas(const Settings& settings, const OpenOptions& open) {
  SqlitePragmas pragmas;
  pragmas.journal_mode = settings.at("journal_mode");
  pragmas.synchronous = settings.at("synchronous");
  pragmas.locking_mode = settings.at("locking_mode");
  const auto count = [&settings](const char* name, const CountRange& range) {
    return count_setting(kName, settings, name, range);
  };
  const auto page_size = count("page_size", {.least = 512, .most = 65536, .automatic = 4096});
  const auto cache =
      count("cache_kib", {.least = 1, .most = 1U << 30, .automatic = cache_kib(open.memory_bytes)});
  const auto mmap =
      count("mmap_bytes", {.least = 0, .most = kMmapBytesMost, .automatic = mapping_bytes(open)});
  const auto pages =
      count("wal_autocheckpoint_pages", {.least = 0, .most = 1U << 30, .automatic = 1000});
  const auto timeout =
      count("busy_timeout_ms", {.least = 0, .most = 3'600'000, .automatic = 60'000});
  for (const auto* value : {&page_size, &cache, &mmap, &pages, &timeout}) {
    if (!*value) return std::unexpected(value->error());
  }
  if (!std::has_single_bit(*page_size)) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("sqlite: page_size {} is no power of two", *page_size)));
  }
  pragmas.page_size = *page_size;
  pragmas.cache_kib = *cache;
  pragmas.mmap_bytes = *mmap;
  pragmas.autocheckpoint_pages = *pages;
  pragmas.busy_timeout_ms = static_cast<int>(*timeout);
  return pragmas;
}

Status sqlite_configure(SqliteConnection& connection, const SqlitePragmas& pragmas) {
  ASSAY_TRY(connection.run(fmt::format("PRAGMA locking_mode={}; PRAGMA page_size={};",
                                       pragmas.locking_mode, pragmas.page_size)));
  const Result<std::string> mode =
      connection.text(fmt::format("PRAGMA journal_mode={}", pragmas.journal_mode));
  if (!mode) return std::unexpected(mode.error());
  if (upper(*mode) != upper(pragmas.journal_mode)) {
    return fail(ErrorKind::store, fmt::format("SQLite: journal_mode is {}, asked for {}", *mode,
                                              pragmas.journal_mode));
  }
  return connection.run(fmt::format(
      "PRAGMA synchronous={}; PRAGMA cache_size=-{}; PRAGMA mmap_size={}; "
      "PRAGMA wal_autocheckpoint={}; PRAGMA temp_store=MEMORY;",
      pragmas.synchronous, pragmas.cache_kib, pragmas.mmap_bytes, pragmas.autocheckpoint_pages));
}

// Sorters keep everything in memory otherwise (sqlite_configure), which is right for keys and
// values, where nothing is sorted. The directory is the whole process's: it is that of the
// store whose tables were asked for last.
Status sqlite_spill_into(SqliteConnection& connection, const std::string& directory) {
  const Result<std::string> now = connection.text("PRAGMA temp_store_directory");
  if (!now) return std::unexpected(now.error());
  if (*now != directory) {
    std::string quoted;
    for (const char one : directory)
      quoted += one == '\'' ? std::string("''") : std::string(1, one);
    ASSAY_TRY(connection.run(fmt::format("PRAGMA temp_store_directory='{}'", quoted)));
  }
  return connection.run("PRAGMA temp_store=FILE");
}

Result<Settings> sqlite_effective_settings(SqliteConnection& connection) {
  constexpr std::array<std::pair<const char*, const char*>, 7> kPragmas{{
      {"journal_mode", "journal_mode"},
      {"synchronous", "synchronous"},
      {"locking_mode", "locking_mode"},
      {"page_size", "page_size"},
      {"mmap_bytes", "mmap_size"},
      {"wal_autocheckpoint_pages", "wal_autocheckpoint"},
      {"busy_timeout_ms", "busy_timeout"},
  }};
  constexpr std::array<const char*, 4> kSynchronous{"off", "normal", "full", "extra"};
  Settings settings;
  for (const auto& [name, pragma] : kPragmas) {
    const Result<std::string> value = connection.text(fmt::format("PRAGMA {}", pragma));
    if (!value) return std::unexpected(value.error());
    settings[name] = *value;
  }
  std::string& level = settings["synchronous"];
  if (level.size() == 1 && level[0] >= '0' && level[0] <= '3') {
    level = kSynchronous[static_cast<std::size_t>(level[0] - '0')];
  }
  const Result<std::string> cache = connection.text("PRAGMA cache_size");
  if (!cache) return std::unexpected(cache.error());
  settings["cache_kib"] = cache->starts_with('-') ? cache->substr(1) : *cache + " pages";
  const Result<std::string> table =
      connection.text("SELECT sql FROM sqlite_master WHERE name='kv'");
  if (!table) return std::unexpected(table.error());
  settings["table"] = *table;
  return settings;
}

}  // namespace assay
