#include "harness/qualify/error/error_level.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/controls.h"
#include "harness/qualify/error/error_server.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify::error {
namespace {

using Clock = std::chrono::steady_clock;

struct Lane {
  TrialDirectory directory;
  std::unique_ptr<ChildProcess> child;
  bool ready = false;
  bool busy = false;
  std::uint64_t running = 0;
};

void count(nlohmann::json& into, const std::string& name, std::uint64_t more = 1) {
  if (into.is_null()) into = nlohmann::json::object();
  into[name] = into.value(name, std::uint64_t{0}) + more;
}

/// What one case, as a server tells it, adds to an outcome.
void add_round(const nlohmann::json& round, LevelOutcome& outcome) {
  nlohmann::json& coverage = outcome.coverage;
  if (round.at("reached").get<bool>()) {
    ++outcome.cases;
    count(coverage["faults"], round.at("shape"));
    count(coverage["faults_by_call"], round.at("call"));
    count(coverage["faults_by_stage"], round.at("stage"));
    count(coverage,
          round.at("recovers").get<bool>() ? "in_lives_that_recover" : "in_lives_that_create");
    const bool silent = round.at("reported").get<std::uint64_t>() == 0;
    count(coverage, silent ? "errors_that_the_store_overcame" : "errors_that_the_store_reported");
    if (!round.at("opened").get<bool>()) count(coverage, "openings_refused");
  } else {
    count(coverage, "faults_not_reached");
  }
  count(coverage, "acknowledged_commits", round.at("acknowledged"));
  count(coverage, "readings_refused", round.at("unread"));
  count(coverage, "processes_left_behind", round.at("left_behind"));
  if (round.at("acknowledged_after_failed_sync").get<std::uint64_t>() > 0)
    count(coverage, "lives_that_acknowledge_after_a_failed_sync");
  if (round.at("cut_checked").get<bool>()) count(coverage, "power_losses_after_a_failed_sync");
  if (round.at("unseen_calls").get<bool>()) count(coverage, "lives_with_io_uring");
  const std::string loss = round.at("loss");
  outcome.observed = std::max(outcome.observed, parse_loss(loss).value_or(Loss::unopenable));
  outcome.lost_most = std::max(outcome.lost_most, round.at("lost").get<std::uint64_t>());
  if (round.at("findings").empty()) return;
  ++outcome.failures;
  for (const nlohmann::json& finding : round.at("findings"))
    count(coverage["findings"], finding.at("kind"));
  const nlohmann::json& first = round.at("findings").at(0);
  // One sentence for each kind, so that a report of a store shows all that is wrong with it.
  const std::string kind = first.at("kind");
  const std::string sentence =
      fmt::format("case {}: {}: {}: {}", round.at("case").get<std::uint64_t>(), kind,
                  round.at("fault").get<std::string>(), first.at("text").get<std::string>());
  if (!coverage["first_of_kind"].contains(kind)) coverage["first_of_kind"][kind] = sentence;
  if (outcome.reason.empty()) outcome.reason = sentence;
  if (round.contains("bundle")) outcome.bundles.push_back(round.at("bundle"));
}

class ErrorLevel {
 public:
  ErrorLevel(const CampaignPlan& plan, LevelOutcome outcome, const std::atomic<bool>& stop,
             CampaignObserver& observer)
      : plan_(plan), outcome_(std::move(outcome)), stop_(stop), observer_(observer) {
    next_ = outcome_.resume.value("next", std::uint64_t{0});
    for (const nlohmann::json& one : outcome_.resume.value("pending", nlohmann::json::array()))
      pending_.push_back(one);
    elapsed_before_s_ = outcome_.elapsed_s;
  }

  Result<LevelOutcome> run() {
    for (std::uint32_t job = 0; job < std::max(1U, plan_.jobs); ++job) ASSAY_TRY(start_lane());
    while (!stop_.load() && !cannot_) {
      for (Lane& lane : lanes_) ASSAY_TRY(listen(lane));
      for (Lane& lane : lanes_)
        if (lane.ready && !lane.busy && !cannot_ && !spent()) ASSAY_TRY(hand_out(lane));
      tell();
      const bool all_idle =
          std::ranges::none_of(lanes_, [](const Lane& lane) { return lane.busy || !lane.ready; });
      if (spent() && all_idle) break;
    }
    note_position();
    outcome_.finished = !stop_.load();
    if (outcome_.finished) outcome_.resume = nullptr;
    judge();
    return std::move(outcome_);
  }

