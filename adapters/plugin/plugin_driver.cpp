#include "adapters/plugin/plugin_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

#include "adapters/plugin/crash_note.h"

namespace assay {
namespace {

// The ABI's values are written down twice; they must stay equal.
static_assert(static_cast<int>(DurabilityClass::power) == ASSAY_POWER);
static_assert(static_cast<int>(DurabilityClass::volatile_) == ASSAY_VOLATILE);
static_assert(static_cast<int>(KeyKind::u64) == ASSAY_KEY_U64);
static_assert(static_cast<int>(Mutation::Kind::erase) == ASSAY_ERASE);

constexpr std::array kClasses{DurabilityClass::volatile_, DurabilityClass::process,
                              DurabilityClass::power_prefix, DurabilityClass::power_last,
                              DurabilityClass::power};

/// What every object of one plug-in needs.
struct Plugin {
  assay_plugin table;
  std::string name;
  std::string path;
  std::string version;
  Capabilities capabilities;
};

assay_bytes bytes(std::string_view text) {
  return {text.data(), text.size()};
}

std::string_view view(assay_bytes given) {
  return given.size == 0 ? std::string_view()
                         : std::string_view(static_cast<const char*>(given.data), given.size);
}

/// What a plug-in says goes into records and onto terminals, whatever its bytes are.
std::string text_of(const char* text) {
  return text == nullptr ? std::string() : printable(text);
}

/// The error buffer of one object, and how a status becomes a Status.
class ErrorBuffer {
 public:
  assay_error* prepare() {
    error_.struct_size = sizeof(error_);
    error_.system_errno = 0;
    error_.message[0] = '\0';
    return &error_;
  }

  [[nodiscard]] Error error(const Plugin& plugin, const char* call, int status) {
    error_.message[sizeof(error_.message) - 1] = '\0';
    std::string message = error_.message;
    std::ranges::replace(message, '\n', ' ');
    message = printable(message);
    if (message.empty()) message = fmt::format("failed with status {} and no message", status);
    if (error_.system_errno != 0) {
      message += fmt::format(": {}", std::strerror(error_.system_errno));
    }
    return Error(kind_of(status), fmt::format("store {}: {}: {}", plugin.name, call, message));
  }

 private:
  static ErrorKind kind_of(int status) {
    switch (status) {
      case ASSAY_UNSUPPORTED:
        return ErrorKind::unsupported;
      case ASSAY_INVALID:
        return ErrorKind::bad_input;
      case ASSAY_NO_SPACE:
        return ErrorKind::environment;
      default:
        return ErrorKind::store;
    }
  }

  assay_error error_{};
};

/// Calls into the plug-in: marked for crash notes, and safe from exceptions of C++ plug-ins.
template <class Function>
Status call(const Plugin& plugin, const char* name, ErrorBuffer& buffer, Function&& function) {
  const CallMark mark(plugin.name.c_str(), name);
  try {
    const int status = function(buffer.prepare());
    if (status == ASSAY_OK) [[likely]]
      return {};
    return fail(buffer.error(plugin, name, status));
  } catch (const std::exception& thrown) {
    return fail(ErrorKind::store, fmt::format("store {}: {} let a C++ exception out: {}",
                                              plugin.name, name, printable(thrown.what())));
  } catch (...) {
    return fail(ErrorKind::store,
                fmt::format("store {}: {} let a C++ exception out", plugin.name, name));
  }
}

std::unexpected<Error> not_declared(const Plugin& plugin, const char* what) {
  return fail(ErrorKind::unsupported,
              fmt::format("store {} declares that it has no {}", plugin.name, what));
}

/// Hands the entries of a scan to the sink; what the sink throws must not cross the plug-in.
struct ScanRelay {
  ScanSink& sink;
  std::exception_ptr thrown;
  std::uint64_t visited = 0;

