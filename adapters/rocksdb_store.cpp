// RocksDB: one database a store, synced or unsynced write-ahead log by class. Sessions may be used
// at the same time; RocksDB groups the commits of concurrent writers.
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>

#include "adapters/opening.h"
#include "adapters/rocksdb_log.h"
#include "adapters/rocksdb_settings.h"
#include "adapters/store_modules.h"

namespace assay {
namespace {

constexpr std::string_view kName = "rocksdb";

Error rocksdb_error(std::string_view what, const rocksdb::Status& status,
                    const std::string& where) {
  ErrorKind kind = ErrorKind::store;
  std::string hint;
  if (status.IsNoSpace()) {
    kind = ErrorKind::environment;
    hint = "free some space on the file system";
  } else if (status.IsCorruption() && what == "open") {
    hint = "the files are damaged or are no RocksDB database";
  } else if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    hint = "another process has the database open";
  }
  Error error(kind, fmt::format("RocksDB: {}: {}", what, status.ToString()));
  error.at(where);
  if (!hint.empty()) error.hint(hint);
  return error;
}

rocksdb::Slice slice_of(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view text_of(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// RocksDB reports by status, but its containers and ours may still run out of memory.
template <class Call>
auto guarded(const std::string& where, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& exception) {
    return fail(
        Error(ErrorKind::store, fmt::format("RocksDB: exception: {}", exception.what())).at(where));
  }
}

class RocksdbStore;

class RocksdbSession final : public Session {
 public:
  explicit RocksdbSession(RocksdbStore& store);
  ~RocksdbSession() override;

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  [[nodiscard]] Status outcome(std::string_view what, const rocksdb::Status& status) const;

  RocksdbStore& store_;
  const std::string& where_;
  const EntryLimits& limits_;
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const table_;
  const rocksdb::ReadOptions read_;
  const rocksdb::WriteOptions write_;
  rocksdb::PinnableSlice value_;
  rocksdb::WriteBatch batch_;
};

class RocksdbStore final : public Store {
 public:
  RocksdbStore(const OpenOptions& options, RocksdbPlan plan, const Capabilities& capabilities)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        plan_(std::move(plan)) {
    write_.sync = plan_.sync;
    write_.disableWAL = !plan_.write_ahead_log;
  }
  ~RocksdbStore() override {
    if (db_ != nullptr && table_ != nullptr)
      db_->DestroyColumnFamilyHandle(table_).PermitUncheckedError();
  }

  [[nodiscard]] Status open(bool fresh, bool durable_directory);
  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<RocksdbSession>(*this);
  }
  Status sync() override;
  Status checkpoint() override;
  Status settle() override;
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  friend class RocksdbSession;
  [[nodiscard]] Status flush();
  [[nodiscard]] std::uint64_t property(const char* name) const;

  const EntryLimits limits_;
  RocksdbPlan plan_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::OptimisticTransactionDB> db_;
  rocksdb::DB* base_ = nullptr;  // what get, put and scan use: no transaction in their way
  rocksdb::ColumnFamilyHandle* table_ = nullptr;
  std::atomic<int> sessions_{0};
};

// ---- session ----

RocksdbSession::RocksdbSession(RocksdbStore& store)
    : store_(store),
      where_(store.directory_),
      limits_(store.limits_),
      db_(store.base_),
      table_(store.table_),
      write_(store.write_) {
  store_.sessions_.fetch_add(1);
}

RocksdbSession::~RocksdbSession() {
  store_.sessions_.fetch_sub(1);
}

Status RocksdbSession::outcome(std::string_view what, const rocksdb::Status& status) const {
  if (status.ok()) [[likely]]
    return {};
  return fail(rocksdb_error(what, status, where_));
}

Result<bool> RocksdbSession::get(std::string_view key, std::string_view& value) {
  return guarded(where_, [&]() -> Result<bool> {
    value_.Reset();
    const rocksdb::Status status = db_->Get(read_, table_, slice_of(key), &value_);
    if (status.ok()) {
      value = text_of(value_);
      return true;
    }
    if (status.IsNotFound()) return false;
    return fail(rocksdb_error("get", status, where_));
  });
}

Status RocksdbSession::put(std::string_view key, std::string_view value) {
  if (!limits_.accepts(key, value)) return fail(limits_.refusal(key, value));
  return guarded(where_, [&] {
    return outcome("put", db_->Put(write_, table_, slice_of(key), slice_of(value)));
  });
}

Status RocksdbSession::erase(std::string_view key) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  return guarded(where_,
                 [&] { return outcome("delete", db_->Delete(write_, table_, slice_of(key))); });
}

