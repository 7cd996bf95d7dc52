#include "harness/qualify/controls.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace assay::qualify {
namespace {

struct Expected {
  Loss most = Loss::intact;
  std::optional<Loss> must_reach = std::nullopt;
};

struct Rule {
  std::string_view row;  ///< of the matrix; empty: a setting that it leaves out
  std::string_view store;
  std::vector<std::pair<std::string_view, std::string_view>> settings;
  std::optional<Expected> kill;  ///< nothing: the documentation says nothing
  std::optional<Expected> power;
  std::string_view source;
};

constexpr Expected kSafe{};
constexpr Expected kMayLoseAll{Loss::unopenable, Loss::suffix};
constexpr Expected kSuffix{Loss::suffix, Loss::suffix};
constexpr Expected kLast{Loss::last, Loss::last};
/// Pages are written in place with nothing to put them back from.
constexpr Expected kInMidTransaction{Loss::unopenable, Loss::torn};
constexpr Expected kAnything{Loss::unopenable, std::nullopt};

constexpr std::string_view kSqlite = "sqlite.org/pragma.html, journal_mode and synchronous";
constexpr std::string_view kLmdb = "lmdb.h 0.9.24, mdb_env_open";
constexpr std::string_view kRocksdb = "github.com/facebook/rocksdb wiki, WAL Performance";
constexpr std::string_view kRocksdbRecovery =
    "github.com/facebook/rocksdb wiki, WAL Recovery Modes";
constexpr std::string_view kRawFile = "adapters/README.md, raw-file";
constexpr std::string_view kRewrite = "adapters/rewrite_store.h";
constexpr std::string_view kLode = "engine/lode.h";

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"sqlite journal memory",
       "sqlite",
       {{"journal_mode", "memory"}},
       kInMidTransaction,
       kAnything,
       kSqlite},
      {"sqlite journal off",
       "sqlite",
       {{"journal_mode", "off"}},
       kInMidTransaction,
       kAnything,
       kSqlite},
      {"sqlite wal off",
       "sqlite",
       {{"journal_mode", "wal"}, {"synchronous", "off"}},
       kSafe,
       kMayLoseAll,
       kSqlite},
      {"", "sqlite", {{"synchronous", "off"}}, kSafe, kMayLoseAll, kSqlite},
      {"sqlite wal normal",
       "sqlite",
       {{"journal_mode", "wal"}, {"synchronous", "normal"}},
       kSafe,
       kSuffix,
       kSqlite},
      {"", "sqlite", {{"synchronous", "normal"}}, kSafe, std::nullopt, kSqlite},
      // The commit is the unlink of the journal, and nothing makes that durable.
      {"sqlite delete full",
       "sqlite",
       {{"journal_mode", "delete"}, {"synchronous", "full"}},
       kSafe,
       kLast,
       kSqlite},
      {"sqlite delete extra",
       "sqlite",
       {{"journal_mode", "delete"}, {"synchronous", "extra"}},
       kSafe,
       kSafe,
       kSqlite},
      {"sqlite truncate full",
       "sqlite",
       {{"journal_mode", "truncate"}, {"synchronous", "full"}},
       kSafe,
       kSafe,
       kSqlite},
      {"sqlite persist full",
       "sqlite",
       {{"journal_mode", "persist"}, {"synchronous", "full"}},
       kSafe,
       kSafe,
       kSqlite},
      {"sqlite wal full",
       "sqlite",
       {{"journal_mode", "wal"}, {"synchronous", "full"}},
       kSafe,
       kSafe,
       kSqlite},
      {"", "sqlite", {{"synchronous", "full"}}, kSafe, kSafe, kSqlite},
      {"", "sqlite", {{"synchronous", "extra"}}, kSafe, kSafe, kSqlite},
      {"lmdb nosync", "lmdb", {{"sync", "nosync"}}, kSafe, kMayLoseAll, kLmdb},
      {"lmdb writemap mapasync",
       "lmdb",
       {{"writemap", "on"}, {"mapasync", "on"}},
       kSafe,
       kMayLoseAll,
       kLmdb},
      {"lmdb nometasync", "lmdb", {{"sync", "nometasync"}}, kSafe, kLast, kLmdb},
      {"lmdb writemap", "lmdb", {{"writemap", "on"}}, kSafe, kSafe, kLmdb},
      {"lmdb", "lmdb", {}, kSafe, kSafe, kLmdb},
      {"rocksdb wal off", "rocksdb", {{"wal", "off"}, {"sync", "off"}}, kSuffix, kSuffix, kRocksdb},
      // A synced write flushes the buffer, so only without sync can the buffer be lost.
      {"rocksdb manual flush",
       "rocksdb",
       {{"manual_wal_flush", "on"}, {"sync", "off"}},
       kSuffix,
       kSuffix,
       kRocksdb},
      // Refuses any torn tail, which a kill within a write leaves too.
      {"",
       "rocksdb",
       {{"wal_recovery_mode", "absolute"}},
       std::nullopt,
       std::nullopt,
       kRocksdbRecovery},
      {"rocksdb sync off",
       "rocksdb",
       {{"sync", "off"}, {"wal_recovery_mode", "point_in_time"}},
       kSafe,
       kSuffix,
       kRocksdb},
      {"rocksdb", "rocksdb", {{"wal_recovery_mode", "point_in_time"}}, kSafe, kSafe, kRocksdb},
      {"", "rocksdb", {}, kSafe, std::nullopt, kRocksdbRecovery},
      {"raw-file unsynced", "raw-file", {{"method", "none"}}, kSafe, kSuffix, kRawFile},
      {"raw-file", "raw-file", {}, kSafe, kSafe, kRawFile},
      // Nothing is written before the store is closed or told to.
      {"rewrite at the end", "rewrite", {{"flush", "close"}}, kSuffix, kSuffix, kRewrite},
      {"rewrite unsynced", "rewrite", {{"flush", "written"}}, kSafe, kMayLoseAll, kRewrite},
      {"rewrite", "rewrite", {{"flush", "synced"}}, kSafe, kSafe, kRewrite},
      // Acknowledged in memory: gone with the process as well. That the suffix is bounded by
      // window_operations is bound_of_loss().
      {"lode window", "lode", {{"durability", "window"}}, kSuffix, kSuffix, kLode},
      {"lode volatile", "lode", {{"durability", "volatile"}}, kSuffix, kSuffix, kLode},
      {"lode buffered",
       "lode",
       {{"durability", "buffered"}, {"log_method", "fdatasync"}},
       kSafe,
       kSuffix,
       kLode},
      {"", "lode", {{"durability", "buffered"}}, kSafe, std::nullopt, kLode},
      {"lode", "lode", {{"durability", "sync"}}, kSafe, kSafe, kLode},
  };
  return all;
}

