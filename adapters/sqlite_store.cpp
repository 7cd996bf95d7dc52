#include "adapters/sqlite_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <mutex>

#include "adapters/opening.h"
#include "adapters/sqlite_connection.h"
#include "adapters/sqlite_settings.h"
#include "adapters/sqlite_tables.h"
#include "adapters/table_store.h"

namespace assay {
namespace {

constexpr std::string_view kName = "sqlite";
constexpr int kCounted = 4;
constexpr std::array<std::pair<int, const char*>, kCounted> kCounters{{
    {SQLITE_DBSTATUS_CACHE_HIT, "cache_hit"},
    {SQLITE_DBSTATUS_CACHE_MISS, "cache_miss"},
    {SQLITE_DBSTATUS_CACHE_WRITE, "cache_write"},
    {SQLITE_DBSTATUS_CACHE_SPILL, "cache_spill"},
}};

/// The table and the statements over it; they differ by the kind of key only.
struct Schema {
  bool u64 = false;
  std::string create;

  static Schema of(KeyKind kind, const std::string& bytes_table) {
    if (kind == KeyKind::u64) {
      return {.u64 = true, .create = "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB NOT NULL)"};
    }
    std::string create = "CREATE TABLE kv(k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL)";
    if (bytes_table == "without_rowid") create += " WITHOUT ROWID";
    return {.u64 = false, .create = std::move(create)};
  }
};

// INTEGER PRIMARY KEY is signed. Flipping the top bit keeps the unsigned order.
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

sqlite3_int64 integer_key(std::string_view key) {
  std::uint64_t big = 0;
  std::memcpy(&big, key.data(), sizeof big);
  return static_cast<sqlite3_int64>(__builtin_bswap64(big) ^ kSignBit);
}

class SqliteStore;

class SqliteSession final : public Session {
 public:
  SqliteSession(SqliteStore& store, std::shared_ptr<SqliteConnection> connection);
  ~SqliteSession() override;
  [[nodiscard]] Status prepare();

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  int bind_key(sqlite3_stmt* statement, int index, std::string_view key) const;
  Status write(sqlite3_stmt* statement, std::string_view key, const std::string_view* value);
  Status step_once(const SqliteStatement& statement, std::string_view what);
  Status mutate(std::span<const Mutation> mutations);
  void abandon();
  std::unique_lock<std::mutex> writer_turn();
  Result<sqlite3_stmt*> scan_statement(const ScanRange& range);

  SqliteStore& store_;
  const EntryLimits& limits_;
  const bool u64_;
  std::shared_ptr<SqliteConnection> connection_;
  SqliteStatement get_, put_, erase_, begin_, commit_, rollback_;
  std::array<SqliteStatement, 4> scans_;
  std::string value_;
};

class SqliteStore final : public Store, public TableStore {
 public:
  SqliteStore(const OpenOptions& options, SqlitePragmas pragmas, Schema schema, bool queue_writers,
              const Capabilities& capabilities)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        pragmas_(std::move(pragmas)),
        schema_(std::move(schema)),
        queue_writers_(queue_writers) {}

  [[nodiscard]] Status open(bool create, bool durable_directory);
  Result<std::unique_ptr<Session>> session() override;
  TableStore* tables() override { return this; }
  Result<std::unique_ptr<TableSession>> table_session() override;
  Status sync() override;
  Status checkpoint() override;
  Status settle() override { return {}; }
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  friend class SqliteSession;
  [[nodiscard]] std::string path() const {
    return fmt::format("{}/{}", directory_, main_file(kName));
  }
  [[nodiscard]] bool exclusive() const { return pragmas_.locking_mode == "exclusive"; }
  Result<std::shared_ptr<SqliteConnection>> connect(bool create) const;
  Result<std::shared_ptr<SqliteConnection>> connect_session();
  Status check_schema(bool create);

