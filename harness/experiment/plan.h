// What an experiment is going to do, fixed before it does it.
//
// A plan is written in TOML (`experiment.toml`) or built from the flags of `assay compare`. Every
// unknown key, wrong type, impossible value, unknown store or setting is an error with file, line
// and the nearest valid name. Its identity is the SHA-256 of its canonical form: JSON with sorted
// keys and every default filled in, so that two spellings of one plan are one plan.
// Plans are plain values; any thread may read one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"
#include "adapters/store.h"
#include "harness/trial/trial.h"
#include "workloads/workload.h"

namespace assay {

enum class Design : std::uint8_t {
  random,   ///< trials in completely random order; Welch's t-test
  blocks,   ///< every arm once a block, in Williams' order; paired t-test on the blocks
  windows,  ///< sets of processes, one an arm, that take turns; paired t-test on the sets
};
[[nodiscard]] std::string_view to_string(Design design);

[[nodiscard]] bool is_paired(Design design);
/// What a plan's `trials` counts: "trials an arm", "blocks" or "sets".
[[nodiscard]] std::string_view unit_of_trials(Design design);

/// What is compared: a figure of the workload's measured phase.
struct Metric {
  bool latency = false;                    ///< false: throughput in operations a second
  std::string operation_class;             ///< latency: "read", "update", ...
  std::string percentile;                  ///< latency: "p50", "p90", "p99" or "p999"
  [[nodiscard]] std::string name() const;  ///< "throughput", or "latency p99 of read"
  [[nodiscard]] std::string unit() const;  ///< "operations/s" or "ns"
};

enum class HypothesisKind : std::uint8_t {
  superiority,      ///< a is better than b
  equivalence,      ///< a and b are equal within the margin (TOST)
  non_inferiority,  ///< a is not worse than b by more than the margin
  regression,       ///< a is not worse than its accepted baseline by more than the corridor
};
[[nodiscard]] std::string_view to_string(HypothesisKind kind);

/// A claim about two arms, or about one and its past. The family of all of them is adjusted by
/// Holm.
struct Hypothesis {
  std::string a;
  std::string b;  ///< empty: the accepted baseline (regression)
  HypothesisKind kind = HypothesisKind::superiority;
  double margin_percent = 0.0;  ///< ratios up to 1 + this / 100 count as equal, or as not worse
  bool declared = false;        ///< written in the plan ("a beats b"), not one of every pair
  double corridor = 0.0;        ///< regression: 1.2 allows a to be 1.2 times worse
  std::string relative_to =
      {};  ///< regression: values are shares of this reference's, round by round
};

/// What the value of one process is, where it is not the figure of the measured phase.
enum class ProcessValue : std::uint8_t {
  phase,              ///< the measured phase's figure; of windows their geometric mean
  median_of_windows,  ///< design windows
  restart_hot,        ///< median over the run phases that follow a restart with warm files
};
[[nodiscard]] std::string_view to_string(ProcessValue value);

/// How values become one figure an arm. Not the default where a published experiment did otherwise.
struct Aggregation {
  ProcessValue of_process = ProcessValue::phase;
  std::vector<std::string> phases;  ///< restart_hot: those phases, derived from the workload
  std::uint64_t warm_up_runs = 0;   ///< restart_hot: the first of them that do not count
  /// Over processes: median, Hodges-Lehmann's ratio and a rank test instead of geometric mean and
  /// t-test.
  bool median_of_trials = false;
  std::uint64_t warm_up_trials = 0;  ///< first trials of each arm (blocks, sets) that do not count
};

/// An arm once more with a delay in every call: a difference that the test must see.
struct PositiveControl {
  std::string arm;
  std::string delayed;         ///< name of the delayed one; empty = there is no control
  std::uint64_t delay_ns = 0;  ///< a store call
};

/// One key of a sweep: "workload.PATH" (as in workload_overrides) or "settings.ARM.NAME".
struct SweepAxis {
  std::string key;
  std::string label;                ///< the end of the key that tells it from the others
  std::vector<std::string> values;  ///< as TOML, which here is JSON as well
};

struct Cell;

struct Plan {
  std::string name;
  std::string question;
  std::string file;  ///< where it was read from, for messages; no part of the identity
  Workload workload;
  std::vector<Arm> arms;  ///< as declared, then the A/A twin, then the references
  std::string a_a;        ///< the arm that is run twice; empty = none
  std::string a_a_twin;   ///< name of its second run
  Design design = Design::random;
  std::uint64_t trials = 20;  ///< an arm: processes, blocks or sets
  std::uint64_t seed = 1;     ///< trial k of every arm uses the stream of seed + k
  double alpha = 0.05;
  Metric metric;
  std::vector<Hypothesis> hypotheses;
  Aggregation aggregation;
  PositiveControl control;
  bool mixed_durability = false;
  std::string root;  ///< benchmark root directory
  std::uint64_t trial_timeout_ms = 600'000;
  std::uint64_t void_trials_max = 10;  ///< void trials (or sets) that may be repeated, in all
  // What the machine may do before a trial is void. Each stands alone; 0 = recorded only.
  double foreign_cpus_max = 0.25;     ///< CPUs used by others on average in a timed phase
  double frequency_change_max = 0.2;  ///< relative change of the CPUs' mean frequency
  double steal_share_max = 0.1;       ///< of all CPU time, taken by the hypervisor
  double effect_percent = 10.0;       ///< the smallest effect that the experiment wants to see
  /// Scatter that is expected where no ledger tells it: coefficient of variation between the
  /// trials of an arm (random), or of the ratio within a block or set. 0 = none is declared.
  double cv_percent = 0.0;
  WindowPlan windows;
  /// Items of the doctor that must be as wanted before a run and stay so; in the doctor's order.
  std::vector<std::string> machine_demands;
  std::vector<std::string> notes;  ///< what was left out and why; no part of the identity
  /// Axes of a sweep, by key, and the points of their cross product, the last axis turning fastest.
  /// With cells, `arms` and `hypotheses` are those of all of them, `workload` is the first one's,
  /// and `a_a`, `a_a_twin` and `control` are the cells' own.
  std::vector<SweepAxis> sweep;
  std::vector<Cell> cells;