  static int entry(void* context, assay_bytes key, assay_bytes value) {
    auto& relay = *static_cast<ScanRelay*>(context);
    ++relay.visited;
    // The sink is the harness's code: a crash in it is not the store's.
    const CallMark mark(nullptr, nullptr);
    try {
      return relay.sink.entry(view(key), view(value)) ? 1 : 0;
    } catch (...) {
      relay.thrown = std::current_exception();
      return 0;
    }
  }
};

class PluginSession final : public Session {
 public:
  PluginSession(const Plugin& plugin, assay_session* session)
      : plugin_(plugin), session_(session) {}
  ~PluginSession() override {
    const CallMark mark(plugin_.name.c_str(), "session_close");
    plugin_.table.session_close(session_);
  }
  PluginSession(const PluginSession&) = delete;
  PluginSession& operator=(const PluginSession&) = delete;

  Result<bool> get(std::string_view key, std::string_view& value) override {
    assay_bytes found_value{nullptr, 0};
    int found = 0;
    ASSAY_TRY(call(plugin_, "get", error_, [&](assay_error* error) {
      return plugin_.table.get(session_, bytes(key), &found_value, &found, error);
    }));
    if (found == 0) return false;
    value = view(found_value);
    return true;
  }

  Status put(std::string_view key, std::string_view value) override {
    return call(plugin_, "put", error_, [&](assay_error* error) {
      return plugin_.table.put(session_, bytes(key), bytes(value), error);
    });
  }

  Status erase(std::string_view key) override {
    return call(plugin_, "erase", error_, [&](assay_error* error) {
      return plugin_.table.erase(session_, bytes(key), error);
    });
  }

  Status apply(std::span<const Mutation> mutations) override {
    if (!plugin_.capabilities.atomic_batches) return not_declared(plugin_, "atomic batches");
    const auto& converted = convert(mutations);
    return call(plugin_, "apply", error_, [&](assay_error* error) {
      return plugin_.table.apply(session_, converted.data(), converted.size(), error);
    });
  }

  Status rollback(std::span<const Mutation> mutations) override {
    if (!plugin_.capabilities.rollback) return not_declared(plugin_, "rollback");
    const auto& converted = convert(mutations);
    return call(plugin_, "rollback", error_, [&](assay_error* error) {
      return plugin_.table.rollback(session_, converted.data(), converted.size(), error);
    });
  }

  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    if (!plugin_.capabilities.ordered) return not_declared(plugin_, "order of keys, so no scan");
    assay_scan_range given{};
    given.struct_size = sizeof(given);
    given.from_start = range.from_start ? 1 : 0;
    given.to_end = range.to_end ? 1 : 0;
    given.backward = range.backward ? 1 : 0;
    given.first = bytes(range.first);
    given.last = bytes(range.last);
    given.limit = range.limit;
    ScanRelay relay{sink, nullptr};
    std::uint64_t visited = 0;
    const Status status = call(plugin_, "scan", error_, [&](assay_error* error) {
      return plugin_.table.scan(session_, &given, ScanRelay::entry, &relay, &visited, error);
    });
    if (relay.thrown) std::rethrow_exception(relay.thrown);
    if (!status) return std::unexpected(status.error());
    if (visited != relay.visited) {
      return fail(ErrorKind::store,
                  fmt::format("store {}: scan says it visited {} entries and visited {}",
                              plugin_.name, visited, relay.visited));
    }
    return visited;
  }

 private:
  /// The memory is kept for the next batch: no allocation in the measured path.
  const std::vector<assay_mutation>& convert(std::span<const Mutation> mutations) {
    converted_.clear();
    for (const Mutation& mutation : mutations) {
      converted_.push_back({static_cast<std::uint32_t>(mutation.kind), 0, bytes(mutation.key),
                            bytes(mutation.value)});
    }
    return converted_;
  }