 private:
  Status start_lane() {
    Result<TrialDirectory> directory = TrialDirectory::make(plan_.root);
    if (!directory) return fail(directory.error());
    ErrorRequest request;
    request.base.store = plan_.store;
    request.base.durability = plan_.durability;
    request.base.settings = small_scale(plan_.store, plan_.settings);
    request.base.seed = plan_.seed;
    request.base.shape = plan_.shape;
    request.base.allowed = outcome_.allowed;
    request.base.directory = directory->path();
    request.base.open_timeout_ms = plan_.open_timeout_ms;
    request.allowed_after_power_loss =
        contract_of(plan_.store, plan_.settings_in_force, plan_.claimed, Crash::power);
    const std::string file = directory->path() + "/request.json";
    ASSAY_TRY(hand_over_file(file, to_json(request).dump()));
    const std::string binary = plan_.binary.empty() ? "/proc/self/exe" : plan_.binary;
    auto child = ChildProcess::start(binary, {"qualify-worker", file}, plan_.out + "/error.log");
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
                          "the server of level E ended: " + (how.empty() ? "without a word" : how))
                        .at(plan_.out + "/error.log"));
      }
      ASSAY_TRY(take(lane, nlohmann::json::parse(line, nullptr, false)));
    }
  }

  Status take(Lane& lane, const nlohmann::json& message) {
    if (!message.is_object()) return fail(ErrorKind::child, "the server of level E spoke nonsense");
    if (message.contains("error")) return fail(error_from_json(message["error"]));
    if (message.contains("ready")) {
      lane.ready = true;
      outcome_.store = message["ready"];
      cannot_ = !outcome_.store.value("calls", false);
      if (!cannot_) outcome_.coverage["calls_of_a_life"] = outcome_.store["calls_of_a_life"];
      outcome_.store.erase("calls");
      outcome_.store.erase("calls_of_a_life");
    }
    if (message.contains("round")) add_round(message["round"], outcome_);
    if (message.contains("done")) lane.busy = false;
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
    std::string bundle = "-";
    if (outcome_.bundles.size() < plan_.bundles_max) {
      bundle = fmt::format("{}/bundles/E-case-{}", plan_.out, number);
      // A run of the same case that was cut short may have left one.
      std::error_code code;
      while (std::filesystem::exists(bundle, code)) bundle += "-again";
    }
    lane.running = number;
    lane.busy = true;
    if (!lane.child->send(fmt::format("case {} {}", number, bundle)))
      return fail(ErrorKind::child, "the server of level E does not listen");
    return {};
  }

  [[nodiscard]] double elapsed_s() const {
    return elapsed_before_s_ + std::chrono::duration<double>(Clock::now() - began_).count();
  }
  [[nodiscard]] double fraction() const {
    double most = 0.0;
    if (plan_.budget.cases)
      most = static_cast<double>(outcome_.cases) / static_cast<double>(*plan_.budget.cases);
    const auto time = plan_.budget.time.value_or(std::chrono::seconds(60));
    if (plan_.budget.time || !plan_.budget.cases)
      most = std::max(most, elapsed_s() * 1000.0 / static_cast<double>(time.count()));
    return std::min(1.0, most);
  }
  [[nodiscard]] bool no_calls() const {
    return next_ > 1000 && outcome_.cases == 0 && !outcome_.coverage.contains("faults_not_reached");
  }
  [[nodiscard]] bool spent() const {
    return fraction() >= 1.0 || outcome_.failures >= plan_.failures_max || no_calls();
  }

  void note_position() {
    outcome_.elapsed_s = elapsed_s();
    nlohmann::json pending = pending_;
    for (const Lane& lane : lanes_)
      if (lane.busy) pending.push_back(lane.running);
    outcome_.resume = {{"next", next_}, {"pending", std::move(pending)}};
  }

  void tell() {
    const auto now = Clock::now();
    if (now - told_ < std::chrono::milliseconds(200)) return;
    told_ = now;
    observer_.progress(
        fraction(),
        fmt::format("{} faults ({:.0f}/s), worst so far: {}{}", outcome_.cases,
                    static_cast<double>(outcome_.cases) / std::max(0.1, elapsed_s()),
                    to_string(outcome_.observed),
                    outcome_.failures == 0 ? std::string()
                                           : fmt::format(", {} failures", outcome_.failures)));
    if (now - saved_ < std::chrono::seconds(5)) return;
    saved_ = now;
    note_position();
    observer_.so_far(outcome_);
  }

  void judge() {
    outcome_.proven.reset();
    outcome_.coverage["cases_per_second"] =
        static_cast<double>(outcome_.cases) / std::max(0.001, outcome_.elapsed_s);
    outcome_.coverage["not_followed"] =
        "names whose directory's sync failed; calls through io_uring; pages changed through a "
        "mapping to what they were";
    if (cannot_) {
      outcome_.verdict = Verdict::skipped;
      outcome_.reason =
          "this kernel or container does not let calls be answered in its place (seccomp user "
          "notification), so no call can be made to fail";
    } else if (outcome_.failures > 0) {
      outcome_.verdict = Verdict::fail;
    } else if (outcome_.cases < kLeastFaults) {
      outcome_.verdict = Verdict::inconclusive;
      outcome_.reason = fmt::format("{} faults are too few to say anything; at least {} are needed",
                                    outcome_.cases, kLeastFaults);
    } else {
      outcome_.verdict = Verdict::pass;
      outcome_.reason.clear();
    }
  }

  const CampaignPlan& plan_;
  LevelOutcome outcome_;
  const std::atomic<bool>& stop_;
  CampaignObserver& observer_;
  std::vector<Lane> lanes_;
  bool cannot_ = false;  ///< calls cannot be made to fail here
  std::uint64_t next_ = 0;
  std::deque<std::uint64_t> pending_;
  double elapsed_before_s_ = 0.0;
  Clock::time_point began_ = Clock::now();
  Clock::time_point told_ = began_;
  Clock::time_point saved_ = began_;
};

}  // namespace

Result<std::vector<LevelOutcome>> run_error_level(const CampaignPlan& plan,
                                                  const std::vector<LevelOutcome>& from,
                                                  const std::atomic<bool>& stop,
                                                  CampaignObserver& observer) {
  LevelOutcome outcome;
  if (!from.empty()) outcome = from.front();
  outcome.level = Level::errors;
  outcome.allowed = contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::kill);
  if (outcome.resume.is_null()) outcome.resume = nlohmann::json::object();
  if (outcome.coverage.is_null()) outcome.coverage = nlohmann::json::object();
  observer.level_begins(Level::errors, {});
  Result<LevelOutcome> done = ErrorLevel(plan, std::move(outcome), stop, observer).run();
  if (!done) return fail(done.error());
  observer.level_ends(*done);
  return std::vector<LevelOutcome>{std::move(*done)};
}

}  // namespace assay::qualify::error
