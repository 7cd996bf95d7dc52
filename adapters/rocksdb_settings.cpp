#include "adapters/rocksdb_settings.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <thread>

#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::string_view kName = "rocksdb";
constexpr std::uint64_t kMost = std::uint64_t{1} << 42;

rocksdb::CompressionType compression_of(const std::string& name) {
  if (name == "lz4") return rocksdb::kLZ4Compression;
  if (name == "snappy") return rocksdb::kSnappyCompression;
  if (name == "zstd") return rocksdb::kZSTD;
  return rocksdb::kNoCompression;
}

rocksdb::WALRecoveryMode recovery_of(const std::string& name) {
  if (name == "tolerate_corrupted_tail")
    return rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  if (name == "absolute") return rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  if (name == "skip_any") return rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  return rocksdb::WALRecoveryMode::kPointInTimeRecovery;
}

/// The free-form settings, as numbers.
struct Counts {
  std::uint64_t cache_bytes = 0;
  std::uint64_t write_buffer_bytes = 0;
  std::uint64_t write_buffers = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t bloom_bits = 0;
  std::uint64_t jobs = 0;
  std::uint64_t bytes_per_sync = 0;
  std::uint64_t recycled_logs = 0;
};

Result<Counts> read_counts(const Settings& settings, std::uint64_t memory_bytes) {
  struct Row {
    const char* name;
    CountRange range;
    std::uint64_t Counts::* into;
  };
  const std::uint64_t buffer = std::clamp<std::uint64_t>(memory_bytes / 8, 1U << 20, 64U << 20);
  const std::uint64_t cpus = std::max(2U, std::thread::hardware_concurrency());
  const Row rows[] = {
      {"block_cache_bytes",
       {.least = 0, .most = kMost, .automatic = memory_bytes / 2},
       &Counts::cache_bytes},
      {"write_buffer_bytes",
       {.least = 1U << 16, .most = kMost, .automatic = buffer},
       &Counts::write_buffer_bytes},
      {"max_write_buffer_number", {.least = 2, .most = 64, .automatic = 4}, &Counts::write_buffers},
      {"block_bytes", {.least = 512, .most = 1U << 24, .automatic = 4096}, &Counts::block_bytes},
      {"bloom_bits_per_key", {.least = 0, .most = 32, .automatic = 10}, &Counts::bloom_bits},
      {"max_background_jobs", {.least = 1, .most = 256, .automatic = cpus}, &Counts::jobs},
      {"bytes_per_sync",
       {.least = 0, .most = kMost, .automatic = 1U << 20},
       &Counts::bytes_per_sync},
      {"recycle_log_file_num", {.least = 0, .most = 1024, .automatic = 0}, &Counts::recycled_logs},
  };
  Counts counts;
  for (const Row& row : rows) {
    const Result<std::uint64_t> value = count_setting(kName, settings, row.name, row.range);
    if (!value) return std::unexpected(value.error());
    counts.*row.into = *value;
  }
  return counts;
}

}  // namespace

std::vector<Setting> rocksdb_settings(DurabilityClass durability) {
  const std::string tuning = "github.com/facebook/rocksdb wiki, Setup Options and Basic Tuning";
  const std::string wal = "github.com/facebook/rocksdb wiki, WAL Performance";
  const std::vector<std::string> on_off{"on", "off"};
  return {
      {"sync", durability >= DurabilityClass::power_last ? "on" : "off",
       "on syncs the log at every commit (concurrent commits share one sync); off hands the log to "
       "the operating system, so a suffix may be lost with the power and nothing with the process",
       wal, on_off},
      {"wal", durability == DurabilityClass::volatile_ ? "off" : "on",
       "off keeps commits in memory until a flush; nothing is promised then", wal, on_off},
      {"wal_recovery_mode",
       "point_in_time",
       "RocksDB's default: recovers the longest sound prefix of the commits",
       "github.com/facebook/rocksdb wiki, WAL Recovery Modes",
       {"point_in_time", "tolerate_corrupted_tail", "absolute", "skip_any"}},
      {"manual_wal_flush", "off", "on keeps the log in the process's own buffer, lost with it", wal,
       on_off},
      {"recycle_log_file_num",
       "0",
       "reused logs would save the growth of the file at every sync, but 7.8.3 turns them off "
       "under "
       "point-in-time recovery, so the value says what is in force",
       "rocksdb 7.8.3, SanitizeOptions in db/db_impl/db_impl_open.cc",
       {}},
      {"block_cache_bytes",
       "auto",
       "auto: the whole memory budget; memtables, index and filter blocks are charged to it",
       tuning,
       {}},
      {"write_buffer_bytes",
       "auto",
       "auto: an eighth of the memory budget, 1 to 64 MiB (RocksDB's default)",
       tuning,
       {}},
      {"max_write_buffer_number",
       "4",
       "half of the budget at most, so that writers go on while memtables are flushed",
       tuning,
       {}},
      {"block_bytes", "4096", "RocksDB's default; small blocks suit point reads", tuning, {}},
      {"bloom_bits_per_key", "10", "about 1 % false positives; whole keys", tuning, {}},
      {"compression",
       "none",
       "the other stores keep values as they are; lz4 is RocksDB's advice where values compress",
       tuning,
       {"none", "lz4", "snappy", "zstd"}},
      {"compaction_style",
       "level",
       "RocksDB's default: least space and read amplification",
       tuning,
       {"level", "universal"}},
      {"level_compaction_dynamic_level_bytes", "on", "bounds the space amplification", tuning,
       on_off},
      {"max_background_jobs",
       "auto",
       "auto: the number of CPUs, at least RocksDB's default of 2",
       tuning,
       {}},
      {"bytes_per_sync",
       "1048576",
       "writes of background files are spread instead of arriving at once",
       tuning,
       {}},
      {"direct_io", "off", "off reads through the page cache as the other stores do",
       "github.com/facebook/rocksdb wiki, Direct IO", on_off},
      {"statistics", "off", "on counts tickers at a cost of 5 to 10 % by RocksDB's own account",
       "github.com/facebook/rocksdb wiki, Statistics", on_off},
  };
}

