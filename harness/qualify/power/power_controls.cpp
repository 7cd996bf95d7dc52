#include "harness/qualify/power/power_controls.h"

#include <algorithm>
#include <cctype>

namespace assay::qualify::power {
namespace {

std::string value_of(const Settings& settings, const char* name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return {};
  std::string value = found->second;
  std::ranges::transform(value, value.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return value;
}

std::optional<Control> sqlite(const Settings& settings) {
  const std::string source = "sqlite.org/pragma.html, journal_mode and synchronous";
  const std::string journal = value_of(settings, "journal_mode");
  const std::string synchronous = value_of(settings, "synchronous");
  if (journal == "memory" || journal == "off") {
    return Control{Loss::unopenable, std::nullopt, source};
  }
  if (synchronous == "off") return Control{Loss::unopenable, Loss::suffix, source};
  if (journal == "wal" && synchronous == "normal") {
    return Control{Loss::suffix, Loss::suffix, source};
  }
  // The commit is the unlink of the journal, and nothing makes that durable.
  if (journal == "delete" && synchronous == "full") return Control{Loss::last, Loss::last, source};
  if (synchronous == "full" || synchronous == "extra") {
    return Control{Loss::intact, std::nullopt, source};
  }
  return std::nullopt;
}

std::optional<Control> lmdb(const Settings& settings) {
  const std::string source = "lmdb.h 0.9.24, mdb_env_open";
  const bool mapasync =
      value_of(settings, "writemap") == "on" && value_of(settings, "mapasync") == "on";
  if (value_of(settings, "sync") == "nosync" || mapasync) {
    return Control{Loss::unopenable, Loss::suffix, source};
  }
  if (value_of(settings, "sync") == "nometasync") return Control{Loss::last, Loss::last, source};
  return Control{Loss::intact, std::nullopt, source};
}

std::optional<Control> rocksdb(const Settings& settings) {
  const std::string source = "github.com/facebook/rocksdb wiki, WAL Performance";
  const bool buffered =
      value_of(settings, "wal") == "off" || value_of(settings, "manual_wal_flush") == "on";
  if (value_of(settings, "sync") == "off" || buffered) {
    return Control{Loss::suffix, Loss::suffix, source};
  }
  if (value_of(settings, "wal_recovery_mode") != "point_in_time") return std::nullopt;
  return Control{Loss::intact, std::nullopt, source};
}

}  // namespace

std::optional<Control> power_control(const std::string& store, const Settings& settings) {
  if (store == "sqlite") return sqlite(settings);
  if (store == "lmdb") return lmdb(settings);
  if (store == "rocksdb") return rocksdb(settings);
  return std::nullopt;
}

Settings small_scale(const std::string& store, const Settings& given) {
  Settings settings = given;
  if (store == "lode") settings.emplace("log_segment_bytes", "65536");
  if (store == "raw-file") {
    settings.emplace("segment_bytes", "65536");
    settings.emplace("prepare_bytes", "65536");
  }
  return settings;
}

}  // namespace assay::qualify::power
