// Declaration to Workload. The same reader takes the TOML that people write and the canonical JSON,
// so both obey the same rules; every rule is next to the key it is about.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "adapters/plain_name.h"
#include "workloads/codec.h"
#include "workloads/operation_source.h"
#include "workloads/spellings.h"
#include "workloads/stream.h"
#include "workloads/toml_reader.h"
#include "workloads/trace_file.h"
#include "workloads/workload.h"

namespace assay {
namespace {

constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxKeyBytes = 1U << 16;
constexpr std::uint32_t kMaxValueBytes = 1U << 28;
constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMaxBatch = 1U << 20;
constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{256} << 20;
/// What every store takes as one commit.
constexpr std::uint64_t kMaxBatchBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLoadBatchBytes = std::uint64_t{16} << 20;  ///< where none is declared
constexpr std::uint64_t kMaxDay_ms = 86'400'000;
constexpr std::uint64_t kMaxTableRuns = 10'000;
constexpr std::uint32_t kTableKeyBytes = 19;  ///< of the layout's longest key, an index entry's

/// Refuses `key` where it has no meaning, instead of ignoring it.
void only_for(TomlTable& table, std::string_view key, bool meaningful, std::string_view where) {
  if (!meaningful && table.has(key)) {
    (void)table.take(key);
    table.reject(key, fmt::format("'{}' has no effect here: it belongs to {}", key, where));
  }
}

KeySpec read_keys(TomlTable table) {
  KeySpec keys;
  if (!table.present()) {
    table.reject({}, "the table [keys] is missing", "give at least [keys] count = 1000");
    keys.count = 1;
    return keys;
  }
  keys.count = table.required_integer("count", 1, kMaxKeys);
  keys.kind = table.choice("kind", KeyKind::u64, kKeyKinds);
  keys.hashed = table.choice("order", true, kKeyOrders);
  const bool bytes = keys.kind == KeyKind::bytes;
  only_for(table, "prefix", bytes, "keys of kind \"bytes\"");
  if (bytes) {
    keys.bytes = table.integer32("bytes", 16, 1, kMaxKeyBytes);
    keys.prefix = table.text("prefix");
    if (keys.prefix.size() >= keys.bytes) {
      table.reject("prefix", fmt::format("the prefix takes {} of the {} bytes of a key and leaves "
                                         "none to tell keys apart",
                                         keys.prefix.size(), keys.bytes));
      keys.prefix.clear();
    }
  } else if (table.integer32("bytes", 8, 1, kMaxKeyBytes) != 8) {
    table.reject("bytes", "keys of kind \"u64\" have 8 bytes", "or say kind = \"bytes\"");
  }
  return keys;
}

void check_key_room(TomlTable table, const Workload& workload) {
  const std::uint32_t bytes = key_number_bytes(workload.keys);
  if (bytes >= 8) return;
  const std::uint64_t room = std::uint64_t{1} << (8 * bytes);
  std::uint64_t needed = workload.keys.count;
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    needed += insert_range(workload, phase).span;
  }
  if (needed > room) {
    table.reject("bytes",
                 fmt::format("keys with {} bytes behind their prefix can be told apart "
                             "{} times, and up to {} keys are needed",
                             bytes, room, needed),
                 "phases that insert without a count of operations need 2^40 each");
  }
}

ValueSpec read_values(TomlTable table) {
  ValueSpec values;
  values.sizes = table.choice("sizes", ValueSizes::fixed, kValueSizes);
  const bool fixed = values.sizes == ValueSizes::fixed;
  const bool lognormal = values.sizes == ValueSizes::lognormal;
  only_for(table, "bytes", values.sizes != ValueSizes::uniform,
           "sizes \"fixed\" and \"lognormal\"");
  only_for(table, "min_bytes", !fixed, "sizes \"uniform\" and \"lognormal\"");
  only_for(table, "max_bytes", !fixed, "sizes \"uniform\" and \"lognormal\"");
  only_for(table, "sigma", lognormal, "sizes \"lognormal\"");
  if (values.sizes != ValueSizes::uniform) {
    values.bytes = table.integer32("bytes", 100, 0, kMaxValueBytes);
  }
  if (!fixed) {
    values.min_bytes = table.integer32("min_bytes", lognormal ? 1 : 0, 0, kMaxValueBytes);
    values.max_bytes =
        static_cast<std::uint32_t>(table.required_integer("max_bytes", 0, kMaxValueBytes));
    if (table.has("max_bytes") && values.max_bytes < values.min_bytes) {
      table.reject("max_bytes", fmt::format("'max_bytes' is below 'min_bytes' ({} < {})",
                                            values.max_bytes, values.min_bytes));
    }
  }
  if (lognormal) {
    values.sigma = table.number("sigma", 0.5, 0.0, 10.0);
    if (values.bytes == 0) table.reject("bytes", "the median of lognormal sizes must be positive");
    // Else more than half of the sizes would be cut to the bound, and the median would be it.
    if (table.has("max_bytes") && values.max_bytes < values.bytes) {
      table.reject("max_bytes",
                   fmt::format("'max_bytes' is below 'bytes', the median of the sizes ({} < {})",
                               values.max_bytes, values.bytes));
    }
    if (table.has("min_bytes") && values.min_bytes > values.bytes) {
      table.reject("min_bytes",
                   fmt::format("'min_bytes' is above 'bytes', the median of the sizes ({} > {})",
                               values.min_bytes, values.bytes));
    }
  }
  values.compressible = table.number("compressible", 0.0, 0.0, 1.0);
  return values;
}

Distribution read_distribution(TomlTable table, const KeySpec& keys) {
  Distribution read;
  read.kind = table.choice("kind", DistributionKind::uniform, kDistributions);
  const bool prefix = read.kind == DistributionKind::hot_prefix;
  const bool zipfian = read.kind == DistributionKind::zipfian;
  const bool skewed = zipfian || read.kind == DistributionKind::latest;
  const bool hot = prefix || read.kind == DistributionKind::hot_set;
  only_for(table, "theta", skewed, "\"zipfian\" and \"latest\"");
  only_for(table, "scrambled", zipfian || (hot && !prefix), "\"zipfian\" and \"hot-set\"");
  only_for(table, "hot_fraction", hot, "\"hot-set\" and \"hot-prefix\"");
  only_for(table, "hot_probability", hot, "\"hot-set\" and \"hot-prefix\"");
  if (skewed) {
    read.theta = table.number("theta", 0.99, 0.0, 10.0);
    if (read.theta <= 0.0) {
      table.reject("theta", "'theta' must be above 0", "0.99 is YCSB's; use \"uniform\" for none");
      read.theta = 0.99;
    }
  }
  if (zipfian || (hot && !prefix)) read.scrambled = table.boolean("scrambled", true);
  if (hot) {
    read.hot_fraction = table.number("hot_fraction", prefix ? 1.0 / 64.0 : 0.2, 0.0, 1.0);
    read.hot_probability = table.number("hot_probability", prefix ? 1.0 : 0.8, 0.0, 1.0);
    const double prefixes = read.hot_fraction * 64.0;
    if (prefix && (prefixes < 1.0 || prefixes != std::floor(prefixes))) {
      table.reject("hot_fraction", "'hot_fraction' of \"hot-prefix\" must be a multiple of 1/64",
                   "keys are told apart by the first 6 bits; 0.015625 is one prefix");
    } else if (read.hot_fraction <= 0.0) {
      table.reject("hot_fraction", "'hot_fraction' must be above 0");
    }
    if (prefix && keys.count < 64) {
      table.reject("kind", "\"hot-prefix\" needs at least 64 keys");
    }
  }
  return read;
}

void read_mix(TomlTable table, Role& role) {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    const std::string_view name = kOpKindNames[kind].first;
    role.mix[kind] = table.number(name, 0.0, 0.0, 1e9);
    sum += role.mix[kind];
  }
  if (sum <= 0.0) {
    table.reject({}, "the role does nothing: 'mix' needs an operation with a positive weight",
                 "for example mix = { read = 0.5, update = 0.5 }");
    role.mix[0] = sum = 1.0;
  }
  if (std::abs(sum - 1.0) < 1e-9) return;  // as written, so that the canonical form stays as it is
  for (double& weight : role.mix) weight /= sum;
}

