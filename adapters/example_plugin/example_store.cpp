// A complete store behind plugin.h: a sorted map in memory, and a log that it is read back from.
// A commit is one record of the log: hash, size, changes. Opening replays the records up to the
// first that is not whole, which a crash can leave at the end only, and cuts it off.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "plugin.h"

struct assay_store {
  ~assay_store() { ::close(log); }
  std::map<std::string, std::string, std::less<>> entries;
  std::shared_mutex mutex;    // readers share it, a writer is alone: a scan sees one snapshot
  int log = -1;               // closed for good after a failed write: its end is unknown then
  bool sync_commits = false;  // the setting "sync"
};
struct assay_session {
  assay_store* store;
  std::string value;  // what the last get handed out
};

namespace {
const char* const kSyncChoices[] = {"commit", "never", nullptr};
const std::hash<std::string_view> hash_of;  // good enough for an example

std::string_view view(assay_bytes b) { return {static_cast<const char*>(b.data), b.size}; }
assay_bytes bytes(std::string_view s) { return {s.data(), s.size()}; }
int failed(assay_error* error, const char* what) {
  error->system_errno = errno;
  std::snprintf(error->message, sizeof error->message, "cannot %s", what);
  return errno == ENOSPC ? ASSAY_NO_SPACE : ASSAY_FAILED;
}
void replay(assay_store& s, std::string_view body) {
  for (std::size_t change[3]; !body.empty(); body.remove_prefix(change[1] + change[2])) {
    std::memcpy(change, body.data(), sizeof change);  // kind, size of key, size of value
    body.remove_prefix(sizeof change);
    const std::string key(body.substr(0, change[1]));
    if (change[0] == ASSAY_PUT) s.entries[key] = body.substr(change[1], change[2]);
    if (change[0] == ASSAY_ERASE) s.entries.erase(key);
  }
}
int open(const assay_open_options* o, assay_store** out, assay_error* error) {
  auto* s = *out = new assay_store;
  s->sync_commits = std::strcmp(o->settings[0].value, "commit") == 0;  // the only one
  const int directory = ::open(o->directory, O_RDONLY);
  s->log = ::openat(directory, "log", O_WRONLY | O_APPEND | (o->create ? O_CREAT : 0), 0644);
  std::ifstream file(std::string(o->directory) + "/log", std::ios::binary);
  const std::string all(std::istreambuf_iterator<char>(file), {});
  std::size_t end = 0;
  for (std::size_t head[2]; all.size() - end >= sizeof head; end += sizeof head + head[1]) {
    std::memcpy(head, all.data() + end, sizeof head);
    const auto body = std::string_view(all).substr(end + sizeof head, head[1]);
    if (body.size() < head[1] || hash_of(body) != head[0]) break;
    replay(*s, body);
  }
  const bool good = s->log >= 0 && ::lseek(s->log, 0, SEEK_END) == off_t(all.size()) &&
                    ::ftruncate(s->log, off_t(end)) == 0 && ::fdatasync(s->log) == 0 &&
                    ::fsync(directory) == 0;  // the name of the log is durable as well
  if (!good) return failed(error, "open the log"), delete s, ::close(directory), ASSAY_FAILED;
  return ::close(directory), ASSAY_OK;
}
int apply(assay_session* session, const assay_mutation* m, std::size_t count, assay_error* error) {
  assay_store& s = *session->store;
  std::size_t head[2] = {};
  std::string log(sizeof head, '\0');
  for (const assay_mutation* end = m + count; m != end; ++m) {
    const std::size_t change[] = {m->kind, m->key.size, m->value.size};
    log.append(reinterpret_cast<const char*>(change), sizeof change);
    log.append(view(m->key)).append(view(m->value));
  }
  const std::string_view body = std::string_view(log).substr(sizeof head);
  head[0] = hash_of(body), head[1] = body.size();
  std::memcpy(log.data(), head, sizeof head);
  const std::lock_guard lock(s.mutex);
  if (::write(s.log, log.data(), log.size()) != ssize_t(log.size()) ||
      (s.sync_commits && ::fdatasync(s.log) != 0)) {
    ::close(std::exchange(s.log, -1));
    return failed(error, "write the log");
  }
  return replay(s, body), ASSAY_OK;
}
int get(assay_session* s, assay_bytes key, assay_bytes* value, int* found, assay_error*) {
  const std::shared_lock lock(s->store->mutex);
  const auto entry = s->store->entries.find(view(key));
  if ((*found = entry != s->store->entries.end())) *value = bytes(s->value = entry->second);
  return ASSAY_OK;
}
int scan(assay_session* session, const assay_scan_range* r, assay_entry_sink sink, void* context,
         std::uint64_t* visited, assay_error*) {
  const std::shared_lock lock(session->store->mutex);
  const auto& all = session->store->entries;
  auto low = r->from_start ? all.begin() : all.lower_bound(view(r->first));
  auto high = r->to_end ? all.end() : all.upper_bound(view(r->last));
  if (!r->from_start && !r->to_end && view(r->first) > view(r->last)) high = low;
  for (bool more = true; more && low != high && (r->limit == 0 || *visited < r->limit);) {
    const auto& [key, value] = r->backward ? *--high : *low++;
    more = sink(context, bytes(key), bytes(value)) != 0;
    ++*visited;
  }
  return ASSAY_OK;
}
int put(assay_session* s, assay_bytes key, assay_bytes value, assay_error* error) {
  const assay_mutation m{ASSAY_PUT, 0, key, value};
  return apply(s, &m, 1, error);
}
int erase(assay_session* s, assay_bytes key, assay_error* error) {
  const assay_mutation m{ASSAY_ERASE, 0, key, {}};
  return apply(s, &m, 1, error);
}
int sync(assay_store* s, assay_error* e) { return ::fdatasync(s->log) ? failed(e, "sync") : 0; }
void capabilities(assay_capabilities* c) {  // no rollback, one writer at a time, all in memory
  c->ordered = c->atomic_batches = 1;
  c->durability = 1u << ASSAY_PROCESS | 1u << ASSAY_POWER;
  c->max_key_bytes = c->max_value_bytes = 1u << 30;
}
void settings(std::uint32_t durability, assay_setting_sink sink, void* context) {
  const char* value = kSyncChoices[durability == ASSAY_POWER ? 0 : 1];
  const assay_setting s{sizeof s, 0, "sync", value, "when fdatasync runs", "README", kSyncChoices};
  sink(context, &s);
}
const char* version() { return "1.0"; }
int close(assay_store* s, assay_error*) { return delete s, ASSAY_OK; }
void end_session(assay_session* s) { delete s; }
int session(assay_store* s, assay_session** out, assay_error*) {
  return *out = new assay_session{s, {}}, ASSAY_OK;
}
int effective(assay_store* s, assay_name_value_sink sink, void* context, assay_error*) {
  return sink(context, "sync", kSyncChoices[s->sync_commits ? 0 : 1]), ASSAY_OK;
}
// clang-format off
const assay_plugin kTable{
    sizeof(assay_plugin), ASSAY_PLUGIN_ABI, "example", version, capabilities, settings,
    open, close, session, end_session, get, put, erase, apply, /*rollback*/ nullptr, scan,
    sync, /*checkpoint: the log is all there is*/ sync, /*settle*/ nullptr, /*counters*/ nullptr,
    effective, /*footprint*/ nullptr};
}  // namespace

const assay_plugin* assay_plugin_entry(std::uint32_t) { return &kTable; }
