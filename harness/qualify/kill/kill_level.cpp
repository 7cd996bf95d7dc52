#include "harness/qualify/kill/kill_level.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/budget_meter.h"
#include "harness/qualify/controls.h"
#include "harness/qualify/kill/kill_request.h"
#include "harness/qualify/root_space.h"
#include "harness/qualify/shards.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify {
namespace {

using Clock = std::chrono::steady_clock;

/// One server, and the case that it runs.
struct Lane {
  TrialDirectory directory;
  std::unique_ptr<ChildProcess> child;
  bool ready = false;
  bool busy = false;
  std::uint64_t running = 0;
  std::vector<nlohmann::json> rounds = {};  ///< of the running case; counted when it is done
};

class KillLevel {
 public:
  KillLevel(const CampaignPlan& plan, LevelOutcome outcome, const std::atomic<bool>& stop,
            CampaignObserver& observer)
      : plan_(plan),
        outcome_(std::move(outcome)),
        stop_(stop),
        observer_(observer),
        meter_(plan, outcome_.elapsed_s) {
    next_ = outcome_.resume.value("next", std::uint64_t{0});
    for (const nlohmann::json& one : outcome_.resume.value("pending", nlohmann::json::array()))
      pending_.push_back(one);
    for (const nlohmann::json& one : outcome_.resume.value("images", nlohmann::json::array()))
      images_.insert(one.get<std::uint64_t>());
  }

  Result<LevelOutcome> run() {
    for (std::uint32_t job = 0; job < std::max(1U, plan_.jobs); ++job) ASSAY_TRY(start_lane());
    while (!stop_.load()) {
      for (Lane& lane : lanes_) ASSAY_TRY(listen(lane));
      for (Lane& lane : lanes_)
        if (lane.ready && !lane.busy && !meter_.spent(outcome_)) ASSAY_TRY(hand_out(lane));
      tell();
      const bool all_idle =
          std::ranges::none_of(lanes_, [](const Lane& lane) { return lane.busy || !lane.ready; });
      if (meter_.spent(outcome_) && all_idle) break;
    }
    note_position();
    outcome_.finished = !stop_.load();
    if (outcome_.finished) outcome_.resume = nullptr;
    judge_kills(plan_, outcome_);
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] std::string log() const { return plan_.out + "/K.log"; }

  Status start_lane() {
    Result<TrialDirectory> directory = TrialDirectory::make(plan_.root);
    if (!directory) return fail(directory.error());
    KillRequest request;
    request.store = plan_.store;
    request.durability = plan_.durability;
    request.settings = small_scale(plan_.store, plan_.settings);
    request.seed = plan_.seed;
    request.shape = plan_.shape;
    request.allowed = outcome_.allowed;
    request.directory = directory->path();
    request.open_timeout_ms = plan_.open_timeout_ms;
    const std::string file = directory->path() + "/request.json";
    ASSAY_TRY(hand_over_file(file, to_json(request).dump()));
    const std::string binary = plan_.binary.empty() ? "/proc/self/exe" : plan_.binary;
    auto child = ChildProcess::start(binary, {"qualify-worker", file}, log());
    if (!child) return fail(child.error());
    lanes_.push_back({.directory = std::move(*directory), .child = std::move(*child)});
    return {};
  }

  Status listen(Lane& lane) {
    std::string line;
    for (int timeout_ms = 2;; timeout_ms = 0) {
      const ChildProcess::Event event = lane.child->next(line, timeout_ms);
      if (event == ChildProcess::Event::nothing) return {};
      if (event == ChildProcess::Event::ended) {
        const std::string how = lane.child->wait();
        return fail(Error(ErrorKind::child,
                          "the server of level K ended: " + (how.empty() ? "without a word" : how))
                        .at(log()));
      }
      ASSAY_TRY(take(lane, nlohmann::json::parse(line, nullptr, false)));
    }
  }

  Status take(Lane& lane, const nlohmann::json& message) {
    if (!message.is_object()) return fail(ErrorKind::child, "the server of level K spoke nonsense");
    if (message.contains("error"))
      return fail(explained_by_room(error_from_json(message["error"]), plan_.root));
    if (message.contains("ready")) {
      lane.ready = true;
      outcome_.store = message["ready"];
      outcome_.coverage["stopped_at_calls"] = outcome_.store.value("calls", false);
      outcome_.store.erase("calls");
    }
    if (message.contains("round")) lane.rounds.push_back(message["round"]);
    if (message.contains("done")) {
      // What a store did that found no room is not counted.
      ASSAY_TRY(check_room_to_go_on(plan_.root));
      for (const nlohmann::json& round : lane.rounds) {
        add_round(round, outcome_);
        images_.insert(round.value("image", std::uint64_t{0}));
      }
      outcome_.coverage["distinct_images"] = images_.size();
      outcome_.coverage["cases"] = outcome_.coverage.value("cases", std::uint64_t{0}) + 1;
      lane.rounds.clear();
      lane.busy = false;
    }
    return {};
  }

  Status hand_out(Lane& lane) {
    std::uint64_t number = 0;
    if (pending_.empty()) {
      number = plan_.shard.index + plan_.shard.count * next_++;
    } else {
      number = pending_.front();
      pending_.pop_front();
    }
    const bool keep = outcome_.bundles.size() < plan_.bundles_max;
    std::string bundle = "-";
    if (keep) {
      bundle = fmt::format("{}/bundles/K-case-{}", plan_.out, number);
      // A run of the same case that was cut short may have left one.
      std::error_code code;
      while (std::filesystem::exists(bundle, code)) bundle += "-again";
    }
    lane.running = number;
    lane.busy = true;
    if (!lane.child->send(fmt::format("case {} {}", number, bundle)))
      return fail(ErrorKind::child, "the server of level K does not listen");
    return {};
  }