  const Plugin& plugin_;
  assay_session* session_;
  ErrorBuffer error_;
  std::vector<assay_mutation> converted_;
};

class PluginStore final : public Store {
 public:
  PluginStore(const Plugin& plugin, std::string directory, assay_store* store)
      : Store(std::move(directory)), plugin_(plugin), store_(store) {}
  ~PluginStore() override {
    // Only a store that the caller gave up on is still open here; its error has no reader.
    if (store_ != nullptr) static_cast<void>(close());
  }
  PluginStore(const PluginStore&) = delete;
  PluginStore& operator=(const PluginStore&) = delete;

  Result<std::unique_ptr<Session>> session() override {
    prepare_thread_for_crash_notes();
    assay_session* session = nullptr;
    ErrorBuffer buffer;
    ASSAY_TRY(call(plugin_, "session_open", buffer, [&](assay_error* error) {
      return plugin_.table.session_open(store_, &session, error);
    }));
    if (session == nullptr) {
      return fail(ErrorKind::store,
                  fmt::format("store {}: session_open succeeded without a session", plugin_.name));
    }
    return std::make_unique<PluginSession>(plugin_, session);
  }

  Status sync() override { return plain("sync", plugin_.table.sync); }
  Status checkpoint() override { return plain("checkpoint", plugin_.table.checkpoint); }
  Status settle() override {
    if (plugin_.table.settle == nullptr) return {};  // it declares that nothing is ever pending
    return plain("settle", plugin_.table.settle);
  }

  Result<Footprint> footprint() const override {
    if (plugin_.table.footprint == nullptr) return Store::footprint();
    assay_footprint given{};
    given.struct_size = sizeof(given);
    ErrorBuffer buffer;
    ASSAY_TRY(call(plugin_, "footprint", buffer, [&](assay_error* error) {
      return plugin_.table.footprint(store_, &given, error);
    }));
    return Footprint{
        .files = given.files,
        .apparent_bytes = given.apparent_bytes,
        .allocated_bytes = given.allocated_bytes,
    };
  }

  std::map<std::string, double> counters() const override {
    std::map<std::string, double> all;
    if (plugin_.table.counters == nullptr) return all;
    const CallMark mark(plugin_.name.c_str(), "counters");
    plugin_.table.counters(
        store_,
        [](void* context, const char* name, double value) {
          (*static_cast<std::map<std::string, double>*>(context))[text_of(name)] = value;
        },
        &all);
    return all;
  }

  Result<Settings> effective_settings() override {
    Settings all;
    ErrorBuffer buffer;
    ASSAY_TRY(call(plugin_, "effective_settings", buffer, [&](assay_error* error) {
      return plugin_.table.effective_settings(
          store_,
          [](void* context, const char* name, const char* value) {
            (*static_cast<Settings*>(context))[text_of(name)] = text_of(value);
          },
          &all, error);
    }));
    return all;
  }

  Status close() override {
    assay_store* store = std::exchange(store_, nullptr);
    if (store == nullptr) return {};
    ErrorBuffer buffer;
    return call(plugin_, "close", buffer,
                [&](assay_error* error) { return plugin_.table.close(store, error); });
  }

 private:
  Status plain(const char* name, int (*function)(assay_store*, assay_error*)) {
    ErrorBuffer buffer;
    return call(plugin_, name, buffer, [&](assay_error* error) { return function(store_, error); });
  }

  const Plugin& plugin_;
  assay_store* store_;
};

class PluginDriver final : public Driver {
 public:
  explicit PluginDriver(Plugin plugin) : plugin_(std::move(plugin)) {}