  [[nodiscard]] const Arm* find_arm(std::string_view arm_name) const;
  /// The arm of that name in the cell of `beside`.
  [[nodiscard]] const Arm* find_arm_beside(const Arm& beside, std::string_view arm_name) const;
  /// What each cell is on its own; the plan itself where nothing is swept.
  [[nodiscard]] std::vector<const Plan*> parts() const;
  /// The plan (of a cell, or this one) that `arm` belongs to.
  [[nodiscard]] const Plan& part_of(const Arm& arm) const;
  [[nodiscard]] bool is_a_a_twin(const Arm& arm) const;
  [[nodiscard]] bool is_control(const Arm& arm) const;
  /// Neither reference nor twin nor control: what the experiment is about.
  [[nodiscard]] bool is_subject(const Arm& arm) const;
  void set_trials(std::uint64_t number);
  /// Trials an arm that are run: those that count, and before them those that warm up.
  [[nodiscard]] std::uint64_t rounds() const { return trials + aggregation.warm_up_trials; }
  /// Trials in all; arms that share another one's have none.
  [[nodiscard]] std::uint64_t trials_in_all() const;
};

/// One point of a sweep: a plan of its own, whose arms carry the cell's name behind their own.
struct Cell {
  std::string name;                 ///< "bytes=16,threads=4": part of file names
  std::vector<std::string> values;  ///< one an axis
  Plan plan;                        ///< without cells
};

/// The axis of a sweep over the phases of one workload: its cells share their trials, each of which
/// has a figure of every phase.
inline constexpr std::string_view kMeasuredPhaseAxis = "workload.measured_phase";

/// ARM of "ARM@CELL"; the whole name where there is no cell.
[[nodiscard]] std::string name_without_cell(const Arm& arm);

/// What a plan is checked against. The defaults are the real ones; tests put fakes in.
struct PlanEnvironment {
  std::function<Result<const Driver*>(std::string_view)> find_store;
  std::function<Result<Workload>(const std::string&, const Overrides&)> find_workload;
  std::vector<int> cpus;  ///< CPUs that this process may run on
  /// A calibration compares a reference with itself; nothing is said about stores then.
  bool references_as_arms = false;
  [[nodiscard]] static PlanEnvironment real();
};

/// Reads a plan. `file` is for messages and the folder that relative workload paths start from.
[[nodiscard]] Result<Plan> parse_plan(std::string_view toml, const std::string& file,
                                      const PlanEnvironment& environment);
[[nodiscard]] Result<Plan> load_plan(const std::string& path, const PlanEnvironment& environment);
/// The same rules for a plan that was put together from flags; keys as in the file.
[[nodiscard]] Result<Plan> plan_from_json(const nlohmann::json& declaration,
                                          const PlanEnvironment& environment);

/// Canonical form: sorted keys, every default filled in.
[[nodiscard]] nlohmann::json to_json(const Plan& plan);
/// A canonical form as an earlier assay recorded it, with the keys that came later filled in by
/// what that assay did. What is recorded is never rewritten.
[[nodiscard]] nlohmann::json migrated_plan(nlohmann::json canonical);
/// SHA-256 of the canonical form.
[[nodiscard]] std::string plan_digest(const nlohmann::json& canonical);
/// Every key in which two JSON values differ, with both values: "trials: 20 -> 30",
/// "arms.1.settings.sync: (none) -> \"off\"". Long values are cut. Empty when they are equal.
[[nodiscard]] std::vector<std::string> differences(const nlohmann::json& before,
                                                   const nlohmann::json& now);
/// At most `most` of them in a sentence: "trials: 20 -> 30; seed: 1 -> 2; and 3 more".
[[nodiscard]] std::string difference_text(const std::vector<std::string>& found, std::size_t most);

/// Default benchmark root, as plans record it: the same for everybody, so that a registered plan
/// is.
inline constexpr std::string_view kDefaultRoot = "/var/tmp/assay-bench";
/// The directory that the plan's root stands for: of the default, one for each user of the machine
/// (its number follows), because who comes second could not write to the first one's.
[[nodiscard]] std::string benchmark_root(const Plan& plan);

}  // namespace assay