  const EntryLimits limits_;
  const SqlitePragmas pragmas_;
  const Schema schema_;
  const bool queue_writers_;
  std::mutex writers_;            // one writer at a time; see the setting `writers`
  mutable std::mutex own_mutex_;  // guards own_ against the store's methods in several threads
  std::shared_ptr<SqliteConnection> own_;
  std::atomic<int> sessions_{0};
  std::array<std::atomic<std::uint64_t>, kCounted> counted_{};
};

// ---- session ----

SqliteSession::SqliteSession(SqliteStore& store, std::shared_ptr<SqliteConnection> connection)
    : store_(store),
      limits_(store.limits_),
      u64_(store.schema_.u64),
      connection_(std::move(connection)) {
  store_.sessions_.fetch_add(1);
}

SqliteSession::~SqliteSession() {
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    int now = 0;
    int peak = 0;
    sqlite3_db_status(connection_->handle(), kCounters[i].first, &now, &peak, 0);
    store_.counted_[i].fetch_add(static_cast<std::uint64_t>(now));
  }
  store_.sessions_.fetch_sub(1);
}

Status SqliteSession::prepare() {
  const auto into = [this](SqliteStatement& statement, const char* sql) -> Status {
    Result<SqliteStatement> prepared = connection_->prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    statement = std::move(*prepared);
    return {};
  };
  ASSAY_TRY(into(get_, "SELECT v FROM kv WHERE k=?1"));
  // REPLACE overwrites the row in place: the table has one key, no index and no trigger.
  ASSAY_TRY(into(put_, "REPLACE INTO kv(k,v) VALUES(?1,?2)"));
  ASSAY_TRY(into(erase_, "DELETE FROM kv WHERE k=?1"));
  ASSAY_TRY(into(begin_, "BEGIN IMMEDIATE"));
  ASSAY_TRY(into(commit_, "COMMIT"));
  return into(rollback_, "ROLLBACK");
}

int SqliteSession::bind_key(sqlite3_stmt* statement, int index, std::string_view key) const {
  if (u64_) return sqlite3_bind_int64(statement, index, integer_key(key));
  // A null pointer would bind NULL, and an empty key is not that.
  const char* data = key.empty() ? "" : key.data();
  return sqlite3_bind_blob64(statement, index, data, key.size(), SQLITE_STATIC);
}

Result<bool> SqliteSession::get(std::string_view key, std::string_view& value) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  sqlite3_stmt* const statement = get_.get();
  if (bind_key(statement, 1, key) != SQLITE_OK) return fail(connection_->error("get"));
  const int code = sqlite3_step(statement);
  bool found = false;
  if (code == SQLITE_ROW) {
    // Copied out, so that the read transaction ends here: an open one would hold back every
    // checkpoint until this session's next call.
    const void* data = sqlite3_column_blob(statement, 0);
    const int size = sqlite3_column_bytes(statement, 0);
    value_.assign(size == 0 ? "" : static_cast<const char*>(data), static_cast<std::size_t>(size));
    value = value_;
    found = true;
  }
  if (sqlite3_reset(statement) != SQLITE_OK || (code != SQLITE_ROW && code != SQLITE_DONE)) {
    return fail(connection_->error("get"));
  }
  return found;
}

std::unique_lock<std::mutex> SqliteSession::writer_turn() {
  return store_.queue_writers_ ? std::unique_lock(store_.writers_) : std::unique_lock<std::mutex>();
}

Status SqliteSession::write(sqlite3_stmt* statement, std::string_view key,
                            const std::string_view* value) {
  const std::string_view checked = value == nullptr ? std::string_view() : *value;
  if (!limits_.accepts(key, checked)) return fail(limits_.refusal(key, checked));
  if (bind_key(statement, 1, key) != SQLITE_OK) return fail(connection_->error("write"));
  if (value != nullptr) {
    const char* data = value->empty() ? "" : value->data();
    if (sqlite3_bind_blob64(statement, 2, data, value->size(), SQLITE_STATIC) != SQLITE_OK) {
      return fail(connection_->error("write"));
    }
  }
  const int stepped = sqlite3_step(statement);
  if (sqlite3_reset(statement) != SQLITE_OK || stepped != SQLITE_DONE) {
    return fail(connection_->error("write"));
  }
  return {};
}

