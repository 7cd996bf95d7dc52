#include "harness/trial/trial_run.h"

#include <time.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "workloads/stream_digest.h"

namespace assay {
namespace {

using nlohmann::json;

std::string utc_now() {
  const std::time_t now = ::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::uint64_t ns_since(std::chrono::steady_clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

bool is_full_disk(const Error& error) {
  const std::string text = error.message();
  return text.find("No space left") != std::string::npos ||
         text.find("disk is full") != std::string::npos ||
         text.find("MDB_MAP_FULL") != std::string::npos;
}

/// Errors that would come again in every trial, so that going on is pointless.
bool is_for_the_caller(const Error& error, bool measuring) {
  if (error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::unsupported) return true;
  return error.kind() == ErrorKind::environment && !measuring && !is_full_disk(error);
}

}  // namespace

TrialRun::TrialRun(const TrialRequest& request, const std::atomic<bool>& stop, OnProgress progress,
                   TrialDirectory directory, std::vector<int> cpus)
    : request_(request),
      stop_(stop),
      progress_(std::move(progress)),
      directory_(std::move(directory)),
      cpus_(std::move(cpus)),
      segments_(segments_of(request.workload)),
      stream_digest_(stream_digest(request.workload, request.seed)),
      begun_(std::chrono::steady_clock::now()),
      memory_group_(MemoryGroup::make(request.workload.memory_bytes + kHarnessMemoryBytes)),
      machine_before_(system_snapshot()) {
  const json nothing = unknown_figure("the trial did not come that far");
  record_ = {{"schema", 1},
             {"arm", request.arm.name},
             {"seed", request.seed},
             {"started", utc_now()},
             {"timeout_ms", request.timeout_ms},
             {"store",
              {{"name", request.arm.store},
               {"version", nothing},
               {"durability", std::string(to_string(request.arm.durability))},
               {"settings_declared", request.arm.settings},
               {"settings_effective", nothing},
               {"counters", nothing}}},
             {"phases", json::array()},
             {"recovery_ns", json::array()},
             {"open_ns", nothing},
             {"close_ns", nothing},
             {"drain_ns", nothing},
             {"space",
              {{"files", nothing},
               {"apparent_bytes", nothing},
               {"allocated_bytes", nothing},
               {"entries", nothing}}},
             {"validation", nothing},
             {"stream_digest", ""}};  // a child's word
}

Result<std::unique_ptr<TrialRun>> TrialRun::make(const TrialRequest& request,
                                                 const std::atomic<bool>& stop, OnProgress progress,
                                                 std::vector<int> cpus) {
  if (request.workload.phases.empty())
    return fail(ErrorKind::bad_input,
                fmt::format("workload \"{}\" has no phases", request.workload.name));
  remove_stale_trials(request.root);
  Result<TrialDirectory> directory = TrialDirectory::make(request.root);
  if (!directory) return fail(directory.error());
  return std::unique_ptr<TrialRun>(
      new TrialRun(request, stop, std::move(progress), std::move(*directory), std::move(cpus)));
}

WorkerRequest TrialRun::worker_request() const {
  WorkerRequest worker;
  worker.store = request_.arm.store;
  worker.durability = request_.arm.durability;
  worker.settings = request_.arm.settings;
  worker.delay_ns = request_.arm.delay_ns;
  worker.workload = request_.workload;
  worker.seed = request_.seed;
  worker.directory = directory_.data();
  if (memory_group_) worker.memory_group = memory_group_->directory();
  worker.cpus = cpus_;
  return worker;
}

Status TrialRun::spawn(const WorkerRequest& worker) {
  const unsigned number = children_++;
  WorkerRequest numbered = worker;
  outcome_path_ = fmt::format("{}/outcome-{}.json", directory_.path(), number);
  numbered.outcome_path = outcome_path_;
  task_ = worker.task;
  const std::string path = fmt::format("{}/request-{}.json", directory_.path(), number);
  ASSAY_TRY(hand_over_file(path, to_json(numbered).dump()));
  std::string binary = request_.binary;
  if (binary.empty()) {
    std::error_code code;
    binary = std::filesystem::read_symlink("/proc/self/exe", code);
    if (code) return fail(system_error("cannot find the running program", code.value()));
  }
  child_begun_ = std::chrono::steady_clock::now();
  Result<std::unique_ptr<ChildProcess>> child =
      ChildProcess::start(binary, {"worker", path}, request_.log_path);
  if (!child) return fail(child.error());
  child_ = std::move(*child);
  return {};
}

Status TrialRun::start(std::size_t number, bool windows) {
  WorkerRequest worker = worker_request();
  worker.first_phase = segments_.at(number).first;
  worker.last_phase = segments_.at(number).last;
  worker.windows = windows;
  return spawn(worker);
}

Result<std::optional<json>> TrialRun::pump(const std::string& wanted) {
  constexpr int kGraceMs = 2000;
  constexpr int kLookMs = 50;
  std::string line;
  for (;;) {
    if (stop_.load(std::memory_order_relaxed)) {
      child_->end_now(kGraceMs);
      return fail(ErrorKind::interrupted, "the trial was stopped");
    }
    if (ns_since(begun_) > request_.timeout_ms * 1'000'000) {
      child_->end_now(kGraceMs, SIGQUIT);
      const std::string last = child_->last_log_line();
      make_void(fmt::format("timed out: the trial took longer than {} ms{}{}", request_.timeout_ms,
                            last.empty() ? "" : "; last line of its log: ", last));
      return std::optional<json>{};
    }
    const ChildProcess::Event event = child_->next(line, kLookMs);
    if (event == ChildProcess::Event::ended) return std::optional<json>{};
    if (event == ChildProcess::Event::nothing) {
      if (progress_) progress_(told_);  // a child that tells nothing is still at the same thing
      continue;
    }
    const json message = json::parse(line, nullptr, false);
    if (!message.is_object()) {
      child_->end_now(0);
      return fail(ErrorKind::child, fmt::format("a child said \"{}\" instead of JSON", line));
    }
    if (message.contains(wanted)) return std::optional<json>(message[wanted]);
    if (progress_ && message.contains("progress")) {
      told_ = {message["progress"].value("what", ""), message["progress"].value("fraction", 0.0)};
      progress_(told_);
    }
  }
}

Status TrialRun::collect() {
  const std::string death = child_->wait();
  const bool crashed = child_->crashed();
  left_running_ += child_->left_running();
  child_.reset();
  if (task_ == WorkerTask::run) run_ns_ += ns_since(child_begun_);
  if (over()) return {};  // it was ended by us
  if (wanted_too_much_memory()) {
    disqualify(fmt::format(
        "the kernel killed it for want of memory: the store wanted more than the {} MiB "
        "that every arm has (memory_bytes of the workload)",
        request_.workload.memory_bytes >> 20));
    return {};
  }
  const Result<std::string> text = read_file(outcome_path_);
  const json outcome = text ? json::parse(*text, nullptr, false) : json();
  if (outcome.is_object() && outcome.contains("error"))
    ASSAY_TRY(judge(error_from_json(outcome["error"]), outcome.value("stage", "") == "measuring"));
  const bool killed = outcome.is_object() && outcome.value("killed", false);  // as declared
  if (!outcome.is_object() || (!death.empty() && !killed)) {
    const std::string reason =
        fmt::format("the {} process {}: {}", task_ == WorkerTask::run ? "measured" : "validating",
                    crashed ? "crashed" : "died", death.empty() ? "it left no outcome" : death);
    // Repeating what crashed by its own fault would count the lucky trials only.
    if (crashed)
      disqualify(reason);
    else
      make_void(reason);
    return {};
  }
  return task_ == WorkerTask::run ? take_run(outcome) : take_validation(outcome);
}

Status TrialRun::judge(const Error& error, bool measuring) {
  if (is_for_the_caller(error, measuring)) return fail(error);
  // A store's own error is not a cause from outside: repeating it would count the lucky trials
  // only.
  if (error.kind() == ErrorKind::wrong_contents)
    disqualify(error.message());
  else if (error.kind() == ErrorKind::store)
    disqualify("store error: " + error.message());
  else
    make_void(error.message());
  return {};
}

void TrialRun::judge_streams(const json& outcome) {
  const std::string reported = outcome.value("stream_digest", "");
  if (!reported.empty()) record_["stream_digest"] = reported;
  if (!reported.empty() && reported != stream_digest_)
    make_void(
        fmt::format("the child was given another operation stream than was declared: its "
                    "digest is {:.12}..., not {:.12}...",
                    reported, stream_digest_));
  const std::vector<Phase>& phases = request_.workload.phases;
  for (const json& phase : outcome.value("phases", json::array())) {
    const auto declared = std::ranges::find(phases, phase.value("name", ""), &Phase::name);
    if (declared == phases.end() || !phase.contains("streams")) continue;
    const auto index = static_cast<std::size_t>(declared - phases.begin());
    for (std::uint32_t thread = 0; thread < phase["streams"].size(); ++thread) {
      const json& stream = phase["streams"][thread];
      const StreamPrefix found{stream.at("operations").get<std::uint64_t>(),
                               stream.at("digest").get<std::string>()};
      const StreamPrefix expected =
          expected_prefix(request_.workload, request_.seed, index, thread,
                          phase.at("executed").at(thread).get<std::uint64_t>());
      if (found == expected) continue;
      make_void(
          fmt::format("thread {} of phase \"{}\" has executed other operations than were "
                      "declared: the digest of the first {} is {:.12}..., not {:.12}... of {}",
                      thread, declared->name, found.operations, found.digest, expected.digest,
                      expected.operations));
    }
  }
}

Status TrialRun::take_run(const json& outcome) {
  judge_streams(outcome);
  retains_data_ = outcome.value("retains_data", true);
  for (const json& phase : outcome.value("phases", json::array())) {
    phase_ns_ += phase.value("wall_ns", std::uint64_t{0});
    if (phase.contains("warm_up")) phase_ns_ += phase["warm_up"].value("wall_ns", std::uint64_t{0});
    record_["phases"].push_back(phase);
  }
  for (const json& phase : outcome.value("executed", json::array()))
    executed_.push_back({phase.at("phase").get<std::size_t>(),
                         phase.at("operations").get<std::vector<std::uint64_t>>()});
  if (outcome.contains("open_ns")) {
    if (record_["open_ns"].is_object())
      record_["open_ns"] = outcome["open_ns"];
    else
      record_["recovery_ns"].push_back(outcome["open_ns"]);
  }
  if (outcome.contains("close_ns")) record_["close_ns"] = outcome["close_ns"];
  if (outcome.contains("store")) record_["store"].update(outcome["store"]);
  if (outcome.contains("space")) record_["space"].update(outcome["space"]);
  return {};
}

Status TrialRun::take_validation(const json& outcome) {
  if (outcome.contains("open_ns")) record_["recovery_ns"].push_back(outcome["open_ns"]);
  if (!outcome.contains("validation")) return {};
  record_["validation"] = outcome["validation"];
  record_["space"]["entries"] = outcome["validation"]["entries"];
  if (!outcome["validation"].value("ok", false))
    disqualify("wrong contents: " + outcome["validation"].value("first_difference", ""));
  return {};
}

Status TrialRun::run_segment(std::size_t number) {
  ASSAY_TRY(start(number, false));
  const Result<std::optional<json>> ended = pump("ready");
  if (!ended) return fail(ended.error());
  return collect();
}

Status TrialRun::validate() {
  const auto skip = [&](const std::string& why) {
    record_["validation"] = unknown_figure(why);
    record_["space"]["entries"] = unknown_figure(why);
    return Status{};
  };
  if (over()) return skip("the trial was over before its contents could be validated");
  if (!retains_data_) return skip("the store declares that it retains nothing");
  if (!request_.validate) return skip("validation was not asked for");
  told_ = {"validate", 1.0};
  if (progress_) progress_(told_);
  WorkerRequest worker = worker_request();
  worker.task = WorkerTask::validate;
  worker.executed = executed_;
  ASSAY_TRY(spawn(worker));
  const Result<std::optional<json>> ended = pump("ready");
  if (!ended) return fail(ended.error());
  return collect();
}

void TrialRun::make_void(std::string reason) {
  if (over()) return;
  status_ = "void";
  reason_ = std::move(reason);
}

void TrialRun::disqualify(std::string reason) {
  status_ = "disqualified";
  reason_ = std::move(reason);
}

void TrialRun::abandon(const std::string& reason) {
  if (child_) {
    child_->end_now(0);
    left_running_ += child_->left_running();
  }
  child_.reset();
  make_void(reason);
}

json* TrialRun::measured_phase() {
  const std::size_t measured = measured_phase_index(request_.workload);
  if (measured == request_.workload.phases.size()) return nullptr;
  for (json& phase : record_["phases"])
    if (phase.value("name", "") == request_.workload.phases[measured].name) return &phase;
  return nullptr;
}

void TrialRun::note_drain() {
  const std::string& measured = request_.workload.measured_phase;
  json* timed = nullptr;
  std::uint64_t drain_ns = 0;
  bool drained = false;
  std::optional<std::uint64_t> last;
  std::optional<std::uint64_t> of_measured;
  // The debt that a phase has left is charged to it, beside the plain figure.
  const auto charge = [&] {
    if (timed == nullptr || !drained) return;
    last = drain_ns;
    if (timed->value("name", "") == measured) of_measured = drain_ns;
    const std::uint64_t wall_ns = timed->value("wall_ns", std::uint64_t{0}) + drain_ns;
    if (wall_ns == 0) return;
    (*timed)["throughput_with_drain_per_s"] =
        static_cast<double>(timed->value("operations", std::uint64_t{0})) * 1e9 /
        static_cast<double>(wall_ns);
  };
  for (json& phase : record_["phases"]) {
    const std::string kind = phase.value("kind", "");
    if ((kind == "run" || kind == "load" || kind == "load-tables") && phase.value("timed", false)) {
      charge();
      timed = &phase;
      drain_ns = 0;
      drained = false;
    } else if (timed != nullptr && (kind == "sync" || kind == "checkpoint" || kind == "settle")) {
      drain_ns += phase.value("wall_ns", std::uint64_t{0});
      drained = true;
    }
  }
  charge();
  if (of_measured || last) {
    record_["drain_ns"] = of_measured ? *of_measured : *last;
  } else if (!over()) {
    record_["drain_ns"] = unknown_figure("the workload declares no drain after its run");
  }
}

void TrialRun::judge_machine() {
  const double limit = request_.max_foreign_cpus;
  for (const json& phase : record_["phases"]) {
    if (limit <= 0.0 || !phase.value("timed", false)) continue;
    const json foreign = phase.value("cpu", json::object()).value("foreign_user_ns", json());
    const double wall_ns = phase.value("wall_ns", 0.0);
    if (!foreign.is_number() || wall_ns < 100e6) continue;  // the kernel counts in steps of 10 ms
    if (foreign.get<double>() > limit * wall_ns)
      make_void(fmt::format("other processes used {:.2f} CPUs during phase \"{}\" (limit {:.2f})",
                            foreign.get<double>() / wall_ns, phase.value("name", ""), limit));
  }
  const Result<SystemSnapshot> after = system_snapshot();
  if (!machine_before_ || !after) {
    record_["disturbances"] =
        unknown_figure((machine_before_ ? after : machine_before_).error().message());
    return;
  }
  // Load is judged by phase, above. Throttling, a suspend or a lost CPU count without any limit.
  constexpr double kNoLimit = 1e9;
  const auto limit_or_none = [](double given) { return given > 0.0 ? given : kNoLimit; };
  SnapshotLimits limits;
  limits.foreign_cpu_share = kNoLimit;
  limits.frequency_change = limit_or_none(request_.max_frequency_change);
  limits.steal_share = limit_or_none(request_.max_steal_share);
  const std::vector<std::string> found = disturbances(*machine_before_, *after, limits);
  record_["disturbances"] = found;
  if (!found.empty()) make_void("the machine changed: " + found.front());
}

bool TrialRun::wanted_too_much_memory() const {
  if (!memory_group_) return false;
  const Result<MemoryGroupFigures> figures = memory_group_->figures();
  return figures && figures->killed > 0;
}

json TrialRun::memory_record() const {
  if (!memory_group_)
    return unknown_figure("not held to a budget: " + memory_group_.error().message());
  const Result<MemoryGroupFigures> figures = memory_group_->figures();
  if (!figures) return unknown_figure(figures.error().message());
  return {{"budget_bytes", request_.workload.memory_bytes},
          {"limit_bytes", figures->limit_bytes},
          {"peak_bytes", figures->peak_bytes},
          {"reclaims", figures->reclaims}};
}

json TrialRun::finish() {
  note_drain();
  record_["memory"] = memory_record();
  if (left_running_ > 0) record_["left_running"] = left_running_;
  judge_machine();
  record_["status"] = status_;
  record_["reason"] = reason_;
  record_["wall_ns"] = ns_since(begun_);
  record_["fixed_cost_ns"] = run_ns_ > phase_ns_ ? run_ns_ - phase_ns_ : 0;
  return record_;
}

}  // namespace assay
