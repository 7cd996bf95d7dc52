#include "adapters/registry.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/lmdb_store.h"
#include "adapters/null_store.h"
#include "adapters/raw_file_store.h"
#include "adapters/rewrite_store.h"
#include "adapters/served/served_store.h"
#include "adapters/sqlite_store.h"
#include "adapters/store_modules.h"
#ifdef ASSAY_HAS_LODE
#include "adapters/lode_store.h"
#endif
#ifdef ASSAY_HAS_PLUGINS
#include "adapters/plugin/plugin_loader.h"
#endif

namespace assay {
namespace {

struct CompiledIn {
  std::string_view name;
  Result<const Driver*> (*driver)();
  bool own_process = false;
};

template <const Driver& (*driver)()>
Result<const Driver*> linked_in() {
  return &driver();
}

// A store is one line here. Reference arms come last: they stand beside the others.
constexpr CompiledIn kStores[] = {
    {"sqlite", &linked_in<sqlite_driver>},
    {"rocksdb", &load_rocksdb_driver},
    {"lmdb", &linked_in<lmdb_driver>},
#ifdef ASSAY_HAS_LODE
    {"lode", &linked_in<lode_driver>},
#endif
#ifdef ASSAY_HAS_POSTGRESQL
    {"postgresql", &load_postgresql_driver, true},
#endif
    {"rewrite", &linked_in<rewrite_driver>},
    {"raw-file", &linked_in<raw_file_driver>},
    {"null", &linked_in<null_driver>},
};

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".so");
}

}  // namespace

std::vector<std::string> store_names() {
  std::vector<std::string> names;
  for (const CompiledIn& store : kStores) names.emplace_back(store.name);
  return names;
}

Result<const Driver*> find_driver(std::string_view name_or_path) {
  if (name_or_path == "served") return find_driver("served-lode");
  if (name_or_path.starts_with(kServedPrefix)) {
    const std::string_view of = name_or_path.substr(kServedPrefix.size());
    const Result<const Driver*> behind = find_driver(of);
    if (!behind) return behind;
    return &served_driver(of, **behind);
  }
  if (is_path(name_or_path)) {
#ifdef ASSAY_HAS_PLUGINS
    return load_plugin(std::string(name_or_path));
#else
    return fail(Error(ErrorKind::unsupported, "this build cannot load plug-ins")
                    .at(std::string(name_or_path)));
#endif
  }
  for (const CompiledIn& store : kStores) {
    if (store.name == name_or_path) return store.driver();
  }
  const std::vector<std::string> names = store_names();
  const std::string near = nearest_name(name_or_path, names);
  const std::string valid =
      fmt::format("valid: {}, or the path of a plug-in", fmt::join(names, ", "));
  return fail(
      Error(ErrorKind::bad_input, fmt::format("unknown store \"{}\"", name_or_path))
          .hint(near.empty() ? valid : fmt::format("did you mean \"{}\"? {}", near, valid)));
}

bool works_elsewhere(const Driver& driver) {
  if (is_served(driver)) return true;
  const std::string name = driver.name();
  return std::ranges::any_of(kStores, [&name](const CompiledIn& store) {
    return store.own_process && store.name == name;
  });
}

Status validate_settings(std::string_view name_or_path, DurabilityClass durability,
                         const Settings& given, std::uint32_t sessions) {
  const Result<const Driver*> driver = find_driver(name_or_path);
  if (!driver) return std::unexpected(driver.error());
  OpenOptions options;
  options.durability = durability;
  options.settings = given;
  return (*driver)->check_settings(options, sessions);
}

}  // namespace assay