Status RocksdbSession::apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return {};
  return guarded(where_, [&]() -> Status {
    batch_.Clear();
    for (const Mutation& mutation : mutations) {
      if (!limits_.accepts(mutation.key, mutation.value)) {
        return fail(limits_.refusal(mutation.key, mutation.value));
      }
      const rocksdb::Status status =
          mutation.kind == Mutation::Kind::put
              ? batch_.Put(table_, slice_of(mutation.key), slice_of(mutation.value))
              : batch_.Delete(table_, slice_of(mutation.key));
      ASSAY_TRY(outcome("batch", status));
    }
    return outcome("write", db_->Write(write_, &batch_));
  });
}

Status RocksdbSession::rollback(std::span<const Mutation> mutations) {
  return guarded(where_, [&]() -> Status {
    const std::unique_ptr<rocksdb::Transaction> transaction(store_.db_->BeginTransaction(write_));
    for (const Mutation& mutation : mutations) {
      if (!limits_.accepts(mutation.key, mutation.value)) {
        return fail(limits_.refusal(mutation.key, mutation.value));
      }
      const rocksdb::Status status =
          mutation.kind == Mutation::Kind::put
              ? transaction->Put(table_, slice_of(mutation.key), slice_of(mutation.value))
              : transaction->Delete(table_, slice_of(mutation.key));
      ASSAY_TRY(outcome("transaction", status));
    }
    return outcome("rollback", transaction->Rollback());
  });
}

Result<std::uint64_t> RocksdbSession::scan(const ScanRange& range, ScanSink& sink) {
  return guarded(where_, [&]() -> Result<std::uint64_t> {
    // An iterator reads one snapshot. Its upper bound is exclusive, so ours is the next key.
    rocksdb::ReadOptions read = read_;
    const rocksdb::Slice lower = slice_of(range.first);
    const std::string beyond = range.to_end ? std::string() : std::string(range.last) + '\0';
    const rocksdb::Slice upper = slice_of(beyond);
    if (!range.from_start) read.iterate_lower_bound = &lower;
    if (!range.to_end) read.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read, table_));
    if (range.backward) {
      at->SeekToLast();
    } else {
      at->SeekToFirst();
    }
    std::uint64_t visited = 0;
    while (at->Valid()) {
      ++visited;
      if (!sink.entry(text_of(at->key()), text_of(at->value())) || visited == range.limit) break;
      if (range.backward) {
        at->Prev();
      } else {
        at->Next();
      }
    }
    ASSAY_TRY(outcome("scan", at->status()));
    return visited;
  });
}

// ---- store ----

Status RocksdbStore::open(bool fresh, bool durable_directory) {
  return guarded(directory_, [&]() -> Status {
    // Serial validation needs no table of a million mutexes, and nothing is ever validated.
    rocksdb::OptimisticTransactionDBOptions transactions;
    transactions.validate_policy = rocksdb::OccValidationPolicy::kValidateSerial;
    plan_.options.info_log = std::make_shared<ForgivingLog>(directory_);
    rocksdb::OptimisticTransactionDB* opened = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> tables;
    const rocksdb::Status status = rocksdb::OptimisticTransactionDB::Open(
        rocksdb::DBOptions(plan_.options), transactions, directory_,
        {{rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions(plan_.options)}}, &tables,
        &opened);
    if (!status.ok()) return fail(rocksdb_error("open", status, directory_));
    db_.reset(opened);
    base_ = db_->GetBaseDB();
    table_ = tables.front();
    return fresh && durable_directory ? sync_new_directory(directory_) : Status{};
  });
}