bool has_any(const Role& role, std::initializer_list<OpKind> kinds) {
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](OpKind kind) { return role.mix[static_cast<std::size_t>(kind)] > 0.0; });
}

std::vector<int> read_cpus(TomlTable& table) {
  std::vector<int> cpus;
  for (const std::int64_t cpu : table.integers("cpus", 0, 4095)) {
    if (std::ranges::find(cpus, cpu) != cpus.end()) {
      table.reject("cpus", fmt::format("'cpus' names CPU {} twice", cpu),
                   "name each once: threads beyond the last of them begin again with the first");
    }
    cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

void check_name(TomlTable& table, const std::string& name) {
  const std::string fault = plain_name_fault(name);
  if (!fault.empty()) table.reject("name", fault, plain_name_rule());
}

Role read_role(TomlTable table, const KeySpec& keys) {
  Role role;
  role.name = table.text("name", "all");
  check_name(table, role.name);
  role.threads = table.integer32("threads", 1, 1, kMaxThreads);
  read_mix(table.table("mix"), role);
  role.distribution = read_distribution(table.table("distribution"), keys);
  const bool scans = has_any(role, {OpKind::scan, OpKind::reverse_scan});
  const bool batches = has_any(role, {OpKind::batch, OpKind::rollback});
  only_for(table, "scan_entries_min", scans, "roles that scan");
  only_for(table, "scan_entries_max", scans, "roles that scan");
  only_for(table, "batch_keys", batches, "roles with batch or rollback");
  if (scans) {
    role.scan_entries_max = table.integer32("scan_entries_max", 100, 1);
    role.scan_entries_min = table.integer32("scan_entries_min", 1, 1);
    if (role.scan_entries_min > role.scan_entries_max) {
      table.reject("scan_entries_min",
                   fmt::format("'scan_entries_min' is above 'scan_entries_max' ({} > {})",
                               role.scan_entries_min, role.scan_entries_max));
      role.scan_entries_min = 1;
    }
  }
  if (batches) role.batch_keys = table.integer32("batch_keys", 128, 1, kMaxBatch);
  role.arrival.rate_per_s = table.number("rate_per_s", 0.0, 0.0, 1e9);
  only_for(table, "poisson", role.arrival.rate_per_s > 0.0, "an open loop (rate_per_s)");
  if (role.arrival.rate_per_s > 0.0) role.arrival.poisson = table.boolean("poisson", false);
  role.cpus = read_cpus(table);
  role.background = table.boolean("background", false);
  return role;
}

void read_roles(TomlTable& table, const KeySpec& keys, Phase& phase) {
  std::set<std::string> names;
  std::uint64_t writers = 0;
  bool measured = false;
  std::vector<TomlTable> roles = table.tables("roles");
  for (TomlTable& role_table : roles) {
    phase.roles.push_back(read_role(role_table, keys));
    const Role& role = phase.roles.back();
    if (!names.insert(role.name).second) {
      role_table.reject("name", fmt::format("two roles of the phase are called '{}'", role.name),
                        "give each its own name");
    }
    measured = measured || !role.background;
    if (writes(role)) writers += role.threads;
  }
  if (roles.empty()) {
    table.reject({}, "a run phase needs at least one role", "write [[phases.roles]] below it");
  } else if (!measured) {
    table.reject("roles", "every role is in the background, so nothing ends the phase");
  }
  if (writers > keys.count) {
    table.reject("roles", fmt::format("{} writing threads share {} keys; each needs one of its own",
                                      writers, keys.count));
  }
}

WarmUp read_warm_up(TomlTable table) {
  WarmUp read;
  if (!table.present()) return read;
  read.policy = table.choice("policy", WarmUpPolicy::none, kWarmUpPolicies);
  const bool fixed = read.policy == WarmUpPolicy::fixed;
  const bool steady = read.policy == WarmUpPolicy::steady;
  for (const auto* key : {"operations", "ms"}) only_for(table, key, fixed, "policy \"fixed\"");
  for (const auto* key : {"window_ms", "max_slope_per_s", "max_ms"}) {
    only_for(table, key, steady, "policy \"steady\"");
  }
  if (fixed) {
    read.operations = table.integer("operations", 0, 1);
    read.ms = table.integer("ms", 0, 1, kMaxDay_ms);
    if (table.has("operations") == table.has("ms")) {
      table.reject("policy", "a fixed warm-up needs exactly one of 'operations' and 'ms'");
    }
  }
  if (steady) {
    read.window_ms = table.integer("window_ms", read.window_ms, 1, kMaxDay_ms);
    read.max_slope_per_s = table.number("max_slope_per_s", read.max_slope_per_s, 1e-6, 10.0);
    read.max_ms = table.integer("max_ms", read.max_ms, 1, kMaxDay_ms);
    if (read.max_ms < read.window_ms) {
      table.reject("max_ms", "'max_ms' is shorter than one window", "raise it above 'window_ms'");
    }
  }
  return read;
}

/// A trace stands for mix, length and rate of the phase; they are read from it here, which also
/// finds every bad line before anything is measured.
void read_trace(TomlTable& table, const KeySpec& keys, const std::string& folder, Phase& phase) {
  namespace fs = std::filesystem;
  for (const auto* key : {"operations", "duration_ms", "warm_up"}) {
    only_for(table, key, false, "phases without a trace, which ends by itself");
  }
  if (keys.kind != KeyKind::bytes) {
    table.reject("trace", "the keys of a trace are bytes", "say [keys] kind = \"bytes\"");
  }
  const std::string declared = table.text("trace");
  phase.trace = fs::absolute(fs::path(folder) / declared).lexically_normal().string();
  phase.trace_speed = table.number("trace_speed", 0.0, 0.0, 1e6);
  const Result<TraceSummary> summary = summarise_trace(phase.trace);
  if (!summary) {
    table.reject(summary.error());
    return;
  }
  phase.trace_digest = table.text("trace_digest", summary->digest);
  if (phase.trace_digest != summary->digest) {
    table.reject("trace",
                 fmt::format("the trace {} was changed since it was declared", phase.trace));
  }
  phase.operations = summary->operations;
  Role role;
  std::vector<TomlTable> roles = table.tables("roles");
  if (roles.size() > 1) table.reject("roles", "a trace is replayed by one role");
  role.name = "replay";
  if (!roles.empty()) {
    role.name = roles.front().text("name", role.name);
    check_name(roles.front(), role.name);
    role.threads = roles.front().integer32("threads", 1, 1, kMaxThreads);
    role.cpus = read_cpus(roles.front());
  }
  role.mix = summary->mix;
  if (phase.trace_speed > 0.0 && summary->span_us == 0) {
    table.reject("trace_speed", "all operations of the trace have the same time");
  } else if (phase.trace_speed > 0.0) {  // the mean; each operation has its own due time
    role.arrival.rate_per_s = static_cast<double>(summary->operations) * 1e6 * phase.trace_speed /
                              static_cast<double>(summary->span_us) / role.threads;
  }
  phase.roles.push_back(std::move(role));
}

void read_cache(TomlTable& table, Phase& phase) {
  phase.cache = table.choice("cache", CachePolicy::as_is, kCachePolicies);
  const bool cold = phase.cache == CachePolicy::cold || phase.cache == CachePolicy::cold_files;
  for (const auto* key : {"max_resident", "max_resident_bytes"}) {
    only_for(table, key, cold, "cache \"cold\" and \"cold-files\"");
  }
  if (cold) phase.max_resident = table.number("max_resident", phase.max_resident, 0.0, 1.0);
  if (cold)
    phase.max_resident_bytes = table.integer("max_resident_bytes", phase.max_resident_bytes);
  if (cold && phase.warm_up.policy != WarmUpPolicy::none) {
    table.reject("cache", "a warm-up would warm the cache that is to be cold",
                 "leave [phases.warm_up] out or use cache = \"as-is\"");
  }
}

/// `table` has been read except for this key. An open loop's latency begins at each operation's own
/// intended start, so there is no batch to time.
void read_timed_batch(TomlTable& table, Phase& phase) {
  if (table.has_text("timed_batch")) {
    constexpr Spelling<std::uint32_t> kWords[] = {{"auto", kTimedBatchAuto}};
    phase.timed_batch = table.choice("timed_batch", std::uint32_t{1}, kWords);
  } else {
    phase.timed_batch = table.integer32("timed_batch", 1, 1, kTimedBatchMax);
  }
  const bool open = std::any_of(phase.roles.begin(), phase.roles.end(),
                                [](const Role& role) { return role.arrival.rate_per_s > 0.0; });
  if (open && phase.timed_batch != 1) {
    table.reject("timed_batch",
                 "'timed_batch' needs a closed loop: in an open one each operation has an intended "
                 "start of its own",
                 "leave it out, or leave out 'rate_per_s' (or 'trace_speed')");
    phase.timed_batch = 1;
  }
}

void read_run(TomlTable& table, const KeySpec& keys, Phase& phase) {
  only_for(table, "trace_speed", false, "a phase with a trace");
  phase.operations = table.integer("operations", 0, 1);
  phase.duration_ms = table.integer("duration_ms", 0, 1, kMaxDay_ms);
  if (table.has("operations") == table.has("duration_ms")) {
    table.reject(table.has("operations") ? "operations" : "",
                 "a run phase needs exactly one of 'operations' and 'duration_ms'");
  }
  phase.warm_up = read_warm_up(table.table("warm_up"));
  read_cache(table, phase);
  read_roles(table, keys, phase);
}

/// Keys and values of a batch are in memory at once, so its size is bounded.
std::uint64_t entry_bytes(const Workload& workload) {
  return std::uint64_t{workload.keys.bytes} + ValueCodec(workload.values, 0).max_size();
}

void check_batch(TomlTable& table, std::string_view key, std::uint64_t entries,
                 std::uint64_t bytes_each) {
  if (entries * bytes_each <= kMaxBatchBytes || bytes_each > kMaxEntryBytes) return;
  table.reject(key,
               fmt::format("a batch of {} entries of up to {} bytes takes {} MiB of memory, more "
                           "than {} MiB",
                           entries, bytes_each, (entries * bytes_each) >> 20, kMaxBatchBytes >> 20),
               fmt::format("at most {} entries fit", kMaxBatchBytes / bytes_each));
}

/// What makes one entry too large is the size of the values, whatever the batches.
void check_entry(TomlTable values, const Workload& workload) {
  const std::uint64_t bytes_each = entry_bytes(workload);
  if (bytes_each <= kMaxEntryBytes) return;
  values.reject(values.has("max_bytes") ? "max_bytes" : "bytes",
                fmt::format("one entry takes up to {} bytes, more than the {} bytes ({} MiB) that "
                            "one may take",
                            bytes_each, kMaxEntryBytes, kMaxEntryBytes >> 20),
                "make the values smaller");
}

void read_load(TomlTable& table, const Workload& workload, Phase& phase) {
  const std::uint64_t bytes_each = entry_bytes(workload);
  const auto fitting = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kLoadBatchBytes / bytes_each, 1, phase.load_batch));
  phase.random_order = table.choice("load_order", true, kLoadOrders);
  phase.load_batch = table.integer32("load_batch", fitting, 1, kMaxBatch);
  phase.load_threads = table.integer32("load_threads", phase.load_threads, 1, kMaxThreads);
  check_batch(table, "load_batch", phase.load_batch, bytes_each);
}

