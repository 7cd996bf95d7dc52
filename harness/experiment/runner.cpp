#include "harness/experiment/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "harness/experiment/baseline.h"
#include "harness/experiment/machine_demands.h"
#include "harness/experiment/power_forecast.h"
#include "harness/experiment/qualification.h"
#include "harness/experiment/registration.h"
#include "harness/experiment/result_place.h"
#include "harness/experiment/run_parts.h"
#include "harness/experiment/run_state.h"
#include "harness/experiment/timed_batches.h"
#include "harness/experiment/verdict.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/provenance/sha256.h"
#include "harness/trial/trial_directory.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Run {
 public:
  Run(const Plan& plan, const RunRequest& request, const RunServices& services,
      const std::atomic<bool>& stop, RunObserver& observer)
      : plan_(plan), request_(request), services_(services), stop_(stop), observer_(observer) {}

  Result<RunOutcome> go();

 private:
  Status prepare();
  Status fix_plan();
  Status choose_baseline(const LedgerRecord* resumed);
  Status begin_result(const LedgerRecord* resumed);
  void note_unnamed_records();
  void leave_nothing();
  [[nodiscard]] std::optional<Scatter> known_scatter(const std::string& fingerprint) const;
  Status run_turns();
  Status run_single(const Turn& turn);
  Status run_set(const Plan& part, std::uint64_t round);
  Status choose_timed_batches();
  Result<bool> record(nlohmann::json raw, const TrialRequest& trial, std::uint64_t round,
                      std::uint64_t attempt);
  TrialRequest request_for(const Arm& arm, std::uint64_t round, std::uint64_t ahead);
  Status check_streams(const nlohmann::json& raw);
  Status check_conditions(const nlohmann::json& body);
  Status stopped(const Error& error);
  Status too_many_voids();
  Result<RunOutcome> judge();
  [[nodiscard]] std::uint64_t trials_done() const;

  const Plan& plan_;
  const std::string root_ = benchmark_root(plan_);
  const RunRequest& request_;
  const RunServices& services_;
  const std::atomic<bool>& stop_;
  RunObserver& observer_;

  nlohmann::json canonical_;
  std::string digest_;
  nlohmann::json provenance_;
  std::string stream_digest_;
  std::optional<LedgerWriter> ledger_;
  ResultPlace place_;
  std::optional<RunState> state_;
  std::map<std::string, std::string> stream_digests_;  ///< by cell, of a sweep
  /// Cell and seed -> digest, arm.
  std::map<std::pair<std::string, std::uint64_t>, std::pair<std::string, std::string>> streams_;
  std::map<std::string, nlohmann::json> conditions_;  ///< arm -> those of its first sound trial
  bool folder_is_new_ = false;
  std::string registration_;  ///< hash of its record
  std::string why_new_;       ///< what differs from the result that is not gone on with
  std::optional<Baseline> baseline_;
  nlohmann::json machine_;  ///< what was found of what the plan demands of it
  nlohmann::json power_;    ///< what the trials are expected to see, before they run
  /// By cell ("" without a sweep): the same for every arm and trial of it.
  std::map<std::string, std::vector<TimedBatchChoice>> timed_batches_;
  std::vector<std::string> warnings_;
  std::vector<std::string> void_reasons_;
};

Status Run::prepare() {
  canonical_ = to_json(plan_);
  digest_ = plan_digest(canonical_);
  provenance_ = services_.provenance(plan_);
  if (services_.conditions) provenance_["conditions"] = services_.conditions(plan_);
  stream_digest_ = services_.stream_digest(plan_.workload, plan_.seed);
  for (const Cell& cell : plan_.cells) {
    stream_digests_[cell.name] = services_.stream_digest(cell.plan.workload, plan_.seed);
  }
  ASSAY_TRY(prepare_root(root_));  // before any trace of the run is made
  auto machine = check_machine(plan_, services_, observer_);
  if (!machine) return fail(machine.error());
  machine_ = std::move(*machine);
  services_.remove_stale_trials(root_);
  const RunIdentity identity = identity_of(digest_, provenance_);
  const auto ledger_path = choose_ledger(plan_, request_, identity);
  if (!ledger_path) return fail(ledger_path.error());
  std::error_code error;
  const std::string folder = folder_of(*ledger_path);
  folder_is_new_ =
      !request_.registered && (!fs::exists(folder, error) || fs::is_empty(folder, error));
  ASSAY_TRY(make_directories_durably(folder));
  auto ledger = LedgerWriter::open(*ledger_path);
  if (!ledger) {
    if (folder_is_new_) ::rmdir(folder.c_str());
    return fail(ledger.error());
  }
  ledger_.emplace(std::move(*ledger));
  if (!ledger_->torn_file().empty()) {
    observer_.note(
        fmt::format("the ledger ended in half a line, left by a run that was killed; it "
                    "was moved to {}",
                    ledger_->torn_file()));
  }
  ASSAY_TRY(check_clock(ledger_->records(), utc_now(), *ledger_path));
  if (request_.registered) ASSAY_TRY(fix_plan());
  power_ = power_before(plan_, known_scatter(identity.fingerprint));
  const LedgerRecord* resumed =
      request_.fresh ? nullptr : resumable_plan(ledger_->records(), identity);
  if (resumed == nullptr && !request_.fresh) {
    why_new_ = why_new_result(ledger_->records(), digest_, provenance_);
    if (!why_new_.empty()) observer_.note(why_new_);
  }
  return begin_result(resumed);
}

