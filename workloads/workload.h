// A declared workload: what is loaded, what is run, by how many threads, under which policies.
//
// parse_workload() reads TOML; every unknown or duplicate key, wrong type and impossible range is
// an error with file, line and the nearest valid name. to_json() gives the canonical form: every
// default filled in, keys sorted. The operation stream (stream.h) is a pure function of this
// struct and a seed. Units are part of every key; integers wherever possible.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "adapters/table_store.h"

namespace assay {

enum class OpKind : std::uint8_t {
  read,
  update,  ///< put of a key that exists
  insert,  ///< put of a new key, taken from the thread's own range
  erase,
  scan,               ///< `scan_entries` entries from a drawn key
  reverse_scan,       ///< the same, backward
  read_modify_write,  ///< get, then put of the same key
  batch,              ///< one atomic apply() of `batch_keys` updates
  rollback,           ///< `batch_keys` updates in a transaction that is rolled back
};
inline constexpr std::size_t kOpKinds = 9;
[[nodiscard]] std::string_view to_string(OpKind kind);
[[nodiscard]] constexpr bool is_write(OpKind kind) {
  return kind != OpKind::read && kind != OpKind::scan && kind != OpKind::reverse_scan;
}

struct KeySpec {
  std::uint64_t count = 0;  ///< keys that the load phase puts there
  KeyKind kind = KeyKind::u64;
  std::uint32_t bytes = 8;  ///< fixed size of a key; 8 for u64
  /// hashed: index i becomes a pseudo-random key by a bijection (no key table, no collision);
  /// ordered: key order is index order.
  bool hashed = true;
  std::string prefix;  ///< bytes keys only: text that every key begins with
  /// A phase replays a trace, whose keys are bytes of any form. Derived, not declared.
  bool foreign = false;
  bool operator==(const KeySpec&) const = default;
};

enum class ValueSizes : std::uint8_t { fixed, uniform, lognormal };
struct ValueSpec {
  ValueSizes sizes = ValueSizes::fixed;
  std::uint32_t bytes = 100;    ///< fixed size, or the median of lognormal
  std::uint32_t min_bytes = 0;  ///< uniform and lognormal (clamped)
  std::uint32_t max_bytes = 0;  ///< uniform and lognormal (clamped)
  double sigma = 0.0;           ///< lognormal: standard deviation of ln(size)
  double compressible = 0.0;    ///< fraction of each value that compresses to nothing, 0 to 1
  bool operator==(const ValueSpec&) const = default;
};

enum class DistributionKind : std::uint8_t {
  uniform,
  zipfian,
  latest,
  sequential,
  hot_prefix,
  hot_set,
};
struct Distribution {
  DistributionKind kind = DistributionKind::uniform;
  double theta = 0.99;           ///< zipfian and latest: skew, 0 < theta < 1 or > 1
  bool scrambled = true;         ///< zipfian, hot_set: popular items spread over the indices
  double hot_fraction = 0.2;     ///< hot_set: share of the keys; hot_prefix: n/64, 1/64 by default
  double hot_probability = 0.8;  ///< share of the draws that go there; hot_prefix: 1 by default
  bool operator==(const Distribution&) const = default;
};

struct Arrival {
  double rate_per_s = 0.0;  ///< 0 = closed loop; else open loop, operations a second a thread
  bool poisson = false;     ///< exponential gaps instead of constant ones
  bool operator==(const Arrival&) const = default;
};

/// A group of threads that do the same thing.
struct Role {
  std::string name;
  std::uint32_t threads = 1;
  std::array<double, kOpKinds> mix{};  ///< weights by OpKind; normalised when parsed
  Distribution distribution;
  std::uint32_t scan_entries_min = 1;  ///< uniform in [min, max]
  std::uint32_t scan_entries_max = 100;
  std::uint32_t batch_keys = 1;
  Arrival arrival;
  std::vector<int> cpus;  ///< pins, one CPU a thread round robin; empty = not pinned
  /// A supporting role runs beside the measured ones and ends when they do (its figures are
  /// reported apart and do not count into the phase's throughput).
  bool background = false;
  bool operator==(const Role&) const = default;
};

enum class WarmUpPolicy : std::uint8_t { none, fixed, steady };
struct WarmUp {
  WarmUpPolicy policy = WarmUpPolicy::none;
  std::uint64_t operations = 0;  ///< fixed: a thread; exactly one of operations and ms
  std::uint64_t ms = 0;
  std::uint64_t window_ms = 500;  ///< steady: rate is fitted over this many ms
  double max_slope_per_s = 0.02;  ///< steady: relative change of the rate a second
  std::uint64_t max_ms = 30'000;  ///< steady: give up after this, recorded as "not reached"
  bool operator==(const WarmUp&) const = default;
};

enum class CachePolicy : std::uint8_t { as_is, warm, cold_files, cold };

/// How the process of a restart phase ends.
enum class RestartHow : std::uint8_t {
  close,  ///< Store::close, then exit
  kill,   ///< SIGKILL after the last acknowledged operation; the store is never closed
};

/// Phase::timed_batch: as many operations a sample as make the clock negligible here.
inline constexpr std::uint32_t kTimedBatchAuto = 0;
/// The most operations that one sample may cover.
inline constexpr std::uint32_t kTimedBatchMax = 256;

enum class PhaseKind : std::uint8_t {
  load,         ///< puts keys.count keys
  run,          ///< roles at work; the timed part
  restart,      ///< close or kill, fresh process, open (open is timed: recovery)
  rebuild,      ///< close, fresh process, index removed, made again (this is timed), open
  sync,         ///< Store::sync
  checkpoint,   ///< Store::checkpoint
  settle,       ///< Store::settle
  load_tables,  ///< makes and loads the tables of the trade data set, keys.count trades
  table,        ///< one operation of table_store.h over them, several times
};

struct Phase {
  PhaseKind kind = PhaseKind::run;
  std::string name;   ///< unique within the workload
  bool timed = true;  ///< counts as a result
  // load
  /// load: indices in the order of a pseudo-random permutation, else ascending. (Ascending is key
  /// order for ordered keys only.)
  bool random_order = true;
  std::uint32_t load_batch = 1000;  ///< load: keys an apply(); 1 = put()
  std::uint32_t load_threads = 1;
  // run
  std::vector<Role> roles;
  std::uint64_t operations = 0;  ///< a thread; exactly one of operations and duration_ms
  std::uint64_t duration_ms = 0;
  WarmUp warm_up;
  CachePolicy cache = CachePolicy::as_is;
  double max_resident = 0.02;  ///< cold: largest share of the files that may still be cached
  /// cold: as many bytes may be cached in any case. Opening a store brings in its first pages and
  /// what it maps, whatever the size of the data.
  std::uint64_t max_resident_bytes = 65'536;
  /// run: operations that one latency sample covers; its figure is their mean. kTimedBatchAuto:
  /// decided before the first trial. The operations themselves do not depend on it.
  std::uint32_t timed_batch = 1;
  // load_tables (with load_batch: rows a commit)
  std::uint64_t data_seed = 1;  ///< of the data set: the same in every trial
  // table (with operations: timed runs; warm_up: excluded ones; cache)
  TableOperation operation = TableOperation::full_scan;
  std::uint64_t rows = 0;  ///< that it touches; 0 = as many as are declared for it
  // restart
  RestartHow how = RestartHow::close;
  /// run: a file of operations captured elsewhere (trace_file.h) instead of a mix, an absolute
  /// path. The only role's mix is then what was found in it, `operations` its length.
  std::string trace;
  double trace_speed = 0.0;  ///< 0 = closed loop; 1 = at the recorded times; 2 = twice as fast
  std::string trace_digest;  ///< of the parsed trace, derived; a changed file is an error
  bool operator==(const Phase&) const = default;
};

struct Workload {
  std::string name;
  std::string description;
  std::string source;  ///< where the definition comes from, if not ours
  KeySpec keys;
  ValueSpec values;
  std::vector<Phase> phases;
  /// The phase whose throughput is the metric of a comparison. Default: the last timed run phase.
  std::string measured_phase;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< every arm's budget,
                                                          ///< the page cache included
  bool best_effort = false;  ///< a root-only step that cannot be done is recorded, not an error
  bool operator==(const Workload&) const = default;
};

/// The phase does something to the tables of the trade data set.
[[nodiscard]] constexpr bool uses_tables(PhaseKind kind) {
  return kind == PhaseKind::load_tables || kind == PhaseKind::table;
}
/// The workload is about tables: it has no keys and values of its own.
[[nodiscard]] bool uses_tables(const Workload& workload);

/// The process ends with the phase, and the next one opens the store again.
[[nodiscard]] constexpr bool ends_process(PhaseKind kind) {
  return kind == PhaseKind::restart || kind == PhaseKind::rebuild;
}

[[nodiscard]] std::string_view to_string(PhaseKind kind);
[[nodiscard]] std::string_view to_string(DistributionKind kind);
[[nodiscard]] std::string_view to_string(WarmUpPolicy policy);
[[nodiscard]] std::string_view to_string(CachePolicy policy);
[[nodiscard]] std::string_view to_string(RestartHow how);
/// "full-scan", "read-columns", ...
[[nodiscard]] std::string_view to_string(TableOperation operation);

/// Replaces single keys of a declaration, as `--set keys.count=1000` does: dotted path -> TOML
/// text.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// Reads a declaration. `file` is for messages.
[[nodiscard]] Result<Workload> parse_workload(std::string_view toml, const std::string& file,
                                              const Overrides& overrides = {});
/// A path to a .toml file, or the name of a shipped workload.
[[nodiscard]] Result<Workload> load_workload(const std::string& name_or_path,
                                             const Overrides& overrides = {});
/// Names of the shipped workloads, sorted.
[[nodiscard]] std::vector<std::string> shipped_workloads();

/// Canonical form and back. from_json(to_json(w)) == w.
[[nodiscard]] nlohmann::json to_json(const Workload& workload);
[[nodiscard]] Result<Workload> workload_from_json(const nlohmann::json& json);

}  // namespace assay