/// One operation over the tables: a run is counted whole, so the warm-up is of runs, too.
void read_table(TomlTable& table, const KeySpec& keys, Phase& phase) {
  if (!table.has("operation")) table.reject({}, "'operation' of the table phase is missing");
  phase.operation = table.choice("operation", TableOperation::full_scan, kTableOperations);
  phase.rows = table.integer("rows", 0, 0, keys.count);
  phase.operations = table.integer("operations", 1, 1, kMaxTableRuns);
  phase.warm_up = read_warm_up(table.table("warm_up"));
  if (phase.warm_up.policy == WarmUpPolicy::steady || phase.warm_up.ms != 0) {
    table.reject("warm_up", "the warm-up of a table phase is a number of runs",
                 "say warm_up = { policy = \"fixed\", operations = 1 }");
  }
  read_cache(table, phase);
  const bool makes_index = phase.operation == TableOperation::create_index;
  if (makes_index && (phase.operations != 1 || phase.warm_up.operations != 0)) {
    table.reject("operations", "an index is made once: no second run finds it missing");
  }
}

Phase read_phase(TomlTable& table, const Workload& workload, const std::string& folder) {
  Phase phase;
  if (!table.has("kind")) table.reject({}, "'kind' of the phase is missing");
  phase.kind = table.choice("kind", PhaseKind::run, kPhaseKinds);
  phase.name = table.text("name", to_string(phase.kind));
  check_name(table, phase.name);
  const bool load = phase.kind == PhaseKind::load;
  const bool run = phase.kind == PhaseKind::run;
  const bool asks_table = phase.kind == PhaseKind::table;
  const bool loads_tables = phase.kind == PhaseKind::load_tables;
  phase.timed = table.boolean("timed", run || ends_process(phase.kind) || uses_tables(phase.kind));
  for (const auto* key : {"load_order", "load_threads"}) only_for(table, key, load, "load phases");
  only_for(table, "load_batch", load || loads_tables, "load phases");
  only_for(table, "data_seed", loads_tables, "load-tables phases");
  for (const auto* key : {"operation", "rows"}) only_for(table, key, asks_table, "table phases");
  for (const auto* key : {"operations", "warm_up", "cache", "max_resident", "max_resident_bytes"}) {
    only_for(table, key, run || asks_table, "run phases");
  }
  for (const auto* key : {"duration_ms", "roles", "trace", "timed_batch"}) {
    only_for(table, key, run, "run phases");
  }
  only_for(table, "how", phase.kind == PhaseKind::restart, "restart phases");
  if (phase.kind == PhaseKind::restart) {
    phase.how = table.choice("how", RestartHow::close, kRestartHows);
  }
  if (load) read_load(table, workload, phase);
  if (asks_table) read_table(table, workload.keys, phase);
  if (loads_tables) {
    phase.load_batch = table.integer32("load_batch", 10'000, 1, kMaxBatch);
    phase.data_seed = table.integer("data_seed", 1);
  }
  if (run && table.has("trace")) {
    read_trace(table, workload.keys, folder, phase);
    read_cache(table, phase);
  } else if (run) {
    read_run(table, workload.keys, phase);
    for (const Role& role : phase.roles) {
      check_batch(table, "roles", role.batch_keys, entry_bytes(workload));
    }
  }
  if (run) read_timed_batch(table, phase);
  return phase;
}

/// Tables have rows of their own: keys.count is the number of trades, and what else puts keys into
/// the store would make contents that no model knows.
void check_tables(TomlTable root, const std::vector<TomlTable>& phases, const Workload& workload) {
  if (!uses_tables(workload)) return;
  bool loaded = false;
  for (std::size_t at = 0; at < phases.size(); ++at) {
    TomlTable table = phases[at];
    const PhaseKind kind = workload.phases[at].kind;
    const bool loads = kind == PhaseKind::load_tables;
    if (kind == PhaseKind::load || kind == PhaseKind::run) {
      table.reject("kind", "a workload of tables has no phases of kind \"load\" or \"run\"");
    } else if (loads == loaded && uses_tables(kind)) {
      table.reject("kind", loads ? "the tables are loaded twice"
                                 : "the tables are asked before a phase of kind \"load-tables\"");
    }
    loaded = loaded || loads;
  }
  if (workload.keys.kind != KeyKind::bytes || workload.keys.bytes < kTableKeyBytes) {
    root.table("keys").reject("kind", "the keys of tables are up to 19 bytes",
                              "say kind = \"bytes\" and bytes = 19");
  }
}

void read_phases(TomlTable& root, const std::string& folder, Workload& workload) {
  std::set<std::string> names;
  std::vector<TomlTable> phases = root.tables("phases");
  for (TomlTable& table : phases) {
    workload.phases.push_back(read_phase(table, workload, folder));
    workload.keys.foreign = workload.keys.foreign || !workload.phases.back().trace.empty();
    const Phase& phase = workload.phases.back();
    if (!names.insert(phase.name).second) {
      table.reject(table.has("name") ? "name" : "kind",
                   fmt::format("two phases are called '{}'", phase.name), "give each its own name");
    }
  }
  check_tables(root, phases, workload);
  if (phases.empty()) {
    root.reject("phases", "the workload has no phases",
                "write [[phases]] kind = \"load\" and [[phases]] kind = \"run\"");
  }
}

/// The phase whose throughput is compared: the last timed run phase, else the last timed one.
std::string default_measured_phase(const Workload& workload) {
  std::string chosen;
  bool chosen_runs = false;
  for (const Phase& phase : workload.phases) {
    const bool run = phase.kind == PhaseKind::run;
    if (!phase.timed || (chosen_runs && !run)) continue;
    chosen = phase.name;
    chosen_runs = run;
  }
  return chosen;
}

void read_measured_phase(TomlTable& root, Workload& workload) {
  workload.measured_phase = root.text("measured_phase", default_measured_phase(workload));
  std::vector<std::string> timed;
  for (const Phase& phase : workload.phases) {
    if (phase.timed) timed.push_back(phase.name);
  }
  if (timed.empty() && !workload.phases.empty()) {
    root.reject("phases", "no phase is timed, so there is nothing to compare",
                "set timed = true in one of them");
  } else if (!workload.phases.empty() &&
             std::find(timed.begin(), timed.end(), workload.measured_phase) == timed.end()) {
    const std::string nearest = nearest_name(workload.measured_phase, timed);
    root.reject(
        "measured_phase",
        fmt::format("'measured_phase' names no timed phase: \"{}\"", workload.measured_phase),
        nearest.empty() ? fmt::format("timed phases: {}", fmt::join(timed, ", "))
                        : fmt::format("did you mean '{}'?", nearest));
  }
}

/// `folder`: what relative paths are relative to.
Result<Workload> read_workload(TomlDocument& document, const std::string& folder) {
  Workload workload;
  TomlTable root = document.root();
  workload.name = root.required_text("name");
  if (root.has("name")) check_name(root, workload.name);
  workload.description = root.text("description");
  workload.source = root.text("source");
  workload.memory_bytes = root.integer("memory_bytes", workload.memory_bytes, 1U << 20);
  workload.best_effort = root.boolean("best_effort", false);
  workload.keys = read_keys(root.table("keys"));
  workload.values = read_values(root.table("values"));
  check_entry(root.table("values"), workload);
  read_phases(root, folder, workload);
  read_measured_phase(root, workload);
  check_key_room(root.table("keys"), workload);
  ASSAY_TRY(document.finish());
  return workload;
}

}  // namespace

Result<Workload> parse_workload(std::string_view toml, const std::string& file,
                                const Overrides& overrides) {
  Result<TomlDocument> document = TomlDocument::parse(toml, file);
  if (!document) return std::unexpected(document.error());
  for (const auto& [path, value] : overrides) ASSAY_TRY(document->set(path, value));
  return read_workload(*document, std::filesystem::path(file).parent_path().string());
}

Result<Workload> workload_from_json(const nlohmann::json& json) {
  Result<TomlDocument> document = TomlDocument::from_json(json, "canonical workload");
  if (!document) return std::unexpected(document.error());
  return read_workload(*document, "");
}

}  // namespace assay
