#include "adapters/lmdb_store.h"

#include <fmt/format.h>
#include <lmdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "adapters/lmdb_map_gate.h"
#include "adapters/lmdb_settings.h"
#include "adapters/lmdb_values.h"
#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::string_view kName = "lmdb";
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::chrono::seconds kGrowPatience{60};

class LmdbStore;

class LmdbSession final : public Session {
 public:
  explicit LmdbSession(LmdbStore& store);
  ~LmdbSession() override;

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  Status begin_read();
  void end_read();
  void drop_view();
  Status write(std::span<const Mutation> mutations, bool commit);
  int write_once(std::span<const Mutation> mutations, bool commit);
  int position(MDB_cursor* cursor, const ScanRange& range, MDB_val& key, MDB_val& value) const;
  [[nodiscard]] bool inside(const ScanRange& range, std::string_view key) const;

  LmdbStore& store_;
  const EntryLimits& limits_;
  LmdbMapGate::Slot slot_;
  MDB_txn* read_ = nullptr;  // reset between reads, so that it keeps its reader's slot
  MDB_cursor* cursor_ = nullptr;
  bool view_held_ = false;  // the caller may be looking into the map: inside the gate
  std::string value_;
};

class LmdbStore final : public Store {
 public:
  LmdbStore(const OpenOptions& options, const LmdbPlan& plan, const Capabilities& capabilities)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        u64_(options.key_kind == KeyKind::u64),
        plan_(plan) {}
  ~LmdbStore() override {
    if (env_ != nullptr) mdb_env_close(env_);
  }

  [[nodiscard]] Status open(bool fresh, bool durable_directory);
  Result<std::unique_ptr<Session>> session() override;
  Status sync() override;
  Status checkpoint() override { return {}; }  // there is no log
  Status settle() override { return {}; }
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  friend class LmdbSession;
  Status open_table(bool fresh);
  /// Makes the map bigger than it was when a transaction found it full, or as big as another
  /// process has made it.
  Status grow(std::uint64_t seen_bytes);
  Status adopt_size();
  [[nodiscard]] std::uint64_t map_bytes() const {
    MDB_envinfo info{};
    mdb_env_info(env_, &info);
    return info.me_mapsize;
  }

  const EntryLimits limits_;
  const bool u64_;
  const LmdbPlan plan_;
  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
  mutable LmdbMapGate gate_;
  std::atomic<int> sessions_{0};
  std::atomic<std::uint64_t> growths_{0};
};

// ---- session ----

LmdbSession::LmdbSession(LmdbStore& store)
    : store_(store), limits_(store.limits_), slot_(store.gate_) {
  store_.sessions_.fetch_add(1);
}

LmdbSession::~LmdbSession() {
  drop_view();
  slot_.enter();
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  if (read_ != nullptr) mdb_txn_abort(read_);
  slot_.leave();
  store_.sessions_.fetch_sub(1);
}

void LmdbSession::drop_view() {
  if (!view_held_) return;
  view_held_ = false;
  end_read();
}

Status LmdbSession::begin_read() {
  drop_view();
  for (;;) {
    slot_.enter();
    const int code = read_ == nullptr ? mdb_txn_begin(store_.env_, nullptr, MDB_RDONLY, &read_)
                                      : mdb_txn_renew(read_);
    if (code == MDB_SUCCESS) return {};
    slot_.leave();
    if (code != MDB_MAP_RESIZED) return fail(lmdb_error("begin a read", code, store_.directory_));
    ASSAY_TRY(store_.adopt_size());
  }
}

void LmdbSession::end_read() {
  mdb_txn_reset(read_);
  slot_.leave();
}

// One byte of every page, so that no page fault is left for the caller.
void touch_pages(std::string_view value) {
  for (std::size_t at = 0; at < value.size(); at += kPageBytes) {
    static_cast<void>(*static_cast<const volatile char*>(value.data() + at));
  }
  static_cast<void>(*static_cast<const volatile char*>(value.data() + value.size() - 1));
}

Result<bool> LmdbSession::get(std::string_view key, std::string_view& value) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  ASSAY_TRY(begin_read());
  StoredKey stored(key, store_.u64_);
  MDB_val found{};
  const int code = mdb_get(read_, store_.table_, stored.get(), &found);
  if (code != MDB_SUCCESS) {
    end_read();
    if (code == MDB_NOTFOUND) return false;
    return fail(lmdb_error("get", code, store_.directory_));
  }
  if (found.mv_size < store_.plan_.zero_copy_bytes || found.mv_size == 0) {
    // Copying a small value costs less than holding a snapshot until the next call, which would
    // keep every page freed meanwhile from being used again.
    value_.assign(static_cast<const char*>(found.mv_data), found.mv_size);
    value = value_;
    end_read();
  } else {
    value = text_of(found);
    touch_pages(value);
    view_held_ = true;
  }
  return true;
}