  std::string name() const override { return plugin_.name; }
  std::string version() const override { return plugin_.version; }
  Capabilities capabilities() const override { return plugin_.capabilities; }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    std::vector<Setting> all;
    const CallMark mark(plugin_.name.c_str(), "settings");
    plugin_.table.settings(
        static_cast<std::uint32_t>(durability),
        [](void* context, const assay_setting* given) {
          Setting setting{.name = text_of(given->name),
                          .value = text_of(given->value),
                          .reason = text_of(given->reason),
                          .source = text_of(given->source),
                          .choices = {}};
          for (const char* const* choice = given->choices; choice != nullptr && *choice != nullptr;
               ++choice) {
            setting.choices.push_back(text_of(*choice));
          }
          static_cast<std::vector<Setting>*>(context)->push_back(std::move(setting));
        },
        &all);
    return all;
  }

  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const auto& claimed = plugin_.capabilities.durability;
    if (std::ranges::find(claimed, options.durability) == claimed.end()) {
      return fail(ErrorKind::unsupported, fmt::format("store {} does not claim durability class {}",
                                                      plugin_.name, to_string(options.durability)));
    }
    const Result<Settings> resolved = resolve_settings(*this, options.durability, options.settings);
    if (!resolved) return std::unexpected(resolved.error());
    std::vector<assay_name_value> pairs;
    for (const auto& [name, value] : *resolved) pairs.push_back({name.c_str(), value.c_str()});
    assay_open_options given{};
    given.struct_size = sizeof(given);
    given.durability = static_cast<std::uint32_t>(options.durability);
    given.key_kind = static_cast<std::uint32_t>(options.key_kind);
    given.create = options.create ? 1 : 0;
    given.directory = options.directory.c_str();
    given.settings = pairs.data();
    given.setting_count = pairs.size();
    given.memory_bytes = options.memory_bytes;
    given.expected_bytes = options.expected_bytes;
    prepare_thread_for_crash_notes();
    assay_store* store = nullptr;
    ErrorBuffer buffer;
    const Status status = call(plugin_, "open", buffer, [&](assay_error* error) {
      return plugin_.table.open(&given, &store, error);
    });
    if (!status) return fail(Error(status.error()).at(options.directory));
    if (store == nullptr) {
      return fail(ErrorKind::store,
                  fmt::format("store {}: open succeeded without a store", plugin_.name));
    }
    return std::make_unique<PluginStore>(plugin_, options.directory, store);
  }

 private:
  Plugin plugin_;
};

assay_capabilities ask_capabilities(const assay_plugin& table) {
  assay_capabilities given{};
  given.struct_size = sizeof(given);
  const CallMark mark(table.name, "capabilities");
  table.capabilities(&given);
  return given;
}

bool valid_name(const char* name) {
  if (name == nullptr) return false;
  const std::string_view text(name, ::strnlen(name, 33));
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  return !text.empty() && text.size() <= 32 && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || other(c); });
}

/// The first required function that is not there, or nullptr.
const char* missing_function(const assay_plugin& table) {
  const std::array<std::pair<bool, const char*>, 13> always{{
      {table.version != nullptr, "version"},
      {table.capabilities != nullptr, "capabilities"},
      {table.settings != nullptr, "settings"},
      {table.open != nullptr, "open"},
      {table.close != nullptr, "close"},
      {table.session_open != nullptr, "session_open"},
      {table.session_close != nullptr, "session_close"},
      {table.get != nullptr, "get"},
      {table.put != nullptr, "put"},
      {table.erase != nullptr, "erase"},
      {table.sync != nullptr, "sync"},
      {table.checkpoint != nullptr, "checkpoint"},
      {table.effective_settings != nullptr, "effective_settings"},
  }};
  for (const auto& [there, name] : always) {
    if (!there) return name;
  }
  const assay_capabilities declared = ask_capabilities(table);
  if (declared.atomic_batches != 0 && table.apply == nullptr) return "apply";
  if (declared.rollback != 0 && table.rollback == nullptr) return "rollback";
  if (declared.ordered != 0 && table.scan == nullptr) return "scan";
  return nullptr;
}

