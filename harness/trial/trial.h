// One trial: what the parent asks for, and what it gets.
//
// run_trial() makes a marked directory, runs the workload's phases in fresh child processes (a new
// one at every restart or cold run), validates the contents in another one, removes the directory
// and returns the raw record of harness/FORMATS.md. A child that is killed, hangs or runs out of
// disk makes the trial "void"; wrong contents, an error or a crash of the store "disqualify" its
// arm; both are records, not errors. Errors are only for what makes going on pointless (bad
// settings, refused pin, no such store).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "workloads/workload.h"

namespace assay {

/// A store under one setting, as a plan names it.
struct Arm {
  std::string name;   ///< unique within the experiment
  std::string store;  ///< as find_driver takes it
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  bool reference = false;
  /// Waited, busily, in every call of a session: the difference that a positive control injects.
  std::uint64_t delay_ns = 0;
  /// What `settings` leave of `durability` where that is less: the class to show. Follows from the
  /// others, so it is no part of a plan's identity.
  std::optional<DurabilityClass> weakened_to = {};
  std::string cell = {};  ///< of a sweep, whose cells name their arms ARM@CELL; else empty
  /// The arm of another cell whose trials are this one's, too: the cells differ in nothing but the
  /// phase that is looked at. Empty: it has its own. Follows from the others.
  std::string trials_of = {};
};

struct TrialRequest {
  Arm arm;
  Workload workload;
  std::uint64_t seed = 1;
  std::string root;      ///< benchmark root; a marked subdirectory is made and removed
  std::string log_path;  ///< the children's stdout and stderr are appended here
  std::uint64_t timeout_ms = 600'000;
  bool validate = true;
  /// The program that is run as `BINARY worker REQUEST-FILE`; empty = the running one.
  std::string binary;
  /// Void when other processes used more CPUs than this on average during a timed phase, in user
  /// space: what the kernel's threads do (write-back, the journal) is mostly for the store itself.
  /// 0 = no limit. What they used is recorded in any case.
  double max_foreign_cpus = 0.0;
  /// Void when the CPUs' mean frequency changed by more than this share between the edges of the
  /// trial (only under a governor that holds it still), or when the hypervisor took more than this
  /// share of the CPU time; 0 = no limit. Each stands alone.
  double max_frequency_change = 0.0;
  double max_steal_share = 0.0;
};

struct Progress {
  std::string what;       ///< "load", "run", ...
  double fraction = 0.0;  ///< of the trial, 0 to 1
};
using OnProgress = std::function<void(const Progress&)>;

/// Runs one trial. `stop` becoming true ends it soon, with ErrorKind::interrupted.
[[nodiscard]] Result<nlohmann::json> run_trial(const TrialRequest& request,
                                               const std::atomic<bool>& stop,
                                               const OnProgress& progress = {});

/// What a child may use besides the workload's memory_bytes: the harness itself, its code, buffers
/// and histograms.
inline constexpr std::uint64_t kHarnessMemoryBytes = std::uint64_t{64} << 20;

struct WindowPlan {
  std::uint64_t operations = 10;  ///< a thread in one window
  std::uint64_t windows = 20;     ///< an arm
  std::uint64_t seed = 1;         ///< of the order
  /// Void when an idle arm used more than this share of one CPU while another one was active.
  double max_idle_cpu_fraction = 0.1;
};

/// The `windows` design: one process an arm, all loaded and open, one active at a time. Returns
/// one raw record an arm, whose measured phase also carries "windows": [throughput of each].
[[nodiscard]] Result<std::vector<nlohmann::json>> run_window_set(
    const std::vector<TrialRequest>& arms, const WindowPlan& plan, const std::atomic<bool>& stop,
    const OnProgress& progress = {});

/// Entry of the child process: `assay worker REQUEST-FILE`. Returns its exit status.
int worker_main(const std::string& request_path);

/// Removes marked trial directories below `root` whose owner process is gone.
void remove_stale_trials(const std::string& root);

}  // namespace assay