int LmdbSession::write_once(std::span<const Mutation> mutations, bool commit) {
  MDB_txn* transaction = nullptr;
  int code = mdb_txn_begin(store_.env_, nullptr, 0, &transaction);
  if (code != MDB_SUCCESS) return code;
  code = lmdb_apply(transaction, store_.table_, mutations, store_.u64_, store_.plan_.append);
  if (code != MDB_SUCCESS || !commit) {
    mdb_txn_abort(transaction);
    return code;
  }
  return mdb_txn_commit(transaction);  // frees the transaction in any case
}

Status LmdbSession::write(std::span<const Mutation> mutations, bool commit) {
  for (const Mutation& mutation : mutations) {
    if (!limits_.accepts(mutation.key, mutation.value)) {
      return fail(limits_.refusal(mutation.key, mutation.value));
    }
  }
  drop_view();
  for (;;) {
    slot_.enter();
    const std::uint64_t seen_bytes = store_.map_bytes();
    const int code = write_once(mutations, commit);
    slot_.leave();
    if (code == MDB_SUCCESS) return {};
    if (code == MDB_MAP_FULL) {
      ASSAY_TRY(store_.grow(seen_bytes));
    } else if (code == MDB_MAP_RESIZED) {
      ASSAY_TRY(store_.adopt_size());
    } else {
      return fail(lmdb_error(commit ? "commit" : "rollback", code, store_.directory_));
    }
  }
}

Status LmdbSession::put(std::string_view key, std::string_view value) {
  const Mutation mutation{Mutation::Kind::put, key, value};
  return write({&mutation, 1}, true);
}

Status LmdbSession::erase(std::string_view key) {
  const Mutation mutation{Mutation::Kind::erase, key, {}};
  return write({&mutation, 1}, true);
}

Status LmdbSession::apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return {};
  return write(mutations, true);
}

Status LmdbSession::rollback(std::span<const Mutation> mutations) {
  return write(mutations, false);
}

int LmdbSession::position(MDB_cursor* cursor, const ScanRange& range, MDB_val& key,
                          MDB_val& value) const {
  const bool u64 = store_.u64_;
  if (!range.backward) {
    if (range.from_start) return mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    StoredKey first(range.first, u64);
    key = *first.get();
    return mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  }
  if (range.to_end) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  StoredKey last(range.last, u64);
  key = *last.get();
  const int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  if (code == MDB_NOTFOUND) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  if (code != MDB_SUCCESS || compare_key(key, range.last, u64) == 0) return code;
  return mdb_cursor_get(cursor, &key, &value, MDB_PREV);
}

Result<std::uint64_t> LmdbSession::scan(const ScanRange& range, ScanSink& sink) {
  const bool u64 = store_.u64_;
  // An empty bound is below every key; LMDB itself does not take it.
  ScanRange bounds = range;
  if (!u64 && bounds.first.empty()) bounds.from_start = true;
  if (!u64 && !bounds.to_end && bounds.last.empty()) return std::uint64_t{0};
  if (!bounds.from_start && !limits_.accepts(bounds.first))
    return fail(limits_.refusal(bounds.first, {}));
  if (!bounds.to_end && !limits_.accepts(bounds.last))
    return fail(limits_.refusal(bounds.last, {}));
  ASSAY_TRY(begin_read());
  int code = cursor_ == nullptr ? mdb_cursor_open(read_, store_.table_, &cursor_)
                                : mdb_cursor_renew(read_, cursor_);
  MDB_val key{};
  MDB_val value{};
  std::uint64_t visited = 0;
  if (code == MDB_SUCCESS) code = position(cursor_, bounds, key, value);
  while (code == MDB_SUCCESS) {
    const bool beyond = bounds.backward
                            ? !bounds.from_start && compare_key(key, bounds.first, u64) < 0
                            : !bounds.to_end && compare_key(key, bounds.last, u64) > 0;
    if (beyond) break;
    std::array<char, 8> big;
    std::string_view shown = text_of(key);
    if (u64) {
      std::uint64_t number = 0;
      std::memcpy(&number, key.mv_data, sizeof number);
      number = __builtin_bswap64(number);
      std::memcpy(big.data(), &number, sizeof number);
      shown = {big.data(), big.size()};
    }
    ++visited;
    if (!sink.entry(shown, text_of(value)) || visited == bounds.limit) break;
    code = mdb_cursor_get(cursor_, &key, &value, bounds.backward ? MDB_PREV : MDB_NEXT);
  }
  end_read();
  if (code != MDB_SUCCESS && code != MDB_NOTFOUND) {
    return fail(lmdb_error("scan", code, store_.directory_));
  }
  return visited;
}

