#include "harness/qualify/controls.h"

#include <initializer_list>
#include <string_view>
#include <utility>

namespace assay::qualify {
namespace {

bool holds(const Settings& settings,
           std::initializer_list<std::pair<std::string_view, std::string_view>> wanted) {
  for (const auto& [name, value] : wanted) {
    const auto found = settings.find(std::string(name));
    if (found == settings.end() || found->second != value) return false;
  }
  return true;
}

std::optional<Control> after_kill(const std::string& store, const Settings& settings) {
  if (store == "sqlite") {
    const std::string source = "sqlite.org/pragma.html#pragma_journal_mode";
    if (holds(settings, {{"journal_mode", "memory"}}) || holds(settings, {{"journal_mode", "off"}}))
      return Control{Loss::unopenable, Loss::torn, source};
    return Control{Loss::intact, std::nullopt, source};
  }
  if (store == "rocksdb") {
    const std::string source = "github.com/facebook/rocksdb wiki, WAL Performance";
    if (holds(settings, {{"wal", "off"}}) || holds(settings, {{"manual_wal_flush", "on"}}))
      return Control{Loss::suffix, Loss::suffix, source};
    return Control{Loss::intact, std::nullopt, source};
  }
  if (store == "lmdb") return Control{Loss::intact, std::nullopt, "lmdb.h, mdb_env_open"};
  return std::nullopt;
}

}  // namespace

std::optional<Control> find_control(const std::string& store, const Settings& settings,
                                    Crash crash) {
  if (crash == Crash::kill) return after_kill(store, settings);
  return std::nullopt;
}

}  // namespace assay::qualify
