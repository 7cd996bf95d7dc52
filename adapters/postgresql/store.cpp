// The Store and the Driver of PostgreSQL, and the entry of the shared object that they stand in.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>
#include <type_traits>

#include "adapters/opening.h"
#include "adapters/postgresql/connection.h"
#include "adapters/postgresql/server.h"
#include "adapters/postgresql/session.h"
#include "adapters/postgresql/settings.h"
#include "adapters/postgresql/tables.h"
#include "adapters/store_modules.h"
#include "adapters/table_store.h"

namespace assay::postgresql {
namespace {

/// Numbers of the server, each a query that gives one.
constexpr std::array<std::pair<const char*, const char*>, 12> kCounters{{
    {"wal_records", "SELECT wal_records FROM pg_stat_wal"},
    {"wal_bytes", "SELECT wal_bytes FROM pg_stat_wal"},
    {"wal_fpi", "SELECT wal_fpi FROM pg_stat_wal"},
    {"wal_write", "SELECT wal_write FROM pg_stat_wal"},
    {"wal_sync", "SELECT wal_sync FROM pg_stat_wal"},
    {"checkpoints_timed", "SELECT checkpoints_timed FROM pg_stat_bgwriter"},
    {"checkpoints_req", "SELECT checkpoints_req FROM pg_stat_bgwriter"},
    {"buffers_checkpoint", "SELECT buffers_checkpoint FROM pg_stat_bgwriter"},
    {"buffers_backend", "SELECT buffers_backend FROM pg_stat_bgwriter"},
    {"database_bytes", "SELECT pg_database_size(current_database())"},
    {"relation_bytes",
     "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' AND "
     "relnamespace = 'public'::regnamespace"},
    {"wal_directory_bytes", "SELECT coalesce(sum(size), 0) FROM pg_ls_waldir()"},
}};

class PostgresqlStore final : public Store, public TableStore {
 public:
  PostgresqlStore(const OpenOptions& options, Plan plan, const Capabilities& capabilities)
      : Store(options.directory),
        limits_(kName, capabilities, options.key_kind),
        u64_(options.key_kind == KeyKind::u64),
        durable_(survives_power_loss(options.durability)),
        plan_(std::move(plan)) {}

  [[nodiscard]] Status open(bool there, bool create);
  Result<std::unique_ptr<Session>> session() override;
  TableStore* tables() override { return this; }
  Result<std::unique_ptr<TableSession>> table_session() override;
  Status sync() override;
  Status checkpoint() override;
  Status settle() override;
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  Status check_table(bool create, bool& made);
  Result<std::unique_ptr<Connection>> connect() const;
  Status sync_files();