// ---- store ----

Status LmdbStore::open(bool fresh, bool durable_directory) {
  int code = mdb_env_create(&env_);
  if (code != MDB_SUCCESS) return fail(lmdb_error("create an environment", code, directory_));
  code = mdb_env_set_maxreaders(env_, static_cast<unsigned>(plan_.readers));
  if (code == MDB_SUCCESS) code = mdb_env_set_mapsize(env_, plan_.map_bytes);
  if (code != MDB_SUCCESS) return fail(lmdb_error("set up the environment", code, directory_));
  code = mdb_env_open(env_, directory_.c_str(), plan_.flags, 0644);
  if (code != MDB_SUCCESS) return fail(lmdb_error("open the environment", code, directory_));
  int dead = 0;
  mdb_reader_check(env_, &dead);  // frees the slots of killed processes, which would pin old pages
  ASSAY_TRY(open_table(fresh));
  // LMDB never syncs its directory, so without this the whole store may be lost with the power.
  return fresh && durable_directory ? sync_new_directory(directory_) : Status{};
}

// The flags of the unnamed table are kept in the file, but opening it with others would silently
// change them, and with them the order of the keys. So they are looked at first.
Status LmdbStore::open_table(bool fresh) {
  const unsigned wanted = u64_ ? MDB_INTEGERKEY : 0U;
  MDB_txn* transaction = nullptr;
  int code = mdb_txn_begin(env_, nullptr, 0, &transaction);
  if (code != MDB_SUCCESS) return fail(lmdb_error("begin", code, directory_));
  unsigned flags = 0;
  MDB_stat stat{};
  code = mdb_dbi_open(transaction, nullptr, 0, &table_);
  if (code == MDB_SUCCESS) code = mdb_dbi_flags(transaction, table_, &flags);
  if (code == MDB_SUCCESS) code = mdb_stat(transaction, table_, &stat);
  if (code == MDB_SUCCESS && flags != wanted) {
    if (!fresh && stat.ms_entries != 0) {
      mdb_txn_abort(transaction);
      return fail(Error(ErrorKind::bad_input, "LMDB: the store was made for another kind of key")
                      .at(directory_)
                      .hint(fmt::format("it holds {} keys", u64_ ? "bytes" : "u64")));
    }
    code = mdb_dbi_open(transaction, nullptr, wanted, &table_);
  }
  if (code != MDB_SUCCESS) {
    mdb_txn_abort(transaction);
    return fail(lmdb_error("open the table", code, directory_));
  }
  code = mdb_txn_commit(transaction);
  if (code != MDB_SUCCESS) return fail(lmdb_error("create the table", code, directory_));
  return {};
}

Status LmdbStore::grow(std::uint64_t seen_bytes) {
  int code = MDB_SUCCESS;
  const bool changed = gate_.exclusively(kGrowPatience, [&] {
    if (map_bytes() > seen_bytes) return;  // another session has grown it meanwhile
    code = mdb_env_set_mapsize(env_, seen_bytes * 2);
    if (code == MDB_SUCCESS) growths_.fetch_add(1);
  });
  if (code != MDB_SUCCESS) return fail(lmdb_error("grow the map", code, directory_));
  if (!changed) {
    return fail(Error(ErrorKind::store,
                      "LMDB: the map is full and cannot grow while a session holds a view")
                    .at(directory_)
                    .hint("set map_bytes higher, or zero_copy_bytes so that values are copied"));
  }
  return {};
}

Status LmdbStore::adopt_size() {
  int code = MDB_SUCCESS;
  const bool changed =
      gate_.exclusively(kGrowPatience, [&] { code = mdb_env_set_mapsize(env_, 0); });
  if (code != MDB_SUCCESS || !changed)
    return fail(lmdb_error("adopt the map's new size", code, directory_));
  return {};
}

Result<std::unique_ptr<Session>> LmdbStore::session() {
  return std::make_unique<LmdbSession>(*this);
}

Status LmdbStore::sync() {
  const int code = mdb_env_sync(env_, 1);
  if (code != MDB_SUCCESS) return fail(lmdb_error("sync", code, directory_));
  return sync_new_directory(directory_);
}