/// The registration, before anything is measured, and the baseline that it may ask for.
Status Run::fix_plan() {
  const std::size_t before = ledger_->records().size();
  auto registration = ensure_registered(*ledger_, plan_, request_.tree, "first run", provenance_);
  if (!registration) {
    ledger_->remove_if_empty();
    return fail(registration.error());
  }
  if (ledger_->records().size() != before) {
    observer_.note(
        fmt::format("registered with this run, before its first sample: plan {:.12}, "
                    "record {:.12}",
                    registration->digest, registration->hash));
  }
  registration_ = registration->hash;
  return {};
}

/// The newest accepted result, which hypotheses of regression are held against. Kept by a result
/// that is resumed.
Status Run::choose_baseline(const LedgerRecord* resumed) {
  const bool asked =
      std::any_of(plan_.hypotheses.begin(), plan_.hypotheses.end(),
                  [](const Hypothesis& one) { return one.kind == HypothesisKind::regression; });
  if (!asked) return {};
  const std::string kept =
      resumed == nullptr
          ? std::string()
          : resumed->body.value("baseline", nlohmann::json::object()).value("record", "");
  if (resumed != nullptr && kept.empty()) return {};
  auto baseline = accepted_baseline(ledger_->records(), kept, provenance_, ledger_->path());
  if (!baseline) return fail(baseline.error());
  baseline_ = std::move(*baseline);
  return {};
}

/// From this ledger, else from an earlier exploratory run of the same name.
std::optional<Scatter> Run::known_scatter(const std::string& fingerprint) const {
  constexpr std::size_t kMostLedgers = 5;
  auto scatter = recorded_scatter(plan_, ledger_->records(), fingerprint);
  if (scatter || request_.registered) return scatter;
  std::size_t looked_at = 0;
  for (const std::string& path : earlier_runs(plan_, request_)) {
    if (path == ledger_->path() || ++looked_at > kMostLedgers) continue;
    const auto contents = read_ledger(path);
    if (contents) scatter = recorded_scatter(plan_, contents->records, fingerprint);
    if (scatter) break;
  }
  return scatter;
}

Status Run::begin_result(const LedgerRecord* resumed) {
  const std::string ledger_path = ledger_->path();
  place_ = resumed != nullptr ? place_of(*resumed, request_, ledger_path)
                              : new_place(plan_, request_, ledger_path, digest_);
  state_.emplace(plan_, place_.result);
  ASSAY_TRY(choose_baseline(resumed));
  if (resumed != nullptr) {
    ASSAY_TRY(make_directories_durably(place_.directory + "/trials"));
    note_unnamed_records();
    state_->load(ledger_->records());
    for (const Plan* part : plan_.parts()) {
      const std::string& cell = part->arms.front().cell;
      timed_batches_[cell] = timed_batches_from_json(resumed->body, cell);
    }
    for (const TrialEntry& trial : state_->trials()) {
      ASSAY_TRY(check_streams(trial.body));
      if (!check_conditions(trial.body)) break;  // void: nothing more is run, and it is judged so
    }
    return {};
  }
  ASSAY_TRY(choose_timed_batches());
  // The record first: a folder without one would belong to no result.
  nlohmann::json body = {{"result", place_.result},
                         {"directory", recorded_path(place_, place_.directory)},
                         {"experiment", canonical_},
                         {"digest", digest_},
                         {"status", request_.registered ? "registered" : "exploratory"},
                         {"provenance", provenance_},
                         {"notes", plan_.notes},
                         {"timed_batches", timed_batches_of_cells(timed_batches_)},
                         {"power", power_},
                         {"stream_digest", stream_digest_}};
  if (request_.registered) body["registration"] = registration_;
  if (!stream_digests_.empty()) body["stream_digests"] = stream_digests_;
  if (!plan_.machine_demands.empty()) body["machine_demands"] = machine_;
  if (!why_new_.empty()) body["new_because"] = why_new_;
  if (baseline_) {
    body["baseline"] = {{"record", baseline_->record}, {"result", baseline_->result}};
  }
  const auto hash = ledger_->append("plan", std::move(body));
  if (!hash) {
    leave_nothing();
    return fail(hash.error());
  }
  return make_directories_durably(place_.directory + "/trials");
}

