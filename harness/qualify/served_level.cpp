#include "harness/qualify/served_level.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/qualify/budget_meter.h"
#include "harness/qualify/root_space.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify {
namespace {

using Clock = std::chrono::steady_clock;

/// Cases without any effect after which there is nothing to be had here.
constexpr std::uint64_t kCasesInVain = 1000;

struct Lane {
  TrialDirectory directory;
  std::unique_ptr<ChildProcess> child;
  bool ready = false;
  bool busy = false;
  std::uint64_t running = 0;
  std::vector<nlohmann::json> rounds = {};  ///< of the running case
};

class Running {
 public:
  Running(const ServedLevel& how, const CampaignPlan& plan, LevelOutcome outcome,
          const std::atomic<bool>& stop, CampaignObserver& observer)
      : how_(how),
        plan_(plan),
        outcome_(std::move(outcome)),
        stop_(stop),
        observer_(observer),
        meter_(plan, outcome_.elapsed_s) {
    outcome_.level = how.level;
    if (outcome_.resume.is_null()) outcome_.resume = nlohmann::json::object();
    if (outcome_.coverage.is_null()) outcome_.coverage = nlohmann::json::object();
    next_ = outcome_.resume.value("next", std::uint64_t{0});
    for (const nlohmann::json& one : outcome_.resume.value("pending", nlohmann::json::array()))
      pending_.push_back(one);
  }

  Result<LevelOutcome> run() {
    observer_.level_begins(how_.level, {});
    for (std::uint32_t job = 0; job < std::max(1U, plan_.jobs); ++job) ASSAY_TRY(start_lane());
    while (!stop_.load() && can_) {
      for (Lane& lane : lanes_) ASSAY_TRY(listen(lane));
      for (Lane& lane : lanes_)
        if (lane.ready && !lane.busy && can_ && !spent() && is_wanted()) ASSAY_TRY(hand_out(lane));
      tell();
      const bool all_idle =
          std::ranges::none_of(lanes_, [](const Lane& lane) { return lane.busy || !lane.ready; });
      if (spent() && all_idle) break;
    }
    note_position();
    outcome_.finished = !stop_.load();
    if (outcome_.finished) outcome_.resume = nullptr;
    outcome_.coverage["cases_per_second"] =
        static_cast<double>(outcome_.cases) / std::max(0.001, outcome_.elapsed_s);
    how_.judge(can_, outcome_);
    observer_.level_ends(outcome_);
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] std::string_view letter() const { return to_string(how_.level); }
  [[nodiscard]] std::string log() const { return fmt::format("{}/{}.log", plan_.out, letter()); }

  Status start_lane() {
    Result<TrialDirectory> directory = TrialDirectory::make(plan_.root);
    if (!directory) return fail(directory.error());
    const std::string file = directory->path() + "/request.json";
    ASSAY_TRY(hand_over_file(file, how_.request(directory->path()).dump()));
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
        const std::string ended = lane.child->wait();
        return fail(
            Error(ErrorKind::child, fmt::format("the server of level {} ended: {}", letter(),
                                                ended.empty() ? "without a word" : ended))
                .at(log()));
      }
      ASSAY_TRY(take(lane, nlohmann::json::parse(line, nullptr, false)));
    }
  }

  Status take(Lane& lane, const nlohmann::json& message) {
    if (!message.is_object())
      return fail(ErrorKind::child, fmt::format("the server of level {} spoke nonsense", letter()));
    if (message.contains("error"))
      return fail(explained_by_room(error_from_json(message["error"]), plan_.root));
    if (message.contains("ready")) {
      lane.ready = true;
      const nlohmann::json& said = message["ready"];
      for (const char* const name : {"store", "version", "settings"})
        if (said.contains(name)) outcome_.store[name] = said[name];
      can_ = how_.begins(said, outcome_);
    }
    if (message.contains("round")) lane.rounds.push_back(message["round"]);
    if (message.contains("done")) {
      // What a store did that found no room is not counted.
      ASSAY_TRY(check_room_to_go_on(plan_.root));
      for (const nlohmann::json& round : lane.rounds) how_.add_round(round, outcome_);
      in_vain_ = lane.rounds.empty() ? in_vain_ + 1 : 0;
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
    std::string bundle = "-";
    if (outcome_.bundles.size() < plan_.bundles_max) {
      bundle = fmt::format("{}/bundles/{}-case-{}", plan_.out, letter(), number);
      // A run of the same case that was cut short may have left one.
      std::error_code code;
      while (std::filesystem::exists(bundle, code)) bundle += "-again";
    }
    lane.running = number;
    lane.busy = true;
    if (!lane.child->send(fmt::format("case {} {}", number, bundle)))
      return fail(ErrorKind::child,
                  fmt::format("the server of level {} does not listen", letter()));
    return {};
  }

  [[nodiscard]] bool spent() const { return meter_.spent(outcome_) || in_vain_ > kCasesInVain; }

  /// A case more than the budget would be one of which the next shard, or nobody, is to tell.
  [[nodiscard]] bool is_wanted() const {
    const auto busy = static_cast<std::uint64_t>(
        std::ranges::count_if(lanes_, [](const Lane& lane) { return lane.busy; }));
    return meter_.cases() == 0 || outcome_.cases + busy < meter_.cases();
  }

  void note_position() {
    outcome_.elapsed_s = meter_.elapsed_s();
    nlohmann::json pending = pending_;
    for (const Lane& lane : lanes_)
      if (lane.busy) pending.push_back(lane.running);
    outcome_.resume = {{"next", next_}, {"pending", std::move(pending)}};
  }

  void tell() {
    meter_.tell(outcome_, how_.cases, observer_);
    const auto now = Clock::now();
    if (now - saved_ < std::chrono::seconds(5)) return;
    saved_ = now;
    note_position();
    observer_.so_far(outcome_);
  }

  const ServedLevel& how_;
  const CampaignPlan& plan_;
  LevelOutcome outcome_;
  const std::atomic<bool>& stop_;
  CampaignObserver& observer_;
  std::vector<Lane> lanes_;
  bool can_ = true;
  std::uint64_t next_ = 0;
  std::uint64_t in_vain_ = 0;
  std::deque<std::uint64_t> pending_;
  BudgetMeter meter_;
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

Result<LevelOutcome> run_served_level(const ServedLevel& how, const CampaignPlan& plan,
                                      LevelOutcome outcome, const std::atomic<bool>& stop,
                                      CampaignObserver& observer) {
  return Running(how, plan, std::move(outcome), stop, observer).run();
}

}  // namespace assay::qualify