  void note_position() {
    outcome_.elapsed_s = meter_.elapsed_s();
    nlohmann::json pending = pending_;
    for (const Lane& lane : lanes_)
      if (lane.busy) pending.push_back(lane.running);
    outcome_.resume = {{"next", next_}, {"pending", std::move(pending)}, {"images", images_}};
  }

  void tell() {
    meter_.tell(outcome_, "kills", observer_);
    const auto now = Clock::now();
    if (now - saved_ < std::chrono::seconds(5)) return;
    saved_ = now;
    note_position();
    observer_.so_far(outcome_);
  }

  const CampaignPlan& plan_;
  LevelOutcome outcome_;
  const std::atomic<bool>& stop_;
  CampaignObserver& observer_;
  std::vector<Lane> lanes_;
  std::uint64_t next_ = 0;
  std::deque<std::uint64_t> pending_;
  std::set<std::uint64_t> images_;
  BudgetMeter meter_;
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

Result<std::vector<LevelOutcome>> run_kill_level(const CampaignPlan& plan,
                                                 const std::vector<LevelOutcome>& from,
                                                 const std::atomic<bool>& stop,
                                                 CampaignObserver& observer) {
  LevelOutcome outcome;
  if (!from.empty()) outcome = from.front();
  outcome.level = Level::kill;
  outcome.allowed = contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::kill);
  if (outcome.resume.is_null()) outcome.resume = nlohmann::json::object();
  if (outcome.coverage.is_null()) outcome.coverage = nlohmann::json::object();
  observer.level_begins(Level::kill, {});
  Result<LevelOutcome> done = KillLevel(plan, std::move(outcome), stop, observer).run();
  if (!done) return fail(done.error());
  observer.level_ends(*done);
  return std::vector<LevelOutcome>{std::move(*done)};
}

Result<LevelOutcome> merge_kill_level(const CampaignPlan& whole,
                                      const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = add_up(shards);
  if (sum.verdict == Verdict::skipped) return sum;
  judge_kills(whole, sum);
  return sum;
}

void add_round(const nlohmann::json& round, LevelOutcome& outcome) {
  nlohmann::json& coverage = outcome.coverage;
  std::uint64_t killed = 0;
  for (const nlohmann::json& kill : round.at("kills")) {
    if (!kill.at("killed").get<bool>()) {
      count(coverage, "lives_that_ended_before_their_kill");
      continue;
    }
    ++killed;
    count(coverage["kills_by_aim"], kill.at("aim"));
    count(coverage["kills_by_stage"], kill.at("stage"));
    const std::string call = kill.at("call");
    if (!call.empty()) count(coverage["kills_by_call"], call);
    if (kill.at("torn").get<bool>()) count(coverage, "kills_within_a_write");
  }
  outcome.cases += killed;
  if (killed > 1) count(coverage, "nested_kills", killed - 1);
  count(coverage, "checks");
  count(coverage, "acknowledged_commits", round.at("acknowledged"));
  count(coverage, "commits_in_flight", round.at("in_flight"));
  count(coverage, "commits_in_flight_kept", round.at("in_flight_kept"));
  count(coverage, "processes_left_behind", round.at("left_behind"));
  if (round.at("creation_not_atomic").get<bool>()) count(coverage, "creation_not_atomic");
  const std::string loss = round.at("loss");
  count(coverage["checks_by_loss"], loss);
  outcome.observed = std::max(outcome.observed, parse_loss(loss).value_or(Loss::unopenable));
  outcome.lost_most = std::max(outcome.lost_most, round.at("lost").get<std::uint64_t>());
  if (!round.at("beyond").get<bool>()) return;
  ++outcome.failures;
  for (const nlohmann::json& finding : round.at("findings"))
    count(coverage["findings"], finding.at("kind"));
  if (outcome.reason.empty() && !round.at("findings").empty())
    outcome.reason = fmt::format("case {}, round {}: {}", round.at("case").get<std::uint64_t>(),
                                 round.at("round").get<std::uint64_t>(),
                                 round.at("findings").at(0).at("text").get<std::string>());
  if (round.contains("bundle")) outcome.bundles.push_back(round.at("bundle"));
}

void judge_kills(const CampaignPlan& plan, LevelOutcome& outcome) {
  const auto control = find_control(plan.store, plan.settings_in_force, Crash::kill);
  outcome.proven.reset();
  if (outcome.failures > 0) {
    outcome.verdict = Verdict::fail;
    return;
  }
  if (outcome.cases < kLeastKills) {
    outcome.verdict = Verdict::inconclusive;
    outcome.reason = fmt::format("{} kills are too few to say anything; at least {} are needed",
                                 outcome.cases, kLeastKills);
    return;
  }
  if (control && control->must_reach && outcome.cases >= kStandardKills &&
      outcome.observed < *control->must_reach) {
    outcome.verdict = Verdict::harness_error;
    outcome.reason = fmt::format(
        "these settings lose '{}' by their own documentation ({}), but {} kills showed '{}' at "
        "worst: the harness does not see what it must",
        to_string(*control->must_reach), control->source, outcome.cases,
        to_string(outcome.observed));
    return;
  }
  outcome.verdict = Verdict::pass;
  outcome.reason.clear();
  if (plan.claimed >= DurabilityClass::process) outcome.proven = DurabilityClass::process;
}

}  // namespace assay::qualify
