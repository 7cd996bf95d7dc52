// One arm's trial seen from the parent: its directory, its children one after another, and the
// record that grows from their outcomes. run_trial() drives one of it, run_window_set() several.
//
// Used by one thread. Invariant: after over() is true nothing more is started; record() may be
// called at any time after finish().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/measure/memory_group.h"
#include "harness/measure/system_snapshot.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"

namespace assay {

class TrialRun {
 public:
  /// Makes the directory. `request` and `stop` must outlive the run. `cpus`: what the children may
  /// use, where this thread was moved elsewhere (ParentElsewhere::before()).
  [[nodiscard]] static Result<std::unique_ptr<TrialRun>> make(const TrialRequest& request,
                                                              const std::atomic<bool>& stop,
                                                              OnProgress progress,
                                                              std::vector<int> cpus = {});

  [[nodiscard]] const std::vector<PhaseSegment>& segments() const { return segments_; }
  /// Starts the process of segment `number`.
  [[nodiscard]] Status start(std::size_t number, bool windows);
  /// Handles the child's messages until one has the member `wanted` (which is returned) or the
  /// child has ended (nothing is returned). A timeout ends the child and makes the trial void;
  /// stop is ErrorKind::interrupted.
  [[nodiscard]] Result<std::optional<nlohmann::json>> pump(const std::string& wanted);
  bool send(const std::string& line) { return child_->send(line); }
  /// Takes over the outcome of the child that has ended. An error is for the caller of the trial.
  [[nodiscard]] Status collect();
  /// start, pump and collect.
  [[nodiscard]] Status run_segment(std::size_t number);
  /// Validates the contents in a fresh process, or notes why not.
  [[nodiscard]] Status validate();
  /// Ends the child if there is one, as an idle arm of a window set whose other arm failed.
  void abandon(const std::string& reason);

  [[nodiscard]] bool over() const { return status_ != "ok"; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void make_void(std::string reason);
  /// Completes the record: drain, space, machine state, times.
  [[nodiscard]] nlohmann::json finish();
  /// The entry of the measured phase in the record so far, null when it has not been run.
  [[nodiscard]] nlohmann::json* measured_phase();
  [[nodiscard]] pid_t child_pid() const { return child_ ? child_->pid() : 0; }
  [[nodiscard]] const TrialRequest& request() const { return request_; }

 private:
  TrialRun(const TrialRequest& request, const std::atomic<bool>& stop, OnProgress progress,
           TrialDirectory directory, std::vector<int> cpus);
  [[nodiscard]] Status spawn(const WorkerRequest& worker);
  [[nodiscard]] WorkerRequest worker_request() const;
  [[nodiscard]] Status take_run(const nlohmann::json& outcome);
  [[nodiscard]] Status take_validation(const nlohmann::json& outcome);
  [[nodiscard]] Status judge(const Error& error, bool measuring);
  void judge_streams(const nlohmann::json& outcome);
  void judge_machine();
  [[nodiscard]] bool wanted_too_much_memory() const;
  [[nodiscard]] nlohmann::json memory_record() const;
  void note_drain();
  void disqualify(std::string reason);

  const TrialRequest& request_;
  const std::atomic<bool>& stop_;
  OnProgress progress_;
  Progress told_{"starting", 0.0};  ///< what progress_ was told last
  TrialDirectory directory_;
  std::vector<int> cpus_;  ///< handed to the children
  std::vector<PhaseSegment> segments_;
  std::string stream_digest_;  ///< that every child must report
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point child_begun_;
  Result<MemoryGroup> memory_group_;  ///< or why there is none; outlives the child
  std::unique_ptr<ChildProcess> child_;
  WorkerTask task_ = WorkerTask::run;
  std::string outcome_path_;
  unsigned children_ = 0;
  std::uint64_t left_running_ = 0;  ///< processes that the children had left, killed
  std::string status_ = "ok";
  std::string reason_;
  std::uint64_t run_ns_ = 0;    ///< lives of the children that ran phases
  std::uint64_t phase_ns_ = 0;  ///< of that, inside phases and warm-ups
  bool retains_data_ = true;
  std::vector<Executed> executed_;
  Result<SystemSnapshot> machine_before_;
  nlohmann::json record_;
};

}  // namespace assay