Status SqliteSession::put(std::string_view key, std::string_view value) {
  const auto turn = writer_turn();
  return write(put_.get(), key, &value);
}

Status SqliteSession::erase(std::string_view key) {
  const auto turn = writer_turn();
  return write(erase_.get(), key, nullptr);
}

Status SqliteSession::step_once(const SqliteStatement& statement, std::string_view what) {
  const int stepped = sqlite3_step(statement.get());
  if (sqlite3_reset(statement.get()) != SQLITE_OK || stepped != SQLITE_DONE) {
    return fail(connection_->error(what));
  }
  return {};
}

// Some errors (a full disk) roll back by themselves; then there is nothing to roll back.
void SqliteSession::abandon() {
  if (sqlite3_get_autocommit(connection_->handle()) != 0) return;
  sqlite3_step(rollback_.get());
  sqlite3_reset(rollback_.get());
}

Status SqliteSession::mutate(std::span<const Mutation> mutations) {
  for (const Mutation& mutation : mutations) {
    ASSAY_TRY(mutation.kind == Mutation::Kind::put
                  ? write(put_.get(), mutation.key, &mutation.value)
                  : write(erase_.get(), mutation.key, nullptr));
  }
  return {};
}

Status SqliteSession::apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return {};
  const auto turn = writer_turn();
  ASSAY_TRY(step_once(begin_, "begin"));
  Status status = mutate(mutations);
  if (status) status = step_once(commit_, "commit");
  if (!status) abandon();
  return status;
}

Status SqliteSession::rollback(std::span<const Mutation> mutations) {
  const auto turn = writer_turn();
  ASSAY_TRY(step_once(begin_, "begin"));
  Status status = mutate(mutations);
  if (!status) {
    abandon();
    return status;
  }
  return step_once(rollback_, "rollback");
}

Result<sqlite3_stmt*> SqliteSession::scan_statement(const ScanRange& range) {
  SqliteStatement& statement = scans_[(range.backward ? 1U : 0U) + (range.to_end ? 2U : 0U)];
  if (statement == nullptr) {
    Result<SqliteStatement> prepared = connection_->prepare(
        fmt::format("SELECT k,v FROM kv WHERE k>=?1{} ORDER BY k{} LIMIT ?3",
                    range.to_end ? "" : " AND k<=?2", range.backward ? " DESC" : ""));
    if (!prepared) return std::unexpected(prepared.error());
    statement = std::move(*prepared);
  }
  // The lowest key stands for "no lower bound": the empty blob, or the least integer.
  int code = SQLITE_OK;
  if (!range.from_start) {
    code = bind_key(statement.get(), 1, range.first);
  } else if (u64_) {
    code = sqlite3_bind_int64(statement.get(), 1, std::numeric_limits<sqlite3_int64>::min());
  } else {
    code = sqlite3_bind_zeroblob(statement.get(), 1, 0);
  }
  if (code == SQLITE_OK && !range.to_end) code = bind_key(statement.get(), 2, range.last);
  const auto limit = static_cast<sqlite3_int64>(
      std::min<std::uint64_t>(range.limit, std::numeric_limits<sqlite3_int64>::max()));
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement.get(), 3, limit == 0 ? -1 : limit);
  if (code != SQLITE_OK) return fail(connection_->error("scan"));
  return statement.get();
}