Status RocksdbStore::flush() {
  rocksdb::FlushOptions options;
  options.wait = true;
  const rocksdb::Status status = base_->Flush(options, table_);
  if (!status.ok()) return fail(rocksdb_error("flush", status, directory_));
  return {};
}

Status RocksdbStore::sync() {
  return guarded(directory_, [&]() -> Status {
    if (plan_.write_ahead_log) {
      const rocksdb::Status status = base_->FlushWAL(true);
      if (!status.ok()) return fail(rocksdb_error("sync the log", status, directory_));
    } else {
      ASSAY_TRY(flush());
    }
    return sync_new_directory(directory_);
  });
}

Status RocksdbStore::checkpoint() {
  return guarded(directory_, [&] { return flush(); });
}

std::uint64_t RocksdbStore::property(const char* name) const {
  std::uint64_t value = 0;
  base_->GetIntProperty(table_, name, &value);
  return value;
}

// 7.8.3 has no public WaitForCompact, so its properties are asked until they have been quiet a few
// times in a row: between two jobs there is a moment in which none is running yet.
Status RocksdbStore::settle() {
  constexpr int kQuietWanted = 3;
  constexpr std::chrono::milliseconds kPause{2};
  const std::uint64_t errors_before = property("rocksdb.background-errors");
  int quiet = 0;
  while (quiet < kQuietWanted) {
    const bool busy = property("rocksdb.mem-table-flush-pending") != 0 ||
                      property("rocksdb.compaction-pending") != 0 ||
                      property("rocksdb.num-running-flushes") != 0 ||
                      property("rocksdb.num-running-compactions") != 0;
    quiet = busy ? 0 : quiet + 1;
    if (property("rocksdb.background-errors") != errors_before) {
      return fail(Error(ErrorKind::store, "RocksDB: a flush or compaction failed in the background")
                      .at(directory_)
                      .hint("the store's LOG file says why"));
    }
    if (quiet < kQuietWanted) std::this_thread::sleep_for(kPause);
  }
  return {};
}

void add_map(std::map<std::string, double>& counters,
             const std::map<std::string, std::string>& map) {
  for (const auto& [name, text] : map) {
    double number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc() && end == text.data() + text.size()) counters[name] = number;
  }
}

std::map<std::string, double> RocksdbStore::counters() const {
  std::map<std::string, double> counters;
  if (base_ == nullptr) return counters;
  for (const char* name :
       {"rocksdb.num-immutable-mem-table", "rocksdb.cur-size-all-mem-tables",
        "rocksdb.estimate-pending-compaction-bytes", "rocksdb.estimate-num-keys",
        "rocksdb.estimate-live-data-size", "rocksdb.total-sst-files-size",
        "rocksdb.live-sst-files-size", "rocksdb.actual-delayed-write-rate",
        "rocksdb.is-write-stopped", "rocksdb.block-cache-usage", "rocksdb.block-cache-pinned-usage",
        "rocksdb.estimate-table-readers-mem", "rocksdb.background-errors"}) {
    std::uint64_t value = 0;
    if (base_->GetIntProperty(table_, name, &value)) counters[name] = static_cast<double>(value);
  }
  for (const char* name : {"rocksdb.cfstats", "rocksdb.dbstats"}) {
    std::map<std::string, std::string> map;
    if (base_->GetMapProperty(table_, name, &map)) add_map(counters, map);
  }
  if (plan_.options.statistics != nullptr) {
    std::map<std::string, std::uint64_t> tickers;
    if (plan_.options.statistics->getTickerMap(&tickers)) {
      for (const auto& [name, value] : tickers) counters[name] = static_cast<double>(value);
    }
  }
  return counters;
}

std::string on_off(bool on) {
  return on ? "on" : "off";
}

std::string recovery_name(rocksdb::WALRecoveryMode mode) {
  switch (mode) {
    case rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords:
      return "tolerate_corrupted_tail";
    case rocksdb::WALRecoveryMode::kAbsoluteConsistency:
      return "absolute";
    case rocksdb::WALRecoveryMode::kPointInTimeRecovery:
      return "point_in_time";
    case rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords:
      return "skip_any";
  }
  return "unknown";
}

