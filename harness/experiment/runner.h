// Runs the trials of a plan in their order, records each before the next begins, and ends with a
// verdict. A run that was stopped (Ctrl-C, kill, full disk) is resumed by running it again.
//
// Invariants: the registration of a registered plan and the plan record are on the disk before the
// first sample; a raw record is on the disk
// before the ledger names it; no verdict before every planned trial has its value or the
// experiment is void; an existing result is never written over.
// One thread; the stop flag may be set from anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/doctor/checks.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/progress.h"
#include "harness/trial/timed_batch.h"
#include "harness/trial/trial.h"

namespace assay {

using TrialFunction = std::function<Result<nlohmann::json>(
    const TrialRequest&, const std::atomic<bool>&, const OnProgress&)>;
using WindowSetFunction = std::function<Result<std::vector<nlohmann::json>>(
    const std::vector<TrialRequest>&, const WindowPlan&, const std::atomic<bool>&,
    const OnProgress&)>;

/// What a run does its work with. The defaults are the real ones; tests put fakes in.
struct RunServices {
  TrialFunction run_trial;
  WindowSetFunction run_window_set;
  std::function<void(const std::string&)> remove_stale_trials;
  /// Provenance of this run (harness/provenance); needs "fingerprint" and "binary"."sha256".
  std::function<nlohmann::json(const Plan&)> provenance;
  /// A sentence about the device's flushes when they are too fast to be true; else empty.
  std::function<std::string(const std::string& root)> flush_warning;
  std::function<std::string(const Workload&, std::uint64_t seed)> stream_digest;
  /// Operations a latency sample, for the phases whose plan leaves them open.
  std::function<Result<std::vector<TimedBatchChoice>>(const Workload&, std::uint64_t seed)>
      choose_timed_batches;
  /// What else must not change within a result: what each arm's store gives (version, class,
  /// settings), whether caches can be dropped, whether memory is held to the budget. Recorded as
  /// "conditions" of the provenance. Empty function: nothing else.
  std::function<nlohmann::json(const Plan&)> conditions;
  /// The machine as the doctor sees it, for plans that demand something of it. `watching`: what
  /// others do is watched for a while as well. Empty function: nothing is looked at.
  std::function<std::vector<doctor::Finding>(const Plan&, bool watching)> look_at_machine;
  [[nodiscard]] static RunServices real(std::vector<std::string> command_line);
};

struct RunRequest {
  std::string tree = ".";   ///< folder with ledgers/, results/ and runs/
  bool registered = false;  ///< the plan is ledgers/NAME/experiment.toml of that tree
  std::string out;          ///< result directory of one's own; empty = as in FORMATS.md
  bool fresh = false;       ///< never resume, begin a new result
};

enum class RunEnd : std::uint8_t { judged, void_experiment, disqualified, rejected, regression };

struct RunOutcome {
  RunEnd end = RunEnd::judged;
  std::string ledger_path;
  std::string result;
  std::string directory;  ///< of the result
  bool resumed = false;
  nlohmann::json verdict;  ///< body of the verdict record
  std::string head;        ///< hash of the ledger's last record
};

/// Errors: plan_changed when the name has a plan record of another digest; ledger, environment as
/// they come; interrupted when `stop` was set (what is done is recorded).
[[nodiscard]] Result<RunOutcome> run_experiment(const Plan& plan, const RunRequest& request,
                                                const RunServices& services,
                                                const std::atomic<bool>& stop,
                                                RunObserver& observer);

}  // namespace assay