Result<std::uint64_t> SqliteSession::scan(const ScanRange& range, ScanSink& sink) {
  if (!range.from_start && !limits_.accepts(range.first))
    return fail(limits_.refusal(range.first, {}));
  if (!range.to_end && !limits_.accepts(range.last)) return fail(limits_.refusal(range.last, {}));
  const Result<sqlite3_stmt*> prepared = scan_statement(range);
  if (!prepared) return std::unexpected(prepared.error());
  sqlite3_stmt* const statement = *prepared;
  std::uint64_t visited = 0;
  int code = SQLITE_ROW;
  bool go_on = true;
  while (go_on && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    std::array<char, 8> number;
    std::string_view key;
    if (u64_) {
      const auto stored = static_cast<std::uint64_t>(sqlite3_column_int64(statement, 0));
      const std::uint64_t big = __builtin_bswap64(stored ^ kSignBit);
      std::memcpy(number.data(), &big, sizeof big);
      key = {number.data(), number.size()};
    } else {
      const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, 0));
      key = {data == nullptr ? "" : data,
             static_cast<std::size_t>(sqlite3_column_bytes(statement, 0))};
    }
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, 1));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, 1));
    ++visited;
    go_on = sink.entry(key, {data == nullptr ? "" : data, size});
  }
  if (sqlite3_reset(statement) != SQLITE_OK || (code != SQLITE_ROW && code != SQLITE_DONE)) {
    return fail(connection_->error("scan"));
  }
  return visited;
}

// ---- store ----

Result<std::shared_ptr<SqliteConnection>> SqliteStore::connect(bool create) const {
  Result<std::unique_ptr<SqliteConnection>> opened =
      SqliteConnection::open({.path = path(),
                              .create = create,
                              .shared = exclusive(),
                              .busy_timeout_ms = pragmas_.busy_timeout_ms});
  if (!opened) return std::unexpected(opened.error());
  ASSAY_TRY(sqlite_configure(**opened, pragmas_));
  return std::shared_ptr<SqliteConnection>(std::move(*opened));
}

Status SqliteStore::check_schema(bool create) {
  const Result<std::string> found = own_->text("SELECT sql FROM sqlite_master WHERE name='kv'");
  if (!found) return std::unexpected(found.error());
  if (found->empty()) {
    // A store that died between its file and its table is empty, and is made anew.
    if (!create)
      return fail(Error(ErrorKind::bad_input, "the database has no table \"kv\"").at(path()));
    return own_->run(schema_.create);
  }
  if (*found != schema_.create) {
    return fail(
        Error(ErrorKind::bad_input, "the database was made for another kind of key or table")
            .at(path())
            .hint(fmt::format("its table is: {}", *found)));
  }
  const Result<std::string> page_size = own_->text("PRAGMA page_size");
  if (!page_size) return std::unexpected(page_size.error());
  if (*page_size != std::to_string(pragmas_.page_size)) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("the database was made with page_size {}", *page_size))
                    .at(path())
                    .hint("a page size is fixed when the store is created"));
  }
  return {};
}

Status SqliteStore::open(bool create, bool durable_directory) {
  Result<std::shared_ptr<SqliteConnection>> connection = connect(create);
  if (!connection) return std::unexpected(connection.error());
  own_ = std::move(*connection);
  ASSAY_TRY(check_schema(create));
  return create && durable_directory ? sync_new_directory(directory_) : Status{};
}

/// A connection for one more session, or the store's own where there can be no other.
Result<std::shared_ptr<SqliteConnection>> SqliteStore::connect_session() {
  if (!exclusive()) return connect(false);
  if (sessions_.load() == 0) return own_;
  return fail(Error(ErrorKind::unsupported, "sqlite: one session only with locking_mode exclusive")
                  .at(path())
                  .hint("use locking_mode normal for several sessions"));
}

Result<std::unique_ptr<Session>> SqliteStore::session() {
  Result<std::shared_ptr<SqliteConnection>> connection = connect_session();
  if (!connection) return std::unexpected(connection.error());
  auto session = std::make_unique<SqliteSession>(*this, std::move(*connection));
  ASSAY_TRY(session->prepare());
  return session;
}

Result<std::unique_ptr<TableSession>> SqliteStore::table_session() {
  Result<std::shared_ptr<SqliteConnection>> connection = connect_session();
  if (!connection) return std::unexpected(connection.error());
  ASSAY_TRY(sqlite_spill_into(**connection, directory_));
  sessions_.fetch_add(1);
  return sqlite_tables(std::move(*connection), queue_writers_ ? &writers_ : nullptr,
                       [this] { sessions_.fetch_sub(1); });
}

