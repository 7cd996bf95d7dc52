#include "harness/qualify/power/power_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "adapters/registry.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/controls.h"
#include "harness/qualify/power/minimise.h"
#include "harness/qualify/power/nested.h"
#include "harness/qualify/power/power_verdict.h"
#include "harness/trial/trial.h"
#include "harness/trial/trial_directory.h"

namespace assay::qualify::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTransactions = 48;  ///< of all writers together
constexpr std::uint64_t kStates = 20'000;    ///< under `ordered`, when the budget is a time
constexpr std::chrono::milliseconds kTime{60'000};
constexpr std::uint64_t kRounds = 1'000;
constexpr std::uint64_t kMemory = std::uint64_t{32} << 20;

/// What part of the budget a profile gets, in percent; the rest is for crashes in recovery.
struct Share {
  Profile profile;
  unsigned percent;
};
constexpr std::array<Share, 4> kShares{
    {{Profile::ordered, 50}, {Profile::strict, 20}, {Profile::btrfs, 12}, {Profile::prefix, 8}}};

class PowerLevel {
 public:
  PowerLevel(const CampaignPlan& plan, const std::atomic<bool>& stop, CampaignObserver& observer)
      : plan_(plan), stop_(stop), observer_(observer) {
    outcome_.level = Level::power_files;
    outcome_.profile = to_string(Profile::ordered);
    outcome_.coverage = nlohmann::json::object();
    outcome_.allowed = contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::power);
  }

  /// `before`: the outcome of a run that was stopped, which is gone on with behind its last whole
  /// history.
  Result<LevelOutcome> run(const LevelOutcome* before) {
    if (before != nullptr) ASSAY_TRY(go_on_from(*before));
    const Result<const Driver*> driver = find_driver(plan_.store);
    if (!driver) return std::unexpected(driver.error());
    life_.options.settings = small_scale(plan_.store, plan_.settings);
    const auto in_force = resolve_settings(**driver, plan_.durability, life_.options.settings);
    if (!in_force) return std::unexpected(in_force.error());
    outcome_.store = {
        {"store", plan_.store}, {"version", (*driver)->version()}, {"settings", *in_force}};
    auto home = TrialDirectory::make(plan_.root);
    if (!home) return std::unexpected(home.error());
    // Marked as ours, so that the next start removes them after a SIGKILL.
    const std::string root_of_states = state_root();
    remove_stale_trials(root_of_states);
    auto states = TrialDirectory::make(root_of_states);
    if (!states) return std::unexpected(states.error());
    states_ = states->path();
    again_ = home->path() + "/recovery";
    std::filesystem::create_directory(again_);
    life_.driver = *driver;
    life_.options.durability = plan_.durability;
    life_.options.memory_bytes = kMemory;
    life_.transactions = std::max<std::uint64_t>(kTransactions / plan_.shape.writers, 8);
    // A short history has few states, a long one takes long to judge: many short ones.
    for (; round_ < kRounds && !spent(); ++round_) {
      history_.emplace(plan_.seed + round_, plan_.shape);
      life_.history = &*history_;
      life_.options.directory = fmt::format("{}/round-{}", home->path(), round_);
      std::filesystem::create_directory(life_.options.directory);
      auto recorded = record_store(life_);
      if (!recorded) return refused(recorded.error());
      recorded_ = std::move(*recorded);
      std::filesystem::remove_all(life_.options.directory);
      note_recording();
      for (const Share& share : kShares) ASSAY_TRY(look_under(share));
      if (round_ == 0 && !stop_) ASSAY_TRY(look_into_recoveries());
      note_totals(round_ + 1);
      if (stop_) break;  // in the midst of this history, perhaps: it is begun anew
      outcome_.resume = position();
      observer_.so_far(outcome_);
    }
    note_totals(outcome_.coverage.value("histories", std::uint64_t{0}));
    total_.histories = round_;
    judge_power(plan_, total_, outcome_);
    // A failure is told with its first history: more would say nothing new.
    outcome_.finished = !stop_ || outcome_.failures != 0;
    if (outcome_.finished) outcome_.resume = nullptr;
    return std::move(outcome_);
  }

 private:
  /// What is known after whole histories, so that a level that is stopped or killed goes on there.
  [[nodiscard]] nlohmann::json position() const {
    nlohmann::json profiles = nlohmann::json::object();
    for (const auto& [profile, result] : total_.profiles)
      profiles[std::string(to_string(profile))] = to_json(result);
    return {{"next", round_ + 1},
            {"cases", outcome_.cases},
            {"elapsed_s", outcome_.elapsed_s},
            {"events", events_},
            {"acknowledged_commits", commits_},
            {"profiles", std::move(profiles)},
            {"nested_worst", to_string(total_.nested_worst)},
            {"coverage", outcome_.coverage}};
  }

  Status go_on_from(const LevelOutcome& before) {
    try {
      const nlohmann::json& from = before.resume;
      from.at("next").get_to(round_);
      first_round_ = round_;
      from.at("cases").get_to(outcome_.cases);
      before_s_ = from.at("elapsed_s");
      from.at("events").get_to(events_);
      from.at("acknowledged_commits").get_to(commits_);
      for (const Share& share : kShares) {
        const std::string name(to_string(share.profile));
        if (!from.at("profiles").contains(name)) continue;
        const auto found = exploration_from_json(from.at("profiles").at(name));
        if (!found) return fail(found.error());
        total_.profiles[share.profile] = *found;
      }
      const Result<Loss> worst = parse_loss(from.at("nested_worst").get<std::string>());
      if (!worst) return fail(worst.error());
      total_.nested_worst = *worst;
      outcome_.coverage = from.at("coverage");
      outcome_.resume = from;
    } catch (const nlohmann::json::exception& exception) {
      return fail(ErrorKind::bad_input,
                  fmt::format("not where level F was stopped: {}", exception.what()));
    }
    return {};
  }

  /// Sums of the histories up to here; `histories` of them.
  void note_totals(std::uint64_t histories) {
    outcome_.coverage["histories"] = histories;
    tell_profiles(total_, outcome_.coverage);
    outcome_.elapsed_s = std::chrono::duration<double>(elapsed()).count();
  }

  [[nodiscard]] std::string state_root() const {
    auto made = make_state_directory(plan_.root);
    if (!made) return plan_.root;
    std::error_code ignored;
    std::filesystem::remove(*made, ignored);
    return made->starts_with("/dev/shm/") ? fmt::format("/dev/shm/assay-states-{}", ::getuid())
                                          : plan_.root;
  }

  /// What cannot be recorded is neither passed nor failed.
  Result<LevelOutcome> refused(const Error& error) {
    if (error.kind() == ErrorKind::store || error.kind() == ErrorKind::bad_input) {
      return std::unexpected(error);
    }
    const bool machine =
        error.kind() == ErrorKind::environment || error.kind() == ErrorKind::unsupported;
    outcome_.verdict = machine ? Verdict::skipped : Verdict::inconclusive;
    outcome_.reason = error.message();
    outcome_.finished = true;
    return std::move(outcome_);
  }

  void note_recording() {
    std::uint64_t stores = 0;
    for (const Event& event : recorded_.trace.events) {
      stores += event.kind == RecordKind::page ? 1 : 0;
    }
    events_ += recorded_.trace.events.size();
    commits_ += recorded_.receipts.acknowledged_commits();
    outcome_.coverage["events"] = events_;
    outcome_.coverage["acknowledged_commits"] = commits_;
    if (stores != 0) {
      outcome_.coverage["mapping"] =
          "what was stored to mappings is seen at other calls only: versions in between are not";
    }
    if (!recorded_.trace.notes.empty()) outcome_.coverage["turned_down"] = recorded_.trace.notes;
  }

  [[nodiscard]] ExplorePlan explore_plan(Profile profile, unsigned percent) {
    ExplorePlan plan;
    plan.profile = profile;
    plan.seed = plan_.seed;
    plan.shard = plan_.shard.index;
    plan.shards = plan_.shard.count;
    plan.allowed = outcome_.allowed;
    plan.failures_kept = plan_.bundles_max;
    plan.pool.directory = states_;
    plan.pool.jobs = std::max(plan_.jobs, 1U);
    plan.pool.timeout = std::chrono::milliseconds(plan_.open_timeout_ms);
    plan.pool.check = check_of(life_);
    plan.stop = &stop_;
    plan.states_max = left_of(profile, percent);
    if (plan_.budget.time || !plan_.budget.cases) {
      // Of the time that is left, so that a profile whose states are few leaves its time to others.
      const auto all = plan_.budget.time.value_or(kTime);
      plan.time = std::max(all - elapsed(), std::chrono::milliseconds(0)) * percent / 100;
    }
    plan.on_progress = [this, profile](std::uint64_t done, std::uint64_t of, Loss worst) {
      observer_.progress(fraction(done),
                         fmt::format("history {}, {}: {} of {} states, worst so far: {}",
                                     round_ + 1, to_string(profile), done, of, to_string(worst)));
    };
    return plan;
  }

  [[nodiscard]] std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        Clock::now() - began_ + std::chrono::duration<double>(before_s_));
  }

  /// States that a profile may still look at.
  [[nodiscard]] std::uint64_t left_of(Profile profile, unsigned percent) const {
    const std::uint64_t all =
        plan_.budget.cases ? *plan_.budget.cases * percent / 100 : kStates * percent / 50;
    const auto found = total_.profiles.find(profile);
    // Of all shards, so that each goes on as far as the unsharded campaign would.
    const std::uint64_t done = found == total_.profiles.end() ? 0 : found->second.selected;
    return all - std::min(all, done);
  }

  [[nodiscard]] double fraction(std::uint64_t running = 0) const {
    double most = 0.0;
    if (plan_.budget.cases) {
      most =
          static_cast<double>(outcome_.cases + running) /
          static_cast<double>(std::max<std::uint64_t>(*plan_.budget.cases / plan_.shard.count, 1));
    }
    if (plan_.budget.time || !plan_.budget.cases) {
      const auto all = plan_.budget.time.value_or(kTime);
      most = std::max(most, static_cast<double>(elapsed().count()) /
                                static_cast<double>(std::max<std::int64_t>(all.count(), 1)));
    }
    return std::min(most, 1.0);
  }

  [[nodiscard]] bool spent() const {
    const bool late = (plan_.budget.time || !plan_.budget.cases) &&
                      elapsed() >= plan_.budget.time.value_or(kTime) * 95 / 100;
    const bool enough = left_of(Profile::ordered, kShares[0].percent) == 0;
    // A failure is told with its first history: more would say nothing new.
    return stop_ || late || enough || (round_ > 0 && total_.failures() != 0);
  }

  Status look_under(const Share& share) {
    if (stop_) return {};
    const ExplorePlan plan = explore_plan(share.profile, share.percent);
    if (plan.states_max == 0 || (plan.time && plan.time->count() == 0)) return {};
    if (round_ == first_round_)
      observer_.level_begins(Level::power_files, std::string(to_string(share.profile)));
    auto found = explore(recorded_.trace, recorded_.receipts, plan);
    if (!found) return std::unexpected(found.error());
    outcome_.cases += found->checked;
    for (const Failure& failure : found->kept_failures) {
      ASSAY_TRY(keep_bundle(recorded_, plan, failure));
    }
    if (share.profile == Profile::ordered && !found->kept_failures.empty() &&
        !outcome_.coverage.contains("first_failure")) {
      const Acknowledgements known =
          receipts_at(recorded_.trace, recorded_.receipts, found->kept_failures.front().known_at);
      outcome_.coverage["first_failure"] = {{"history_seed", plan_.seed + round_},
                                            {"acknowledged", known.acknowledged_commits()}};
    }
    add(total_.profiles[share.profile], *found);
    return {};
  }

  Status look_into_recoveries() {
    NestedPlan nested;
    nested.explore = explore_plan(Profile::ordered, 10);
    nested.explore.states_max = 200;
    nested.recoveries =
        plan_.budget.cases ? std::min<std::uint64_t>(*plan_.budget.cases / 1000, 20) : 10;
    // All of them together within what the shares of the profiles leave of the time.
    nested.explore.time = plan_.budget.cases ? std::chrono::milliseconds(1'000)
                                             : plan_.budget.time.value_or(kTime) / 10 /
                                                   static_cast<std::int64_t>(nested.recoveries);
    nested.directory = again_;
    auto found = explore_nested(life_, recorded_.trace, recorded_.receipts, nested);
    if (!found) return std::unexpected(found.error());
    outcome_.cases += found->sum.checked;
    outcome_.coverage["recoveries"] = {{"recorded", found->recoveries},
                                       {"without_a_change", found->untouched},
                                       {"states_checked", found->sum.checked},
                                       {"failures", found->sum.failures}};
    for (const NestedFailure& failure : found->failures) {
      ASSAY_TRY(keep_bundle(failure.recovery, nested.explore, failure.failure));
    }
    total_.nested_failures = found->sum.failures;
    total_.nested_worst = found->sum.worst;
    return {};
  }

  Status keep_bundle(const RecordedLife& life, const ExplorePlan& plan, const Failure& failure) {
    if (outcome_.bundles.size() >= plan_.bundles_max) return {};
    auto small = minimise(life.trace, life.receipts, plan, failure);
    if (!small) return std::unexpected(small.error());
    Bundle bundle;
    bundle.level = to_string(Level::power_files);
    bundle.profile = to_string(plan.profile);
    bundle.store = plan_.store;
    bundle.version = life_.driver->version();
    bundle.durability = plan_.durability;
    bundle.settings = life_.options.settings;
    bundle.allowed = outcome_.allowed;
    bundle.seed = plan_.seed + round_;
    bundle.shape = plan_.shape;
    bundle.acknowledgements = small->known;
    bundle.judgement = small->judgement;
    bundle.story = story_of(life.trace, plan.profile, *small);
    bundle.transactions_after = life_.transactions_after;
    bundle.open_timeout_ms = plan_.open_timeout_ms;
    bundle.origin = {{"campaign_seed", plan_.seed},
                     {"cut", small->cut},
                     {"class", std::string(to_string(failure.choice.kind))},
                     {"lost_events", small->lost},
                     {"reproduced", small->reproduced}};
    const std::string image = again_ + "/image";
    std::filesystem::create_directory(image);
    empty_directory(image);
    ASSAY_TRY(write_tree(small->state, image));
    const std::string path =
        fmt::format("{}/bundles/F-{}-{}", plan_.out, bundle.profile, outcome_.bundles.size() + 1);
    std::filesystem::create_directories(plan_.out + "/bundles");
    ASSAY_TRY(write_bundle(path, bundle, image));
    std::filesystem::remove_all(image);
    outcome_.bundles.push_back(path);
    return {};
  }

  const CampaignPlan& plan_;
  const std::atomic<bool>& stop_;
  CampaignObserver& observer_;
  std::optional<History> history_;
  LifeOfStore life_;
  RecordedLife recorded_;
  LevelOutcome outcome_;
  PowerTotals total_;
  std::uint64_t round_ = 0;
  std::uint64_t first_round_ = 0;  ///< of this run
  std::uint64_t events_ = 0;
  std::uint64_t commits_ = 0;
  std::string states_;
  std::string again_;
  double before_s_ = 0.0;  ///< of the runs before this one
  Clock::time_point began_ = Clock::now();
};

}  // namespace

Result<std::vector<LevelOutcome>> run_power_level(const CampaignPlan& plan,
                                                  const std::vector<LevelOutcome>& from,
                                                  const std::atomic<bool>& stop,
                                                  CampaignObserver& observer) {
  if (!from.empty() && from.front().finished) return from;
  const LevelOutcome* const before =
      from.empty() || from.front().resume.is_null() ? nullptr : &from.front();
  auto outcome = PowerLevel(plan, stop, observer).run(before);
  if (!outcome) return std::unexpected(outcome.error());
  observer.level_ends(*outcome);
  return std::vector<LevelOutcome>{std::move(*outcome)};
}

}  // namespace assay::qualify::power