Status Run::choose_timed_batches() {
  if (!services_.choose_timed_batches) return {};
  for (const Plan* part : plan_.parts()) {
    auto chosen = services_.choose_timed_batches(part->workload, plan_.seed);
    if (!chosen) return fail(chosen.error());
    timed_batches_[part->arms.front().cell] = std::move(*chosen);
  }
  return {};
}

/// A kill between a raw record and its line leaves one, a ledger whose tail was cut leaves more.
void Run::note_unnamed_records() {
  const auto unnamed = unnamed_raw_records(place_.directory, ledger_->records(), place_.result);
  if (unnamed.empty()) return;
  warnings_.push_back(fmt::format(
      "{} raw record{} of this result {} named by no line of the ledger (the first: {}): a run was "
      "killed at that moment, or the ledger's tail was cut and samples were dropped",
      unnamed.size(), unnamed.size() == 1 ? "" : "s", unnamed.size() == 1 ? "is" : "are",
      unnamed.front()));
  observer_.note(warnings_.back());
}

/// After a plan that could not be recorded: an empty ledger, and folders that hold nothing else,
/// go.
void Run::leave_nothing() {
  ledger_->remove_if_empty();
  if (!folder_is_new_) return;
  const std::string folder = folder_of(ledger_->path());
  ::rmdir(folder.c_str());  // refused while anything is in it
  if (request_.out.empty()) ::rmdir(folder_of(folder).c_str());
}

std::uint64_t Run::trials_done() const {
  std::uint64_t done = 0;
  for (const Arm& arm : plan_.arms) {
    if (!arm.trials_of.empty()) continue;
    for (std::uint64_t round = 0; round < plan_.rounds(); ++round) {
      done += state_->done(arm.name, round) ? 1 : 0;
    }
  }
  return done;
}

TrialRequest Run::request_for(const Arm& arm, std::uint64_t round, std::uint64_t ahead) {
  TrialRequest trial;
  trial.arm = arm;
  trial.workload = plan_.part_of(arm).workload;
  apply_timed_batches(timed_batches_[arm.cell], trial.workload);
  trial.seed = plan_.seed + round;
  trial.root = root_;
  trial.timeout_ms = plan_.trial_timeout_ms;
  trial.max_foreign_cpus = plan_.foreign_cpus_max;
  trial.max_frequency_change = plan_.frequency_change_max;
  trial.max_steal_share = plan_.steal_share_max;
  // A raw record that no ledger line names (killed in between) keeps its number.
  std::uint64_t index = state_->next_index() + ahead;
  std::error_code error;
  const auto stem = [&] {
    return fmt::format("{}/trials/{:04}-{}", place_.directory, index, arm.name);
  };
  while (fs::exists(stem() + ".json", error)) ++index;
  trial.log_path = stem() + ".log";
  return trial;
}

Status Run::check_streams(const nlohmann::json& raw) {
  const std::string digest = raw.value("stream_digest", "");
  if (digest.empty() || raw.value("status", "") != "ok") return {};
  const std::string arm = raw.value("arm", "");
  const auto [known, added] = streams_.try_emplace(
      {raw.value("cell", ""), raw.value("seed", std::uint64_t{0})}, std::pair(digest, arm));
  if (added || known->second.first == digest) return {};
  return fail(ErrorKind::internal,
              fmt::format("arms {} and {} were given different operation streams for one seed: "
                          "{:.12}... and {:.12}...",
                          known->second.second, arm, known->second.first, digest));
}

