// What a report is made from: one result of a ledger, read back and checked.
//
// load_report() reads the ledger's lines, finds the verdict asked for, its plan and its trials, and
// reads every raw record after comparing its SHA-256 with the one the ledger holds. A record that
// is not there takes only the histograms and the time series with it: the rest of a trial is in the
// ledger's own line, and a warning says what is missing. A record that was changed is an error.
// Nothing here measures or judges: every figure shown comes from the records.
// Values are plain data; a ReportModel is built by one thread and read by any number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/result.h"

namespace assay::report {

/// A figure that may not be known. `why` says so when `value` is absent.
struct Quantity {
  std::optional<double> value;
  std::string why;
};

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// One arm of the verdict. Times in ns, sizes in bytes, `geometric_mean` in the verdict's unit.
struct Row {
  std::string arm;
  std::string cell;  ///< of a sweep; else empty
  std::string base;  ///< the arm's name without its cell
  std::string store;
  std::string version;
  std::string durability;
  std::string proof;         ///< "declared", "proven" or "refuted", or what the settings give
  std::string proof_record;  ///< hash of the qualification record that decided; else empty
  bool reference = false;
  bool a_a_twin = false;  ///< the same arm again, for the A/A check
  bool control = false;   ///< an arm again with a delay injected: the positive control
  std::uint64_t n = 0;
  std::uint64_t void_trials = 0;
  bool disqualified = false;
  std::string reason;
  std::vector<double> values;  ///< one a trial process
  Quantity geometric_mean;
  std::optional<Interval> interval;
  Quantity median, cv, share_of_raw;
  Quantity p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
  Quantity barriers_per_operation, device_bytes_per_operation, write_amplification;
  Quantity read_amplification;  ///< records from before it have none
  Quantity disk_bytes_per_entry, rss_peak_bytes, cpu_ns_per_operation, drain_ns, recovery_ns;
};

/// Two arms compared; also the A/A line, whose `verdict` is then "ok" or "not ok".
struct Comparison {
  std::string a;
  std::string b;
  std::string kind;
  std::string test;
  std::string verdict;
  std::string claim;  ///< "shown", "refuted" or "open"; empty in older records
  std::string sentence;
  Quantity ratio, p, p_adjusted, degrees_of_freedom, mann_whitney_p;
  Quantity rank_p_smallest;  ///< the least p that the rank test can give at this n
  std::optional<Interval> interval;
  bool disagreement = false;
  bool declared = false;  ///< a hypothesis of the plan, not one of all pairs
  std::string rank_test;  ///< "mann-whitney" or "wilcoxon"
};

/// Occupied buckets of a latency histogram: highest value of the bucket in ns -> count.
using LatencyCounts = std::map<std::uint64_t, std::uint64_t>;

struct SeriesPoint {
  double t_s = 0.0;
  double rate_per_s = 0.0;
  std::optional<double> p99_ns;
};

/// One trial process, from its raw record, or from the ledger's line where that is missing.
struct Trial {
  std::string arm;
  std::uint64_t index = 0;
  std::optional<std::uint64_t> block;
  std::uint64_t seed = 0;
  std::string status;  ///< "ok", "void" or "disqualified"
  std::string reason;
  std::string started;
  std::string raw_path;  ///< as the ledger gives it
  std::string raw_sha256;
  bool raw_missing = false;  ///< the file is not there: no histograms and no series then
  Quantity wall_ns, throughput_per_s, foreign_cpu_ns;  ///< of the measured phase
  std::map<std::string, LatencyCounts> latencies;      ///< by operation class
  std::vector<SeriesPoint> series;
  std::vector<std::pair<std::string, std::string>> settings;  ///< in force, read back
};

/// A swept key and its values as they were written.
struct SweepAxisShown {
  std::string key;
  std::string label;
  std::vector<std::string> values;
};

struct SweepCell {
  std::string name;
  std::vector<std::string> values;  ///< one an axis
  std::string stream_digest;        ///< cells that share it did the same work
  std::optional<Comparison> a_a;
  std::optional<Comparison> control;
};

struct ReportModel {
  std::string ledger_path;
  std::string result_directory;  ///< holds trials/; where the report belongs
  std::string result;
  std::string machine;  ///< beginning of its fingerprint, of a result in a merged ledger
  std::string experiment;
  std::string status;  ///< "registered" or "exploratory"
  std::string question;
  std::string outcome;  ///< "judged", "rejected", "disqualified" or "void"
  std::vector<std::string> void_reasons;
  std::string measured_phase;
  std::string design;
  std::string metric;
  std::string unit;
  std::string workload;
  std::string plan_digest;
  std::string plan_time;
  std::string verdict_time;
  std::string verdict_hash;  ///< SHA-256 of the verdict's ledger line, as it was first written
  std::string head_hash;     ///< SHA-256 of the ledger's last line
  std::string stream_digest;
  std::uint64_t n = 0;
  double alpha = 0.05;
  bool mixed_durability = false;
  bool lower_is_better = false;      ///< the metric is a time or a size
  std::vector<Row> rows;             ///< by cell; best first, references after all arms
  std::vector<SweepAxisShown> axes;  ///< of a sweep; else empty, as `cells` is
  std::vector<SweepCell> cells;
  std::vector<Comparison> comparisons;
  std::optional<Comparison> a_a;
  std::optional<Comparison> control;  ///< the positive control; its verdict is "ok" or "not ok"
  bool median_of_trials = false;      ///< an arm's figure is a median, not a geometric mean
  Quantity smallest_detectable_ratio;
  Quantity trials_needed;    ///< to see `effect_percent`, at the scatter of this result
  Quantity effect_percent;   ///< the smallest effect that the plan wants to see
  std::string power_source;  ///< what that scatter was taken from
  std::vector<std::string> warnings;
  std::vector<Trial> trials;                                    ///< in the order of the ledger
  std::vector<std::pair<std::string, std::string>> provenance;  ///< "cpu.model" -> "..."
  std::vector<std::pair<std::string, std::string>> plan;        ///< the canonical plan, flattened
  std::string command_line;  ///< of the run, empty when not recorded
  std::string verdict_json;  ///< the verdict's body, keys sorted
  std::string plan_json;     ///< the plan's body, keys sorted
};

/// Reads result `result_id` of the ledger (empty = the newest verdict) with those of its raw
/// records that are there. Errors: bad_input for a missing ledger, an unknown result (lists the
/// valid ones) or a result without a verdict; ledger for a broken line or chain and for a raw
/// record that was changed (names the file and line).
/// In a merged ledger a result is that of one machine: `machine` is a beginning of its fingerprint,
/// asked for where several share the name. Its reports belong beside the merged ledger.
[[nodiscard]] Result<ReportModel> load_report(const std::string& ledger_path,
                                              const std::string& result_id,
                                              const std::string& machine = {});

/// A comparison of the result shows that `arm` is ahead of `other`.
[[nodiscard]] bool shows_ahead(const ReportModel& model, const std::string& arm,
                               const std::string& other);

/// The ledger a user means by `name`: a file, a directory that holds ledger.jsonl, or an
/// experiment of ledgers/. Error bad_input with the nearest experiment's name.
[[nodiscard]] Result<std::string> find_ledger(const std::string& name);

/// "3 of 9 raw records are missing (the first: FILE): ..." and what that costs; empty when all are
/// there.
[[nodiscard]] std::string missing_raws_text(const ReportModel& model);

/// "rocksdb 7.8.3", or "rocksdb-tuned (rocksdb 7.8.3)" when the arm has a name of its own.
[[nodiscard]] std::string row_title(const Row& row);
/// "power (declared)".
[[nodiscard]] std::string durability_text(const Row& row);

}  // namespace assay::report