Status SqliteStore::sync() {
  const std::unique_lock turn(writers_);
  const std::scoped_lock lock(own_mutex_);
  ASSAY_TRY(own_->sync_files());
  return sync_directory(directory_);
}

Status SqliteStore::checkpoint() {
  if (pragmas_.journal_mode != "wal") return {};  // without a log the main structure has it all
  const std::unique_lock turn(writers_);
  const std::scoped_lock lock(own_mutex_);
  if (sqlite3_wal_checkpoint_v2(own_->handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr) != SQLITE_OK) {
    return fail(own_->error("checkpoint"));
  }
  return {};
}

std::map<std::string, double> SqliteStore::counters() const {
  std::map<std::string, double> counters;
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    counters[kCounters[i].second] = static_cast<double>(counted_[i].load());
  }
  struct stat log{};
  if (::stat((path() + "-wal").c_str(), &log) == 0) {
    counters["wal_bytes"] = static_cast<double>(log.st_size);
  }
  const std::scoped_lock lock(own_mutex_);
  if (own_ == nullptr) return counters;
  for (const char* name : {"page_count", "freelist_count"}) {
    const Result<std::string> value = own_->text(fmt::format("PRAGMA {}", name));
    std::uint64_t number = 0;
    if (!value) continue;
    if (std::from_chars(value->data(), value->data() + value->size(), number).ec != std::errc())
      continue;
    counters[name] = static_cast<double>(number);
  }
  return counters;
}

Result<Settings> SqliteStore::effective_settings() {
  const std::scoped_lock lock(own_mutex_);
  Result<Settings> settings = sqlite_effective_settings(*own_);
  if (settings) (*settings)["writers"] = queue_writers_ ? "queue" : "busy_handler";
  return settings;
}

Status SqliteStore::close() {
  if (own_ == nullptr) return {};
  if (sessions_.load() != 0)
    return fail(Error(ErrorKind::store, "sqlite: closed while sessions are open").at(path()));
  const std::scoped_lock lock(own_mutex_);
  // The last connection moves the log into the database and removes it.
  ASSAY_TRY(own_->close());
  own_.reset();
  return {};
}

// ---- driver ----

class SqliteDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override { return sqlite3_libversion(); }

  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.larger_than_memory = true;
    can.tables = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    // SQLITE_LIMIT_LENGTH is 10^9 bytes for a row; the rest is left for the key and the header.
    can.max_key_bytes = 1'000'000;
    can.max_value_bytes = 998'000'000;
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    return sqlite_settings(durability);
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return sqlite_durability(effective);
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;
  Status check_settings(const OpenOptions& options, std::uint32_t sessions) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    const Result<SqlitePragmas> pragmas = sqlite_pragmas(*settings, options);
    if (!pragmas) return std::unexpected(pragmas.error());
    if (pragmas->locking_mode != "exclusive") return {};
    return require_reach(kName, "locking_mode", pragmas->locking_mode, 1, sessions);
  }
};

Result<std::unique_ptr<Store>> SqliteDriver::open(const OpenOptions& options) const {
  const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  Result<SqlitePragmas> pragmas = sqlite_pragmas(*settings, options);
  if (!pragmas) return std::unexpected(pragmas.error());
  const Result<bool> there = find_store(kName, options);
  if (!there) return std::unexpected(there.error());
  auto store = std::make_unique<SqliteStore>(
      options, std::move(*pragmas), Schema::of(options.key_kind, settings->at("bytes_table")),
      settings->at("writers") == "queue", capabilities());
  ASSAY_TRY(store->open(options.create, survives_power_loss(options.durability)));
  return store;
}

}  // namespace

const Driver& sqlite_driver() {
  static const SqliteDriver driver;
  return driver;
}

}  // namespace assay
