// Level K has teeth: each mistake of the toy store is caught, the correct store passes.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "harness/ledger/directory_lock.h"
#include "harness/ledger/ledger.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/campaign.h"
#include "harness/qualify/kill/kill_level.h"
#include "harness/qualify/testdata/toy_store.h"

namespace assay::qualify {
namespace {

class KillLevelTest : public ::testing::TestWithParam<ToyMistake> {
 protected:
  CampaignPlan plan(const std::string& mistake, const std::string& budget) {
    CampaignPlan made;
    made.store = "toy";
    made.durability = DurabilityClass::process;
    made.claimed = DurabilityClass::process;
    made.settings = {{"mistake", mistake}};
    made.settings_in_force = made.settings;
    made.levels = {Level::kill};
    made.shape = *shape_for(toy_driver().capabilities(), 3);
    made.seed = 7;
    made.budget = *parse_budget(budget);
    made.root = directory_.file("root");
    made.out = directory_.file("out");
    made.jobs = 2;
    made.binary = ASSAY_TOY_CHILD;
    made.open_timeout_ms = mistake == "hangs_in_recovery" ? 1000 : 30'000;
    return made;
  }

  Result<CampaignOutcome> run(const CampaignPlan& made) {
    return run_campaign(made, {"test"}, stop_, observer_);
  }

  TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
  CampaignObserver observer_;
};

TEST_P(KillLevelTest, a_mistake_is_caught_and_its_bundle_shows_it_again) {
  CampaignPlan made = plan(GetParam().name, "3000");
  made.failures_max = 1;
  const auto outcome = run(made);
  ASSERT_TRUE(outcome) << outcome.error().message();
  const LevelOutcome& level = outcome->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::fail) << level.coverage.dump(1);
  EXPECT_FALSE(level.proven);
  std::set<std::string> kinds;
  const nlohmann::json findings = level.coverage.value("findings", nlohmann::json::object());
  for (const auto& [kind, count] : findings.items()) kinds.insert(kind);
  EXPECT_TRUE(std::ranges::any_of(GetParam().shows_as,
                                  [&](const std::string& kind) { return kinds.contains(kind); }))
      << level.coverage.dump(1) << level.reason;
  ASSERT_FALSE(level.bundles.empty());
  const auto bundle = read_bundle(level.bundles.front());
  ASSERT_TRUE(bundle) << bundle.error().message();
  const auto again = replay_bundle(level.bundles.front(), *bundle, toy_driver(), made.root);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->allowed(bundle->allowed));
  EXPECT_EQ(again->loss, bundle->judgement.loss);
  EXPECT_NE(bundle_story(*bundle, *again).find("what came back"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(made.root)) << "something of ours stays behind";
}

INSTANTIATE_TEST_SUITE_P(Toy, KillLevelTest, ::testing::ValuesIn(toy_mistakes()),
                         [](const auto& one) { return one.param.name; });

TEST_F(KillLevelTest, two_campaigns_in_one_directory_are_not_both_begun) {
  const CampaignPlan made = plan("none", "20");
  std::filesystem::create_directories(made.out);
  const auto other = DirectoryLock::take(made.out);
  ASSERT_TRUE(other) << other.error().message();
  const auto refused = run(made);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("another assay"), std::string::npos)
      << refused.error().message();
  EXPECT_FALSE(std::filesystem::exists(made.out + "/campaign.json"));
}

TEST_F(KillLevelTest, a_correct_store_passes_and_is_proven_for_the_death_of_the_process) {
  const auto outcome = run(plan("none", "400"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  const LevelOutcome& level = outcome->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::pass) << level.reason;
  EXPECT_EQ(level.observed, Loss::intact);
  EXPECT_EQ(level.proven, DurabilityClass::process);
  EXPECT_GE(level.cases, 400U);
  for (const char* const aim : {"time", "note", "recovery", "checkpoint", "closing"})
    EXPECT_TRUE(level.coverage["kills_by_aim"].contains(aim)) << aim;
  EXPECT_GT(level.coverage.value("commits_in_flight_kept", 0), 0);
  const auto ledger = read_ledger(outcome->ledger_path);
  ASSERT_TRUE(ledger) << ledger.error().message();
  ASSERT_EQ(ledger->records.size(), 1U);
  EXPECT_EQ(ledger->records[0].kind, "qualification");
  EXPECT_EQ(ledger->records[0].body["outcome"], "proven");
  EXPECT_EQ(ledger->records[0].body["class"], "process");
  EXPECT_EQ(ledger->records[0].body["settings"]["mistake"], "none");
}

TEST_F(KillLevelTest, what_a_store_leaves_running_is_ended_and_counted) {
  const auto outcome = run(plan("leaves_a_process", "150"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->levels.at(0).verdict, Verdict::pass) << outcome->levels.at(0).reason;
  EXPECT_GT(outcome->levels.at(0).coverage.value("processes_left_behind", 0), 50);
}

TEST_F(KillLevelTest, a_few_kills_are_too_few_to_say_anything) {
  const auto outcome = run(plan("none", "5"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->levels.at(0).verdict, Verdict::inconclusive);
  EXPECT_EQ(outcome->records.at(0)["outcome"], "undecided");
}

TEST_F(KillLevelTest, a_stopped_campaign_goes_on_where_it_was) {
  class StopSoon final : public CampaignObserver {
   public:
    explicit StopSoon(std::atomic<bool>& stop) : stop_(stop) {}
    void progress(double fraction, const std::string& /*sentence*/) override {
      if (fraction > 0.2) stop_.store(true);
    }

   private:
    std::atomic<bool>& stop_;
  };
  const CampaignPlan made = plan("none", "300");
  StopSoon observer(stop_);
  const auto stopped = run_campaign(made, {"test"}, stop_, observer);
  ASSERT_TRUE(stopped) << stopped.error().message();
  ASSERT_TRUE(stopped->interrupted);
  EXPECT_TRUE(stopped->records.empty());
  const std::uint64_t before = stopped->levels.at(0).cases;
  EXPECT_LT(before, 300U);
  CampaignPlan other = made;
  other.seed = 8;
  stop_.store(false);
  EXPECT_FALSE(run(other)) << "another campaign must not go on with this one's state";
  const auto resumed = run(made);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_FALSE(resumed->interrupted);
  EXPECT_GE(resumed->levels.at(0).cases, 300U);
  EXPECT_GT(resumed->levels.at(0).cases, before);
  EXPECT_FALSE(run(made)) << "a campaign that has ended is not run again in its place";
}

TEST_F(KillLevelTest, leftovers_of_a_killed_campaign_are_removed_and_nothing_else) {
  const CampaignPlan made = plan("none", "5");
  std::filesystem::create_directories(made.root + "/assay-trial-99-0");
  std::ofstream(made.root + "/assay-trial-99-0/assay-trial.mark")
      << "assay trial directory\npid 99\nstart 1\nboot an-earlier-one\n";
  std::filesystem::create_directories(made.root + "/mine");
  ASSERT_TRUE(run(made));
  EXPECT_FALSE(std::filesystem::exists(made.root + "/assay-trial-99-0"));
  EXPECT_TRUE(std::filesystem::exists(made.root + "/mine"));
}

TEST_F(KillLevelTest, a_store_that_cannot_be_opened_is_an_error_and_no_verdict) {
  CampaignPlan made = plan("none", "5");
  made.settings = {{"mistake", "nnone"}};
  const auto outcome = run(made);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("none"), std::string::npos);
}

}  // namespace
}  // namespace assay::qualify