/// Writes the raw record, then the ledger's. True when the trial was sound or disqualified.
Result<bool> Run::record(nlohmann::json raw, const TrialRequest& trial, std::uint64_t round,
                         std::uint64_t attempt) {
  const std::string raw_path =
      trial.log_path.substr(0, trial.log_path.size() - std::string_view(".log").size()) + ".json";
  const std::string number = fs::path(raw_path).filename().string();
  raw["schema"] = 1;
  raw["result"] = place_.result;
  raw["experiment"] = plan_.name;
  raw["arm"] = trial.arm.name;
  if (!trial.arm.cell.empty()) raw["cell"] = trial.arm.cell;
  for (const Arm& other : plan_.arms) {
    if (other.trials_of == trial.arm.name) raw["counts_for"].push_back(other.name);
  }
  raw["index"] = std::stoull(number.substr(0, number.find('-')));
  raw["round"] = round;
  raw["attempt"] = attempt;
  if (plan_.design != Design::random) raw["block"] = round;
  raw["seed"] = trial.seed;
  const std::string text = raw.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  ASSAY_TRY(create_file_durably(raw_path, text));
  nlohmann::json body = ledger_form(raw);
  body["raw"] = {{"path", recorded_path(place_, raw_path)}, {"sha256", sha256_hex(text)}};
  const auto hash = ledger_->append("trial", body);
  if (!hash) return fail(hash.error());
  state_->add(body);
  ASSAY_TRY(check_streams(raw));
  ASSAY_TRY(check_conditions(body));
  return body.value("status", "") != "void";
}

/// Trials of one arm on another version, other settings or another state of the cache are not
/// trials of one thing.
Status Run::check_conditions(const nlohmann::json& body) {
  const std::string arm = body.value("arm", "");
  const Arm* planned = plan_.find_arm(arm);
  if (body.value("status", "") != "ok" || planned == nullptr || planned->reference) return {};
  const nlohmann::json now = conditions_of_trial(body, declared_settings(provenance_, arm));
  const auto [known, added] = conditions_.try_emplace(arm, now);
  if (added || known->second == now) return {};
  void_reasons_.push_back(fmt::format("arm {} did not stay the same within the result: {}", arm,
                                      difference_text(differences(known->second, now), 4)));
  return fail(ErrorKind::void_experiment, void_reasons_.back());
}

/// Records that the run ended early and hands the error on, with how to go on.
Status Run::stopped(const Error& error) {
  observer_.run_ends();
  const std::uint64_t planned = plan_.trials_in_all();
  const auto hash = ledger_->append("interrupted", {{"result", place_.result},
                                                    {"done", trials_done()},
                                                    {"planned", planned},
                                                    {"reason", error.message()}});
  if (!hash) return fail(hash.error());
  Error told = error;
  if (error.kind() == ErrorKind::interrupted) {
    told = Error(ErrorKind::interrupted,
                 fmt::format("stopped after {} of {} trials; all of them are recorded in {}",
                             trials_done(), planned, ledger_->path()))
               .hint(request_.fresh ? "run the same command without --new to go on from there"
                                    : "run the same command again to go on from there");
  }
  return fail(told);
}

Status Run::too_many_voids() {
  if (state_->void_turns() <= plan_.void_trials_max) return {};
  void_reasons_ = void_reasons_of(plan_, *state_);
  return fail(ErrorKind::void_experiment, void_reasons_.front());
}

Status Run::run_single(const Turn& turn) {
  const Arm& arm = plan_.arms[turn.arm];
  while (!state_->done(arm.name, turn.round)) {
    if (stop_.load()) return fail(ErrorKind::interrupted, "stopped");
    const std::uint64_t attempt = state_->attempts(arm.name, turn.round);
    const TrialRequest trial = request_for(arm, turn.round, 0);
    observer_.trial_begins(arm.name, 1);
    const std::string before = machine_now(plan_, services_);
    auto raw = services_.run_trial(
        trial, stop_, [this](const Progress& progress) { observer_.trial_progress(progress); });
    if (!raw) {
      Error error = raw.error();
      return fail(error.in("arm " + arm.name));
    }
    void_disturbed(before, machine_now(plan_, services_), {&*raw});
    const auto kept = record(std::move(*raw), trial, turn.round, attempt);
    if (!kept) return fail(kept.error());
    const TrialEntry& entry = state_->trials().back();
    observer_.trial_ends(arm.name, 1, entry.status, entry.reason);
    ASSAY_TRY(too_many_voids());
  }
  return {};
}