bool fits(const Rule& rule, const std::string& store, const Settings& settings) {
  if (rule.store != store) return false;
  return std::ranges::all_of(rule.settings, [&](const auto& wanted) {
    const auto found = settings.find(std::string(wanted.first));
    return found != settings.end() &&
           std::ranges::equal(found->second, wanted.second, [](unsigned char a, unsigned char b) {
             return std::tolower(a) == b;
           });
  });
}

}  // namespace

std::optional<Control> find_control(const std::string& store, const Settings& settings,
                                    Crash crash) {
  const auto found =
      std::ranges::find_if(rules(), [&](const Rule& rule) { return fits(rule, store, settings); });
  if (found == rules().end()) return std::nullopt;
  const std::optional<Expected>& expected = crash == Crash::kill ? found->kill : found->power;
  if (!expected) return std::nullopt;
  return Control{expected->most, expected->must_reach, std::string(found->source)};
}

Loss contract_of(const std::string& store, const Settings& settings_in_force,
                 DurabilityClass claimed, Crash crash) {
  const Loss allowed = allowed_loss(claimed, crash);
  const std::optional<Control> control = find_control(store, settings_in_force, crash);
  return control ? std::min(allowed, control->most) : allowed;
}

std::optional<std::uint64_t> bound_of_loss(const std::string& store, const Settings& settings) {
  const auto durability = settings.find("durability");
  const auto operations = settings.find("window_operations");
  if (store != "lode" || durability == settings.end() || durability->second != "window" ||
      operations == settings.end()) {
    return std::nullopt;
  }
  std::uint64_t most = 0;
  const std::string& text = operations->second;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), most);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return most;
}

std::vector<MatrixRow> matrix_rows() {
  std::vector<MatrixRow> rows;
  for (const Rule& rule : rules()) {
    if (rule.row.empty()) continue;
    MatrixRow row{std::string(rule.row), std::string(rule.store), {}};
    for (const auto& [name, value] : rule.settings)
      row.settings.emplace(std::string(name), std::string(value));
    rows.push_back(std::move(row));
  }
  return rows;
}

Settings small_scale(const std::string& store, const Settings& given) {
  Settings settings = given;
  const auto otherwise = [&](const char* name, const char* value) {
    settings.emplace(name, value);
  };
  if (store == "lode") otherwise("log_segment_bytes", "65536");
  // With writemap the file is as large as the map.
  const auto writemap = settings.find("writemap");
  if (store == "lmdb" && writemap != settings.end() && writemap->second == "on")
    otherwise("map_bytes", "4194304");
  if (store == "raw-file") {
    otherwise("segment_bytes", "65536");
    otherwise("prepare_bytes", "65536");
  }
  return settings;
}

}  // namespace assay::qualify