/// The first text of its settings that a terminal and JSON cannot take, or nothing. What is shown
/// instead would not be what the plug-in knows when it comes back as a setting.
std::string unusable_setting(const assay_plugin& table) {
  std::string found;
  const CallMark mark(table.name, "settings");
  for (const DurabilityClass durability : kClasses) {
    table.settings(
        static_cast<std::uint32_t>(durability),
        [](void* context, const assay_setting* given) {
          const auto look_at = [&](const char* text) {
            if (text != nullptr && printable(text) != text)
              *static_cast<std::string*>(context) = printable(text);
          };
          look_at(given->name);
          look_at(given->value);
          for (const char* const* choice = given->choices; choice != nullptr && *choice != nullptr;
               ++choice) {
            look_at(*choice);
          }
        },
        &found);
  }
  return found;
}

bool has_version(const assay_plugin& table) {
  const CallMark mark(table.name, "version");
  return table.version() != nullptr;
}

}  // namespace

Result<assay_plugin> check_table(const assay_plugin& given, const std::string& path) {
  const auto refuse = [&](std::string why, std::string hint) {
    return fail(Error(ErrorKind::bad_input, std::move(why)).at(path).hint(std::move(hint)));
  };
  if (given.abi_version != ASSAY_PLUGIN_ABI) {
    return refuse(fmt::format("the plug-in speaks plug-in ABI {}, this assay speaks {}",
                              given.abi_version, ASSAY_PLUGIN_ABI),
                  "rebuild it against this assay's adapters/plugin.h");
  }
  if (given.struct_size < offsetof(assay_plugin, version)) {
    return refuse(fmt::format("the plug-in's table says it is {} bytes long", given.struct_size),
                  "set struct_size to sizeof(assay_plugin)");
  }
  assay_plugin table{};  // what a shorter table does not have stays NULL
  std::memcpy(&table, &given, std::min<std::size_t>(given.struct_size, sizeof(table)));
  if (!valid_name(table.name)) {
    const std::string shown =
        table.name == nullptr
            ? "NULL"
            : fmt::format("\"{}\"", printable({table.name, ::strnlen(table.name, 40)}));
    return refuse(fmt::format("the plug-in's name {} is not usable", shown),
                  "use a-z, 0-9, '-' and '_', starting with a letter, at most 32 characters");
  }
  if (const char* missing = missing_function(table); missing != nullptr) {
    return refuse(fmt::format("plug-in {} lacks the function {}", table.name, missing),
                  "adapters/plugin.h says which functions are required");
  }
  if (!has_version(table)) {
    return refuse(fmt::format("version() of plug-in {} returned NULL", table.name),
                  "every result is recorded with the version that gave it: return a text");
  }
  if (const std::string text = unusable_setting(table); !text.empty()) {
    return refuse(fmt::format("a setting of plug-in {} is not printable: \"{}\"", table.name, text),
                  "names, values and choices are UTF-8 without control characters");
  }
  return table;
}

std::unique_ptr<const Driver> make_plugin_driver(const assay_plugin& table, std::string path) {
  const assay_capabilities given = ask_capabilities(table);
  Plugin plugin{.table = table,
                .name = table.name,
                .path = std::move(path),
                .version = {},
                .capabilities = {}};
  const CallMark mark(table.name, "version");
  plugin.version = text_of(table.version());
  Capabilities& capabilities = plugin.capabilities;
  capabilities.ordered = given.ordered != 0;
  capabilities.rollback = given.rollback != 0;
  capabilities.atomic_batches = given.atomic_batches != 0;
  capabilities.concurrent_writers = given.concurrent_writers != 0;
  capabilities.larger_than_memory = given.larger_than_memory != 0;
  for (const DurabilityClass durability : kClasses) {
    if ((given.durability >> static_cast<unsigned>(durability) & 1u) != 0) {
      capabilities.durability.push_back(durability);
    }
  }
  capabilities.min_key_bytes = given.min_key_bytes;
  capabilities.max_key_bytes = given.max_key_bytes;
  capabilities.max_value_bytes = given.max_value_bytes;
  return std::make_unique<PluginDriver>(std::move(plugin));
}

}  // namespace assay