Status Run::run_set(const Plan& part, std::uint64_t round) {
  const std::string& cell = part.arms.front().cell;
  SeedSequence order(seed_of_set(plan_, cell, round));
  while (!state_->set_done(round, cell)) {
    if (stop_.load()) return fail(ErrorKind::interrupted, "stopped");
    const std::uint64_t attempt = state_->attempts_of_set(round, cell);
    std::vector<TrialRequest> trials;
    for (const Turn& turn : order_of_trials(Design::windows, part.arms.size(), 1, order.next())) {
      const Arm& arm = part.arms[turn.arm];
      if (state_->disqualified().contains(arm.name)) continue;
      trials.push_back(request_for(arm, round, trials.size()));
    }
    WindowPlan windows = plan_.windows;
    windows.seed = order.next();
    const std::string name = fmt::format("set {}{}{}", round + 1, cell.empty() ? "" : " of ", cell);
    observer_.trial_begins(name, trials.size());
    const std::string before = machine_now(plan_, services_);
    auto raws = services_.run_window_set(trials, windows, stop_, [this](const Progress& progress) {
      observer_.trial_progress(progress);
    });
    if (!raws) {
      Error error = raws.error();
      return fail(error.in(name));
    }
    if (raws->size() != trials.size()) {
      return fail(ErrorKind::internal, "a set gave another number of records than it had arms");
    }
    std::vector<nlohmann::json*> all;
    for (nlohmann::json& raw : *raws) all.push_back(&raw);
    void_disturbed(before, machine_now(plan_, services_), std::move(all));
    void_whole_set(*raws, trials);
    std::string status = "ok";
    std::string reason;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const auto kept = record(std::move((*raws)[i]), trials[i], round, attempt);
      if (!kept) return fail(kept.error());
      const TrialEntry& entry = state_->trials().back();
      if (entry.status != "ok" && status == "ok") {
        status = entry.status;
        reason = entry.arm + ": " + entry.reason;
      }
    }
    observer_.trial_ends("", trials.size(), status, reason);
    ASSAY_TRY(too_many_voids());
  }
  return {};
}

Status Run::run_turns() {
  for (const Turn& turn : order_of_plan(plan_)) {
    if (plan_.design == Design::windows) {  // the first turn of a set runs it whole
      ASSAY_TRY(run_set(plan_.part_of(plan_.arms[turn.arm]), turn.round));
    } else {
      ASSAY_TRY(run_single(turn));
    }
  }
  return {};
}

Result<RunOutcome> Run::judge() {
  for (std::string& one : clock_warnings(ledger_->records(), place_.result)) {
    warnings_.push_back(std::move(one));
  }
  const auto qualifications = qualification_records(request_.tree);
  const std::string binary = identity_of(digest_, provenance_).binary_sha256;
  VerdictInput input{plan_,
                     *state_,
                     request_.registered ? "registered" : "exploratory",
                     stream_digest_,
                     warnings_,
                     void_reasons_,
                     [this](const TrialEntry& trial) { return load_raw(place_, trial); },
                     baseline_,
                     [&](const Arm& arm, const nlohmann::json& store) {
                       return find_qualification(
                           qualifications,
                           qualification_key(arm.durability, store,
                                             declared_settings(provenance_, arm.name), binary));
                     },
                     stream_digests_};
  auto verdict = make_verdict(input);
  if (!verdict) return fail(verdict.error());
  const auto hash = ledger_->append("verdict", *verdict);
  if (!hash) return fail(hash.error());
  RunOutcome outcome;
  outcome.ledger_path = ledger_->path();
  outcome.result = place_.result;
  outcome.directory = place_.directory;
  outcome.resumed = place_.resumed;
  outcome.head = *hash;
  outcome.end = end_of(*verdict);
  outcome.verdict = std::move(*verdict);
  return outcome;
}

Result<RunOutcome> Run::go() {
  ASSAY_TRY(prepare());
  for (const std::string& note : plan_.notes) observer_.note(note);
  if (std::string warning = services_.flush_warning(root_); !warning.empty()) {
    observer_.note(warning);
    warnings_.push_back(std::move(warning));
  }
  observer_.say(power_sentence(plan_, power_));
  observer_.run_begins(plan_.name, trials_done(), plan_.trials_in_all());
  if (Status status = void_reasons_.empty() ? run_turns() : Status(); !status) {
    const ErrorKind kind = status.error().kind();
    if (kind == ErrorKind::internal) {  // what was measured may not be judged
      void_reasons_.push_back(status.error().what());
      const auto verdict = judge();
      observer_.run_ends();
      return verdict ? Result<RunOutcome>(fail(status.error())) : verdict;
    }
    if (kind != ErrorKind::void_experiment) return fail(stopped(status.error()).error());
  }
  observer_.run_ends();
  return judge();
}

}  // namespace

Result<RunOutcome> run_experiment(const Plan& plan, const RunRequest& request,
                                  const RunServices& services, const std::atomic<bool>& stop,
                                  RunObserver& observer) {
  return Run(plan, request, services, stop, observer).go();
}

}  // namespace assay