std::map<std::string, double> LmdbStore::counters() const {
  std::map<std::string, double> counters;
  if (env_ == nullptr) return counters;
  LmdbMapGate::Slot slot(gate_);
  slot.enter();
  MDB_stat stat{};
  MDB_envinfo info{};
  mdb_env_stat(env_, &stat);
  mdb_env_info(env_, &info);
  slot.leave();
  const auto set = [&counters](const char* name, auto value) {
    counters[name] = static_cast<double>(value);
  };
  set("ms_depth", stat.ms_depth);
  set("ms_branch_pages", stat.ms_branch_pages);
  set("ms_leaf_pages", stat.ms_leaf_pages);
  set("ms_overflow_pages", stat.ms_overflow_pages);
  set("ms_entries", stat.ms_entries);
  set("me_mapsize", info.me_mapsize);
  set("me_last_pgno", info.me_last_pgno);
  set("me_last_txnid", info.me_last_txnid);
  set("me_numreaders", info.me_numreaders);
  set("map_growths", growths_.load());
  return counters;
}

Result<Settings> LmdbStore::effective_settings() {
  unsigned flags = 0;
  unsigned readers = 0;
  MDB_stat stat{};
  mdb_env_get_flags(env_, &flags);
  mdb_env_get_maxreaders(env_, &readers);
  LmdbMapGate::Slot slot(gate_);
  slot.enter();
  mdb_env_stat(env_, &stat);
  const std::uint64_t bytes = map_bytes();
  slot.leave();
  const auto on = [flags](unsigned flag) {
    return std::string((flags & flag) != 0 ? "on" : "off");
  };
  Settings settings;
  settings["sync"] = (flags & MDB_NOSYNC) != 0       ? "nosync"
                     : (flags & MDB_NOMETASYNC) != 0 ? "nometasync"
                                                     : "full";
  settings["writemap"] = on(MDB_WRITEMAP);
  settings["mapasync"] = on(MDB_MAPASYNC);
  settings["read_ahead"] = (flags & MDB_NORDAHEAD) != 0 ? "off" : "on";
  settings["meminit"] = (flags & MDB_NOMEMINIT) != 0 ? "off" : "on";
  settings["append"] = plan_.append ? "auto" : "off";  // no flag of the environment: the adapter's
  settings["notls"] = on(MDB_NOTLS);
  settings["map_bytes"] = std::to_string(bytes);
  settings["max_readers"] = std::to_string(readers);
  settings["max_key_bytes"] = std::to_string(mdb_env_get_maxkeysize(env_));
  settings["page_bytes"] = std::to_string(stat.ms_psize);
  settings["zero_copy_bytes"] = std::to_string(plan_.zero_copy_bytes);
  settings["flags"] = fmt::format("0x{:x}", flags);
  return settings;
}

Status LmdbStore::close() {
  if (env_ == nullptr) return {};
  if (sessions_.load() != 0)
    return fail(Error(ErrorKind::store, "lmdb: closed while sessions are open").at(directory_));
  mdb_env_close(env_);
  env_ = nullptr;
  return {};
}

// ---- driver ----

class LmdbDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override {
    int major = 0;
    int minor = 0;
    int patch = 0;
    mdb_version(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
  }

  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.larger_than_memory = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    can.min_key_bytes = 1;
    can.max_key_bytes = 511;             // MDB_MAXKEYSIZE of the packaged build
    can.max_value_bytes = 0xffff'ffffU;  // MAXDATASIZE of a table without duplicates
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    return lmdb_settings(durability);
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return lmdb_durability(effective);
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;
  Status check_settings(const OpenOptions& options, std::uint32_t sessions) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    const Result<LmdbPlan> plan = lmdb_plan(*settings, options);
    if (!plan) return std::unexpected(plan.error());
    return require_reach(kName, "max_readers", settings->at("max_readers"), plan->readers,
                         sessions);
  }
};

Result<std::unique_ptr<Store>> LmdbDriver::open(const OpenOptions& options) const {
  const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  const Result<LmdbPlan> plan = lmdb_plan(*settings, options);
  if (!plan) return std::unexpected(plan.error());
  const Result<bool> there = find_store(kName, options);
  if (!there) return std::unexpected(there.error());
  auto store = std::make_unique<LmdbStore>(options, *plan, capabilities());
  ASSAY_TRY(store->open(!*there, survives_power_loss(options.durability)));
  return store;
}

}  // namespace

const Driver& lmdb_driver() {
  static const LmdbDriver driver;
  return driver;
}

}  // namespace assay
