// A small honest store for the plug-ins that the tests load: a sorted map and a log of commits.
//
// toy_table<Behaviour>() makes the function table of a plug-in. The Behaviour of a plug-in adds its
// vice:
//   static constexpr const char* name;
//   static constexpr std::array<Choice, N> settings;     its settings, the first value is the
//   default explicit Behaviour(const Values&);                    the values it was opened with
//   void before(const char* call);                        at the start of every call
//   std::size_t commits_to_forget();                      of the log, from its end, when opening
//   void opened(Entries&);                                after the log has been read
//   void order(std::vector<Entry>&);                      what a scan is going to show
// Threads: one mutex a store; a scan works on a copy.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/plugin.h"

namespace toy {

using Entries = std::map<std::string, std::string, std::less<>>;
using Entry = std::pair<std::string, std::string>;
using Values = std::map<std::string, std::string>;

/// A setting of a toy: its name, its default, and its choices (none: any number).
struct Choice {
  const char* name;
  const char* value;
  const char* const* choices;
};

struct Change {
  std::uint32_t kind;
  std::string key;
  std::string value;
};
using Commit = std::vector<Change>;

inline std::string_view view(assay_bytes given) {
  return given.size == 0 ? std::string_view()
                         : std::string_view(static_cast<const char*>(given.data), given.size);
}
inline assay_bytes bytes(std::string_view text) {
  return {text.data(), text.size()};
}

inline int failed(assay_error* error, const char* what) {
  error->system_errno = errno;
  std::snprintf(error->message, sizeof(error->message), "cannot %s", what);
  return ASSAY_FAILED;
}

inline void add_number(std::string& to, std::size_t number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// A commit on disk: its length, then kind, sizes, key and value of each change.
inline std::string encode(const Commit& commit) {
  std::string body;
  for (const Change& change : commit) {
    add_number(body, change.kind);
    add_number(body, change.key.size());
    add_number(body, change.value.size());
    body += change.key;
    body += change.value;
  }
  std::string record;
  add_number(record, body.size());
  return record + body;
}

inline bool take_number(std::string_view& from, std::size_t& number) {
  if (from.size() < sizeof(number)) return false;
  std::memcpy(&number, from.data(), sizeof(number));
  from.remove_prefix(sizeof(number));
  return true;
}

/// The commits of a log up to the first that is not whole.
inline std::vector<Commit> decode(std::string_view log) {
  std::vector<Commit> commits;
  for (std::size_t size = 0; take_number(log, size) && log.size() >= size;
       log.remove_prefix(size)) {
    std::string_view body = log.substr(0, size);
    Commit commit;
    for (std::size_t kind = 0, key = 0, value = 0; take_number(body, kind);) {
      take_number(body, key);
      take_number(body, value);
      commit.push_back({static_cast<std::uint32_t>(kind), std::string(body.substr(0, key)),
                        std::string(body.substr(key, value))});
      body.remove_prefix(key + value);
    }
    commits.push_back(std::move(commit));
  }
  return commits;
}

inline void make(Entries& entries, const Commit& commit) {
  for (const Change& change : commit) {
    if (change.kind == ASSAY_PUT) entries[change.key] = change.value;
    if (change.kind == ASSAY_ERASE) entries.erase(change.key);
  }
}

inline std::string read_all(int file) {
  std::string all;
  std::array<char, 65536> buffer;
  for (ssize_t count; (count = ::read(file, buffer.data(), buffer.size())) > 0;) {
    all.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return all;
}

}  // namespace toy

/// The types that plugin.h leaves to the plug-in; the behaviour is a global of each plug-in.
struct assay_store {
  toy::Entries entries;
  toy::Values values;
  std::mutex mutex;
  int log = -1;
  bool sync_commits = false;
};
struct assay_session {
  assay_store* store;
  std::string value;
};

namespace toy {

template <class Behaviour>
struct Toy {
  static Behaviour& behaviour() {
    static Behaviour one{Values{}};
    return one;
  }

  static const char* version() { return "0.1"; }

  static void capabilities(assay_capabilities* out) {
    out->ordered = out->rollback = out->atomic_batches = 1;
    out->durability = 1u << ASSAY_VOLATILE | 1u << ASSAY_PROCESS | 1u << ASSAY_POWER;
    out->max_key_bytes = 1u << 30;
    out->max_value_bytes = 1u << 30;
  }

  static void settings(std::uint32_t, assay_setting_sink sink, void* context) {
    for (const Choice& choice : Behaviour::settings) {
      const assay_setting setting{sizeof(setting),       0,
                                  choice.name,           choice.value,
                                  "the tests choose it", "adapters/plugin/testdata",
                                  choice.choices};
      sink(context, &setting);
    }
  }

  static int open(const assay_open_options* options, assay_store** out, assay_error* error) {
    auto* store = new assay_store;
    for (std::size_t i = 0; i < options->setting_count; ++i) {
      store->values[options->settings[i].name] = options->settings[i].value;
    }
    behaviour() = Behaviour(store->values);
    behaviour().before("open");
    const std::string path = std::string(options->directory) + "/log";
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | (options->create != 0 ? O_CREAT : 0);
    store->log = ::open(path.c_str(), flags, 0644);
    if (store->log < 0) {
      delete store;
      return failed(error, "open the log");
    }
    store->sync_commits = options->durability >= ASSAY_POWER_PREFIX;
    std::vector<Commit> commits = decode(read_all(store->log));
    for (std::size_t n = behaviour().commits_to_forget(); n > 0 && !commits.empty(); --n) {
      commits.pop_back();
    }
    std::size_t kept_bytes = 0;
    for (const Commit& commit : commits) {
      make(store->entries, commit);
      kept_bytes += encode(commit).size();
    }
    if (::ftruncate(store->log, static_cast<off_t>(kept_bytes)) != 0) {
      const int status = failed(error, "cut the log");
      ::close(store->log);
      delete store;
      return status;
    }
    behaviour().opened(store->entries);
    *out = store;
    return ASSAY_OK;
  }

  static int close(assay_store* store, assay_error*) {
    behaviour().before("close");
    ::close(store->log);
    delete store;
    return ASSAY_OK;
  }

  static int session_open(assay_store* store, assay_session** out, assay_error*) {
    *out = new assay_session{store, {}};
    return ASSAY_OK;
  }
  static void session_close(assay_session* session) { delete session; }

  static int get(assay_session* session, assay_bytes key, assay_bytes* value, int* found,
                 assay_error*) {
    behaviour().before("get");
    const std::lock_guard lock(session->store->mutex);
    const auto entry = session->store->entries.find(view(key));
    *found = entry != session->store->entries.end() ? 1 : 0;
    if (*found != 0) session->value = entry->second;
    *value = bytes(session->value);
    return ASSAY_OK;
  }

  static int commit(assay_session* session, const Commit& changes, assay_error* error) {
    assay_store& store = *session->store;
    const std::string record = encode(changes);
    const std::lock_guard lock(store.mutex);
    if (::write(store.log, record.data(), record.size()) != static_cast<ssize_t>(record.size()) ||
        (store.sync_commits && ::fdatasync(store.log) != 0)) {
      return failed(error, "write the log");
    }
    make(store.entries, changes);
    return ASSAY_OK;
  }

  static int put(assay_session* session, assay_bytes key, assay_bytes value, assay_error* error) {
    behaviour().before("put");
    return commit(session, {{ASSAY_PUT, std::string(view(key)), std::string(view(value))}}, error);
  }
  static int erase(assay_session* session, assay_bytes key, assay_error* error) {
    behaviour().before("erase");
    return commit(session, {{ASSAY_ERASE, std::string(view(key)), {}}}, error);
  }
  static int apply(assay_session* session, const assay_mutation* mutations, std::size_t count,
                   assay_error* error) {
    behaviour().before("apply");
    Commit changes;
    for (std::size_t i = 0; i < count; ++i) {
      changes.push_back({mutations[i].kind, std::string(view(mutations[i].key)),
                         std::string(view(mutations[i].value))});
    }
    return commit(session, changes, error);
  }
  static int rollback(assay_session*, const assay_mutation*, std::size_t, assay_error*) {
    behaviour().before("rollback");
    return ASSAY_OK;  // nothing is made before it is written: there is nothing to undo
  }

  static int scan(assay_session* session, const assay_scan_range* range, assay_entry_sink sink,
                  void* context, std::uint64_t* visited, assay_error*) {
    behaviour().before("scan");
    std::vector<Entry> shown;
    {
      const std::lock_guard lock(session->store->mutex);
      for (const auto& [key, value] : session->store->entries) {
        if (range->from_start == 0 && key < view(range->first)) continue;
        if (range->to_end == 0 && key > view(range->last)) continue;
        shown.emplace_back(key, value);
      }
    }
    if (range->backward != 0) shown = {shown.rbegin(), shown.rend()};
    if (range->limit != 0 && shown.size() > range->limit) shown.resize(range->limit);
    behaviour().order(shown);
    *visited = 0;
    for (const auto& [key, value] : shown) {
      ++*visited;
      if (sink(context, bytes(key), bytes(value)) == 0) break;
    }
    return ASSAY_OK;
  }

  static int sync(assay_store* store, assay_error* error) {
    return ::fdatasync(store->log) == 0 ? ASSAY_OK : failed(error, "sync the log");
  }
  static int checkpoint(assay_store* store, assay_error* error) { return sync(store, error); }

  static int effective_settings(assay_store* store, assay_name_value_sink sink, void* context,
                                assay_error*) {
    for (const auto& [name, value] : store->values) sink(context, name.c_str(), value.c_str());
    return ASSAY_OK;
  }

  static int footprint(assay_store* store, assay_footprint* out, assay_error* error) {
    struct stat info{};
    if (::fstat(store->log, &info) != 0) return failed(error, "stat the log");
    out->files = 1;
    out->apparent_bytes = static_cast<std::uint64_t>(info.st_size);
    out->allocated_bytes = static_cast<std::uint64_t>(info.st_blocks) * 512;
    return ASSAY_OK;
  }

  static void counters(assay_store* store, assay_counter_sink sink, void* context) {
    const std::lock_guard lock(store->mutex);
    sink(context, "toy.entries", static_cast<double>(store->entries.size()));
  }
};

template <class Behaviour>
assay_plugin toy_table() {
  using T = Toy<Behaviour>;
  return {sizeof(assay_plugin),
          ASSAY_PLUGIN_ABI,
          Behaviour::name,
          T::version,
          T::capabilities,
          T::settings,
          T::open,
          T::close,
          T::session_open,
          T::session_close,
          T::get,
          T::put,
          T::erase,
          T::apply,
          T::rollback,
          T::scan,
          T::sync,
          T::checkpoint,
          /*settle=*/nullptr,
          T::counters,
          T::effective_settings,
          T::footprint};
}

}  // namespace toy