Result<Settings> RocksdbStore::effective_settings() {
  return guarded(directory_, [&]() -> Result<Settings> {
    const rocksdb::DBOptions db = base_->GetDBOptions();
    const rocksdb::Options table = base_->GetOptions(table_);
    Settings settings;
    settings["sync"] = on_off(write_.sync);
    settings["wal"] = on_off(!write_.disableWAL);
    settings["wal_recovery_mode"] = recovery_name(db.wal_recovery_mode);
    settings["manual_wal_flush"] = on_off(db.manual_wal_flush);
    settings["recycle_log_file_num"] = std::to_string(db.recycle_log_file_num);
    settings["write_buffer_bytes"] = std::to_string(table.write_buffer_size);
    settings["max_write_buffer_number"] = std::to_string(table.max_write_buffer_number);
    settings["max_background_jobs"] = std::to_string(db.max_background_jobs);
    settings["bytes_per_sync"] = std::to_string(db.bytes_per_sync);
    settings["direct_io"] = on_off(db.use_direct_reads);
    settings["statistics"] = on_off(db.statistics != nullptr);
    settings["level_compaction_dynamic_level_bytes"] =
        on_off(table.level_compaction_dynamic_level_bytes);
    settings["block_cache_bytes"] = std::to_string(property("rocksdb.block-cache-capacity"));
    settings["compaction_style"] =
        table.compaction_style == rocksdb::kCompactionStyleUniversal ? "universal" : "level";
    std::string text;
    if (rocksdb::GetStringFromCompressionType(&text, table.compression).ok()) {
      settings["compression"] = text;
    }
    if (const auto* block = table.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()) {
      settings["block_bytes"] = std::to_string(block->block_size);
      settings["format_version"] = std::to_string(block->format_version);
      settings["filter_policy"] =
          block->filter_policy == nullptr ? "none" : block->filter_policy->GetId();
    }
    if (rocksdb::GetStringFromDBOptions(&text, db).ok()) settings["db_options"] = text;
    if (rocksdb::GetStringFromColumnFamilyOptions(&text, table).ok()) settings["cf_options"] = text;
    return settings;
  });
}

Status RocksdbStore::close() {
  if (db_ == nullptr) return {};
  if (sessions_.load() != 0) {
    return fail(Error(ErrorKind::store, "rocksdb: closed while sessions are open").at(directory_));
  }
  return guarded(directory_, [&]() -> Status {
    // Without a log Close() flushes the memtables first.
    rocksdb::Status status = db_->DestroyColumnFamilyHandle(table_);
    table_ = nullptr;
    base_ = nullptr;
    const rocksdb::Status closed = db_->Close();
    if (status.ok()) status = closed;
    db_.reset();
    if (!status.ok()) return fail(rocksdb_error("close", status, directory_));
    return {};
  });
}

// ---- driver ----

class RocksdbDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override { return rocksdb::GetRocksVersionAsString(true); }

  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.concurrent_writers = true;
    can.larger_than_memory = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    // RocksDB's FAQ advises at most 8 MB for a key and 3 GB for a value.
    can.max_key_bytes = 8'000'000;
    can.max_value_bytes = 3'000'000'000;
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    return rocksdb_settings(durability);
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return rocksdb_durability(effective);
  }

  Status check_settings(const OpenOptions& options, std::uint32_t) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    ASSAY_TRY(rocksdb_plan(*settings, options));
    return {};
  }

  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    Result<RocksdbPlan> plan = rocksdb_plan(*settings, options);
    if (!plan) return std::unexpected(plan.error());
    const Result<bool> there = find_store(kName, options);
    if (!there) return std::unexpected(there.error());
    auto store = std::make_unique<RocksdbStore>(options, std::move(*plan), capabilities());
    ASSAY_TRY(store->open(!*there, survives_power_loss(options.durability)));
    return store;
  }
};

}  // namespace

}  // namespace assay

extern "C" __attribute__((visibility("default"))) const assay::Driver* assay_rocksdb_entry() {
  static const assay::RocksdbDriver driver;
  return &driver;
}
static_assert(std::is_same_v<decltype(&assay_rocksdb_entry), assay::StoreEntry>);
