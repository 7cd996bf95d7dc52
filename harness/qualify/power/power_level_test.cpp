// Level F as a campaign runs it: verdict, proven class, coverage, bundles.
#include "harness/qualify/power/power_level.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/ledger/ledger.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/matrix.h"
#include "harness/qualify/power/explore.h"
#include "harness/qualify/power/store_life.h"
#include "harness/trial/trial_directory.h"

namespace assay::qualify::power {
namespace {

class Silent final : public CampaignObserver {};

CampaignPlan plan_of(const std::string& store, const Settings& settings,
                     const TemporaryDirectory& home) {
  CampaignPlan plan;
  plan.store = store;
  plan.settings = settings;
  const auto driver = find_driver(store);
  ASSAY_CHECK(driver.has_value(), "the store is there");
  plan.settings_in_force = *resolve_settings(**driver, plan.durability, settings);
  plan.claimed = given_durability(**driver, plan.durability, settings)->given;
  plan.shape = *shape_for((*driver)->capabilities(), 1);
  plan.levels = {Level::power_files};
  const char* const cases = std::getenv("ASSAY_TEST_STATES");
  plan.budget.cases = cases == nullptr ? 800 : std::strtoull(cases, nullptr, 10);
  plan.root = home.file("root");
  plan.out = home.file("out");
  return plan;
}

LevelOutcome run(const CampaignPlan& plan) {
  std::filesystem::create_directories(plan.out);
  Silent silent;
  const std::atomic<bool> stop{false};
  const auto outcomes = run_power_level(plan, {}, stop, silent);
  EXPECT_TRUE(outcomes) << (outcomes ? "" : outcomes.error().message());
  if (!outcomes) return {};
  EXPECT_EQ(outcomes->size(), 1U);
  if (std::getenv("ASSAY_TEST_STORIES") != nullptr) {
    fmt::print("{}\n", to_json(outcomes->front()).dump(1));
  }
  return outcomes->front();
}

TEST(PowerLevel, ProvesThatASafeSettingKeepsWhatItAcknowledged) {
  const TemporaryDirectory home;
  const LevelOutcome outcome =
      run(plan_of("sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}}, home));
  EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.reason;
  EXPECT_EQ(outcome.proven, DurabilityClass::power);
  EXPECT_EQ(outcome.coverage["weakest_profile_that_passes"], "strict");
  EXPECT_GT(outcome.cases, 500U);
  EXPECT_TRUE(outcome.bundles.empty());
}

TEST(PowerLevel, FindsTheLostCommitWhereMoreIsClaimedThanTheSettingGives) {
  const TemporaryDirectory home;
  CampaignPlan plan = plan_of("raw-file", {{"method", "none"}}, home);
  plan.claimed = DurabilityClass::power;  // as a user would who believes it
  const LevelOutcome outcome = run(plan);
  EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.reason;
  EXPECT_GT(outcome.failures, 0U);
  ASSERT_FALSE(outcome.bundles.empty());
  const auto bundle = read_bundle(outcome.bundles.front());
  ASSERT_TRUE(bundle) << bundle.error().message();
  const auto again =
      replay_bundle(outcome.bundles.front(), *bundle, **find_driver("raw-file"), home.path());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->loss, bundle->judgement.loss);
}

TEST(PowerLevel, ReachesWhatALossySettingMayLoseAndPassesIt) {
  const TemporaryDirectory home;
  const LevelOutcome outcome =
      run(plan_of("sqlite", {{"journal_mode", "wal"}, {"synchronous", "normal"}}, home));
  EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.reason;
  EXPECT_EQ(outcome.observed, Loss::suffix);
  EXPECT_EQ(outcome.proven, DurabilityClass::power_prefix);
}

/// Stops the level in the midst of its second history, and looks at what a kill would leave.
class StopsInTheSecond final : public CampaignObserver {
 public:
  explicit StopsInTheSecond(std::atomic<bool>& stop) : stop_(stop) {}
  void progress(double /*fraction*/, const std::string& sentence) override {
    if (sentence.starts_with("history 2,")) stop_ = true;
  }
  void so_far(const LevelOutcome& outcome) override {
    EXPECT_EQ(outcome.resume.value("next", 0), outcome.coverage.value("histories", -1));
    ++kept_;
  }
  [[nodiscard]] int kept() const { return kept_; }

 private:
  std::atomic<bool>& stop_;
  int kept_ = 0;
};

TEST(PowerLevel, GoesOnBehindTheLastWholeHistoryAndFindsWhatOneRunFinds) {
  const TemporaryDirectory home;
  CampaignPlan plan = plan_of("raw-file", {}, home);
  plan.budget.cases = 2400;
  const LevelOutcome whole = run(plan);
  ASSERT_GT(whole.coverage.value("histories", 0), 2) << "too few to stop in the second";
  std::atomic<bool> stop{false};
  StopsInTheSecond observer(stop);
  const auto first = run_power_level(plan, {}, stop, observer);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(observer.kept(), 1);
  EXPECT_FALSE(first->front().finished);
  const auto kept = level_outcome_from_json(to_json(first->front()));
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(kept->resume.value("next", 0), 1);
  stop = false;
  Silent silent;
  const auto rest = run_power_level(plan, {*kept}, stop, silent);
  ASSERT_TRUE(rest) << rest.error().message();
  const LevelOutcome& outcome = rest->front();
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.verdict, whole.verdict);
  EXPECT_EQ(outcome.observed, whole.observed);
  // The store's own thread prepares files beside the writer, so that a history has a few states
  // more or less from run to run and the budget may need one history more; each adds the same
  // commits.
  const auto commits_of_one = [](const LevelOutcome& of) {
    return of.coverage.value("acknowledged_commits", 0.0) / of.coverage.value("histories", 1.0);
  };
  EXPECT_EQ(commits_of_one(outcome), commits_of_one(whole));
  for (const char* const profile : {"ordered", "strict", "btrfs", "prefix"})
    for (const char* const sum : {"states_checked", "by_loss"})
      EXPECT_EQ(outcome.coverage["profiles"][profile][sum],
                whole.coverage["profiles"][profile][sum])
          << profile << " " << sum;
}

TEST(PowerLevel, LooksInTheUnionOfItsShardsAtTheStatesOfTheUnshardedRunAndNoOthers) {
  const TemporaryDirectory home;
  const Driver& driver = **find_driver("sqlite");
  const History history(7, *shape_for(driver.capabilities(), 1));
  LifeOfStore life;
  life.driver = &driver;
  life.options.directory = home.file("store");
  life.options.durability = DurabilityClass::power;
  life.history = &history;
  life.transactions = 8;
  std::filesystem::create_directory(life.options.directory);
  const auto recorded = record_store(life);
  ASSERT_TRUE(recorded) << recorded.error().message();
  std::filesystem::create_directory(home.file("states"));
  ExplorePlan plan;
  plan.states_max = 150;
  plan.pool.directory = home.file("states");
  plan.pool.check = check_of(life);
  const auto whole = explore(recorded->trace, recorded->receipts, plan);
  ASSERT_TRUE(whole) << whole.error().message();
  ASSERT_EQ(whole->checked, 150U);
  Exploration sum;
  Exploration twice;
  for (plan.shard = 0, plan.shards = 3; plan.shard < plan.shards; ++plan.shard) {
    plan.pool.jobs = 1 + static_cast<std::uint32_t>(plan.shard);
    const auto part = explore(recorded->trace, recorded->receipts, plan);
    ASSERT_TRUE(part) << part.error().message();
    EXPECT_GT(part->checked, 20U);
    add_shard(sum, *part);
    if (plan.shard != 1) add_shard(twice, *part);
    if (plan.shard == 0) add_shard(twice, *part);
  }
  for (Exploration* const one : {&sum, &twice})
    std::tie(one->seconds_building, one->seconds_checking) =
        std::tuple(whole->seconds_building, whole->seconds_checking);
  EXPECT_EQ(to_json(sum), to_json(*whole));
  EXPECT_NE(twice.checked_digest, whole->checked_digest)
      << "one shard is missing, one is twice there";
}

TEST(PowerLevel, MergesShardsToTheVerdictOfTheUnshardedRun) {
  const TemporaryDirectory home;
  CampaignPlan plan = plan_of("sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}}, home);
  plan.budget.cases = 700;  // half of them decide: 300 are needed, and no shard has as many
  std::vector<LevelOutcome> shards;
  for (std::uint64_t index = 0; index < 2; ++index) {
    plan.shard = {index, 2};
    shards.push_back(run(plan));
  }
  plan.shard = {};
  const auto merged = merge_power_level(plan, shards);
  ASSERT_TRUE(merged) << merged.error().message();
  EXPECT_EQ(merged->verdict, Verdict::pass) << merged->reason;
  EXPECT_EQ(merged->proven, DurabilityClass::power);
  EXPECT_EQ(merged->cases, shards[0].cases + shards[1].cases);
  EXPECT_EQ(merged->coverage["histories"], shards[0].coverage["histories"]);
  EXPECT_GE(merged->coverage["profiles"]["ordered"].value("states_checked", 0), 300);
  EXPECT_EQ(merged->coverage["profiles"]["ordered"]["passes"], true);
  // What could not be recorded in one of them is not passed by the other.
  shards[1].verdict = Verdict::inconclusive;
  shards[1].reason = "it could not be recorded";
  shards[1].coverage.erase("profiles");
  const auto broken = merge_power_level(plan, shards);
  ASSERT_TRUE(broken) << broken.error().message();
  EXPECT_EQ(broken->verdict, Verdict::inconclusive);
  EXPECT_FALSE(broken->proven);
}

TEST(PowerLevel, RemovesTheStatesThatAKilledRunLeftBehind) {
  const TemporaryDirectory home;
  CampaignPlan plan = plan_of("raw-file", {}, home);
  plan.budget.cases = 100;
  const std::string memory = fmt::format("/dev/shm/assay-states-{}", ::getuid());
  const std::string root = std::filesystem::exists("/dev/shm") ? memory : plan.root;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto states = TrialDirectory::make(root);
    const std::string path = states ? states->path() : std::string();
    static_cast<void>(!::write(ends[1], path.data(), path.size()));
    ::_exit(0);  // without its destructor, as after SIGKILL
  }
  std::string left(4096, '\0');
  const ssize_t got = ::read(ends[0], left.data(), left.size());
  ASSERT_GT(got, 0);
  left.resize(static_cast<std::size_t>(got));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(std::filesystem::exists(left));
  run(plan);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(PowerLevel, RefusesAPositionThatIsNone) {
  const TemporaryDirectory home;
  const CampaignPlan plan = plan_of("raw-file", {}, home);
  LevelOutcome damaged;
  damaged.level = Level::power_files;
  damaged.resume = {{"next", 1}, {"cases", "many"}};
  Silent silent;
  const std::atomic<bool> stop{false};
  const auto refused = run_power_level(plan, {damaged}, stop, silent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::bad_input);
}

TEST(PowerLevel, RunsTheMatrixAndGoesOnWithTheRowThatItWasAt) {
  const TemporaryDirectory home;
  MatrixPlan plan;
  plan.rows = *choose_rows({"raw-file"});
  plan.levels = {Level::power_files};
  plan.budget_text = "700";
  plan.budget = *parse_budget(plan.budget_text);
  plan.writers = 1;
  plan.root = home.file("root");
  plan.out = home.file("out");
  Silent silent;
  std::atomic<bool> stop{false};
  std::vector<std::string> begun;
  // Stops before the second row looks at anything.
  const auto stopped = run_matrix(plan, {"test"}, stop, silent, [&](std::size_t, const auto& row) {
    begun.push_back(row.name);
    stop = begun.size() == 2;
  });
  ASSERT_TRUE(stopped) << stopped.error().message();
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_TRUE(is_unfinished(plan));
  stop = false;
  const auto all = run_matrix(plan, {"test"}, stop, silent,
                              [&](std::size_t, const auto& row) { begun.push_back(row.name); });
  ASSERT_TRUE(all) << all.error().message();
  const std::vector<std::string> expected{"raw-file unsynced", "raw-file", "raw-file"};
  EXPECT_EQ(begun, expected);
  EXPECT_FALSE(is_unfinished(plan));
  ASSERT_EQ(all->entries.size(), 2U);
  EXPECT_EQ(all->entries[0].reached, Loss::suffix);
  EXPECT_EQ(all->entries[1].outcome.proven, DurabilityClass::power);
  EXPECT_EQ(worst_verdict(*all), Verdict::pass) << matrix_text(*all);
  const auto ledger = read_ledger(all->ledger_path);
  ASSERT_TRUE(ledger) << ledger.error().message();
  EXPECT_EQ(ledger->records.size(), 2U);
  MatrixPlan other = plan;
  other.seed = 2;
  EXPECT_FALSE(run_matrix(other, {"test"}, stop, silent, [](std::size_t, const auto&) {}))
      << "another matrix must not go on with this one's rows";
}

}  // namespace
}  // namespace assay::qualify::power