// RocksDB's wiki, WAL Performance and WAL Recovery Modes. A log that is off, or is left in the
// process's buffer until someone flushes it, dies with the process. Absolute refuses a torn tail,
// which a killed process leaves as well. Behind synced commits there is only a tail that nobody was
// promised; behind unsynced ones the power may leave a gap, which point-in-time ends the prefix at,
// skip_any skips, and tolerate_corrupted_tail refuses to open.
DurabilityClass rocksdb_durability(const Settings& settings) {
  const std::string& recovery = settings.at("wal_recovery_mode");
  if (!on_setting(settings, "wal") || on_setting(settings, "manual_wal_flush") ||
      recovery == "absolute") {
    return DurabilityClass::volatile_;
  }
  if (on_setting(settings, "sync")) return DurabilityClass::power;
  return recovery == "point_in_time" ? DurabilityClass::power_prefix : DurabilityClass::process;
}

Result<RocksdbPlan> rocksdb_plan(const Settings& settings, const OpenOptions& open) {
  const Result<Counts> counts = read_counts(settings, open.memory_bytes);
  if (!counts) return std::unexpected(counts.error());
  RocksdbPlan plan;
  plan.sync = on_setting(settings, "sync");
  plan.write_ahead_log = on_setting(settings, "wal");
  if (plan.sync && !plan.write_ahead_log) {
    return fail(Error(ErrorKind::bad_input, "rocksdb: sync needs the log that wal=off turns off")
                    .hint("set sync to off as well, or wal to on"));
  }
  rocksdb::Options& options = plan.options;
  options.create_if_missing = open.create;
  options.wal_recovery_mode = recovery_of(settings.at("wal_recovery_mode"));
  options.manual_wal_flush = on_setting(settings, "manual_wal_flush");
  options.recycle_log_file_num = counts->recycled_logs;
  options.write_buffer_size = counts->write_buffer_bytes;
  options.max_write_buffer_number = static_cast<int>(counts->write_buffers);
  // Optimistic transactions would keep every flushed memtable in memory to find conflicts at
  // commit. They are only ever rolled back here, so next to no history is wanted.
  options.max_write_buffer_size_to_maintain = 1;
  options.compression = compression_of(settings.at("compression"));
  options.compaction_style = settings.at("compaction_style") == "universal"
                                 ? rocksdb::kCompactionStyleUniversal
                                 : rocksdb::kCompactionStyleLevel;
  options.level_compaction_dynamic_level_bytes =
      on_setting(settings, "level_compaction_dynamic_level_bytes");
  options.max_background_jobs = static_cast<int>(counts->jobs);
  options.bytes_per_sync = counts->bytes_per_sync;
  options.use_direct_reads = on_setting(settings, "direct_io");
  options.use_direct_io_for_flush_and_compaction = on_setting(settings, "direct_io");
  if (on_setting(settings, "statistics")) options.statistics = rocksdb::CreateDBStatistics();

  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(counts->cache_bytes);
  options.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(
      counts->write_buffer_bytes * counts->write_buffers, cache);
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = counts->block_bytes;
  table.format_version = 5;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.whole_key_filtering = true;
  if (counts->bloom_bits != 0) {
    table.filter_policy.reset(
        rocksdb::NewBloomFilterPolicy(static_cast<double>(counts->bloom_bits)));
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return plan;
}

}  // namespace assay