  const EntryLimits limits_;
  const bool u64_;
  const bool durable_;
  const Plan plan_;
  std::unique_ptr<Server> server_;
  mutable std::mutex own_mutex_;  // guards own_ against the store's methods in several threads
  std::unique_ptr<Connection> own_;
  std::atomic<int> sessions_{0};
};

// A server that died between cluster and table left an empty store, whose table is made now.
Status PostgresqlStore::check_table(bool create, bool& made) {
  const Result<std::string> found = own_->text(
      "SELECT format_type(atttypid, null) FROM pg_attribute WHERE attrelid = "
      "to_regclass('kv') AND attname = 'k'");
  if (!found) return std::unexpected(found.error());
  const std::string key = u64_ ? "bigint" : "bytea";
  made = found->empty();
  if (made) {
    if (!create) return fail(Error(ErrorKind::bad_input, "the database has no table \"kv\""));
    return own_->command(
        fmt::format("BEGIN; CREATE TABLE kv (k {} PRIMARY KEY, v bytea NOT NULL); "
                    "ALTER TABLE kv ALTER v SET STORAGE {}; COMMIT",
                    key, plan_.value_storage));
  }
  if (*found == key) return {};
  return fail(Error(ErrorKind::bad_input, "the database was made for another kind of key")
                  .hint(fmt::format("its keys are of type {}", *found)));
}

// syncfs and not a sync of each of the thousand files that a new cluster has.
Status PostgresqlStore::sync_files() {
  const std::scoped_lock lock(own_mutex_);
  ASSAY_TRY(own_->command("CHECKPOINT"));
  if (::syncfs(server_->directory_handle()) != 0)
    return fail(system_error("cannot sync the file system of a store", errno).at(directory_));
  return {};
}

Status PostgresqlStore::open(bool there, bool create) {
  const Result<std::string> programs = find_programs(plan_.programs);
  if (!programs) return std::unexpected(programs.error());
  if (!there) ASSAY_TRY(make_cluster(*programs, directory_));
  Result<std::unique_ptr<Server>> server = Server::start(*programs, directory_, plan_.options);
  if (!server) return std::unexpected(server.error());
  server_ = std::move(*server);
  Result<std::unique_ptr<Connection>> own = Connection::open(server_->socket_folder());
  if (!own) return std::unexpected(own.error());
  own_ = std::move(*own);
  bool made = false;
  const Status fits = check_table(create, made);
  if (!fits) return fail(Error(fits.error()).at(directory_));
  if (!made || !durable_) return {};
  ASSAY_TRY(sync_files());
  return sync_new_directory(directory_);
}

Result<std::unique_ptr<Connection>> PostgresqlStore::connect() const {
  ASSAY_TRY(require_reach(kName, "max_connections", std::to_string(plan_.connections),
                          plan_.connections, static_cast<std::uint32_t>(sessions_.load()) + 1));
  return Connection::open(server_->socket_folder());
}

Result<std::unique_ptr<Session>> PostgresqlStore::session() {
  Result<std::unique_ptr<Connection>> connection = connect();
  if (!connection) return std::unexpected(connection.error());
  return KeyValueSession::make(std::move(*connection), limits_, u64_, sessions_);
}

Result<std::unique_ptr<TableSession>> PostgresqlStore::table_session() {
  Result<std::unique_ptr<Connection>> connection = connect();
  if (!connection) return std::unexpected(connection.error());
  return postgresql::table_session(std::move(*connection), sessions_);
}

Status PostgresqlStore::sync() {
  if (!plan_.fsync) return sync_files();
  // A commit that waits for its sync, and so for that of everything before it in the log.
  const std::scoped_lock lock(own_mutex_);
  return own_->command(
      "BEGIN; SET LOCAL synchronous_commit = on; "
      "SELECT pg_logical_emit_message(true, 'sync', ''); COMMIT");
}

Status PostgresqlStore::checkpoint() {
  const std::scoped_lock lock(own_mutex_);
  return own_->command("CHECKPOINT");
}

Status PostgresqlStore::settle() {
  const std::scoped_lock lock(own_mutex_);
  while (true) {
    const Result<std::string> busy = own_->text(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'");
    if (!busy) return std::unexpected(busy.error());
    if (*busy == "0") return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::map<std::string, double> PostgresqlStore::counters() const {
  std::map<std::string, double> counters;
  const std::scoped_lock lock(own_mutex_);
  if (own_ == nullptr) return counters;
  for (const auto& [name, query] : kCounters) {
    const Result<std::string> text = own_->text(query);
    double value = 0;
    if (!text) continue;
    if (std::from_chars(text->data(), text->data() + text->size(), value).ec == std::errc())
      counters[name] = value;
  }
  return counters;
}

Result<Settings> PostgresqlStore::effective_settings() {
  const std::scoped_lock lock(own_mutex_);
  const Result<Rows> rows = own_->run(
      "SELECT name, setting, coalesce(unit, '') FROM pg_settings WHERE name IN "
      "('synchronous_commit', 'fsync', 'full_page_writes', 'wal_sync_method', 'shared_buffers', "
      "'work_mem', 'maintenance_work_mem', 'max_wal_size', 'effective_cache_size', 'autovacuum', "
      "'max_connections', 'data_checksums', 'wal_level', 'jit', 'max_parallel_workers_per_gather', "
      "'server_version')");
  if (!rows) return std::unexpected(rows.error());
  Settings settings;
  for (int row = 0; row < rows->count(); ++row) {
    const std::string_view unit = rows->cell(row, 2);
    settings[std::string(rows->cell(row, 0))] =
        fmt::format("{}{}{}", rows->cell(row, 1), unit.empty() ? "" : " ", unit);
  }
  const Result<std::string> storage = own_->text(
      "SELECT attstorage FROM pg_attribute WHERE attrelid = 'kv'::regclass AND attname = 'v'");
  if (!storage) return std::unexpected(storage.error());
  settings["value_storage"] = *storage == "e" ? "external" : "extended";
  return settings;
}

Status PostgresqlStore::close() {
  if (server_ == nullptr) return {};
  if (sessions_.load() != 0) {
    return fail(
        Error(ErrorKind::store, "postgresql: closed while sessions are open").at(directory_));
  }
  const std::scoped_lock lock(own_mutex_);
  own_.reset();
  Status status = server_->stop();
  server_.reset();
  return status;
}

class PostgresqlDriver final : public Driver {
 public:
  std::string name() const override { return kName; }
  std::string version() const override { return server_version(); }

  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.concurrent_writers = true;
    can.larger_than_memory = can.tables = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    // An entry of a B-tree is at most a third of a page of 8 KiB; a field at most 1 GB, and so is
    // a message with all of its parameters.
    can.max_key_bytes = 2048;
    can.max_value_bytes = 500'000'000;
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    return settings_for(durability);
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return durability_of(effective);
  }

  Status check_settings(const OpenOptions& options, std::uint32_t sessions) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    const Result<Plan> plan = plan_of(*settings, options);
    if (!plan) return std::unexpected(plan.error());
    return require_reach(kName, "max_connections", settings->at("max_connections"),
                         plan->connections, sessions);
  }

  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    Result<Plan> plan = plan_of(*settings, options);
    if (!plan) return std::unexpected(plan.error());
    const Result<bool> there = find_store(kName, options);
    if (!there) return std::unexpected(there.error());
    auto store = std::make_unique<PostgresqlStore>(options, std::move(*plan), capabilities());
    ASSAY_TRY(store->open(*there, options.create));
    return store;
  }
};

}  // namespace
}  // namespace assay::postgresql

extern "C" __attribute__((visibility("default"))) const assay::Driver* assay_postgresql_entry() {
  static const assay::postgresql::PostgresqlDriver driver;
  return &driver;
}
static_assert(std::is_same_v<decltype(&assay_postgresql_entry), assay::StoreEntry>);
