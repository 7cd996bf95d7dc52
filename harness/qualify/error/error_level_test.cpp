// Level E has teeth: each way to mishandle an error is caught, both right ways pass.
#include <atomic>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/campaign.h"
#include "harness/qualify/error/error_level.h"
#include "harness/qualify/error/testdata/sync_toy.h"

namespace assay::qualify::error {
namespace {

class ErrorLevelTest : public ::testing::TestWithParam<SyncMistake> {
 protected:
  CampaignPlan plan(const std::string& mistake, const std::string& budget) {
    CampaignPlan made;
    made.store = "sync-toy";
    made.settings = {{"mistake", mistake}};
    made.settings_in_force = made.settings;
    made.levels = {Level::errors};
    made.shape = *shape_for(sync_toy_driver().capabilities(), 1);
    made.seed = 7;
    made.budget = *parse_budget(budget);
    made.root = directory_.file("root");
    made.out = directory_.file("out");
    made.jobs = 2;
    made.binary = ASSAY_SYNC_TOY_CHILD;
    if (mistake == "tries_for_ever") made.open_timeout_ms = 1000;
    return made;
  }

  Result<CampaignOutcome> run(const CampaignPlan& made) {
    return run_campaign(made, {"test"}, stop_, observer_);
  }

  TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
  CampaignObserver observer_;
};

TEST_P(ErrorLevelTest, a_mistake_is_caught_and_called_by_its_name) {
  CampaignPlan made = plan(GetParam().name, "1500");
  made.failures_max = GetParam().name == "tries_for_ever" ? 1 : 3;
  const auto outcome = run(made);
  ASSERT_TRUE(outcome) << outcome.error().message();
  const LevelOutcome& level = outcome->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::fail) << level.coverage.dump(1);
  const nlohmann::json findings = level.coverage.value("findings", nlohmann::json::object());
  EXPECT_TRUE(findings.contains(GetParam().shows_as)) << level.coverage.dump(1) << level.reason;
  EXPECT_EQ(outcome->records.at(0)["outcome"], "undecided") << "errors refute no class";
  EXPECT_TRUE(std::filesystem::is_empty(made.root)) << "something of ours stays behind";
  ASSERT_FALSE(level.bundles.empty()) << "every failure can be shown";
  const auto bundle = read_bundle(level.bundles.front());
  ASSERT_TRUE(bundle) << bundle.error().message();
  const std::string command = case_command(*bundle);
  if (GetParam().shows_as == "hung" || GetParam().shows_as == "crashed") {
    EXPECT_NE(command.find("--level E --seed 7 --shard "), std::string::npos) << command;
    EXPECT_NE(bundle_story(*bundle, bundle->judgement).find(GetParam().shows_as),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Toy, ErrorLevelTest, ::testing::ValuesIn(sync_mistakes()),
                         [](const auto& one) { return one.param.name; });

TEST_F(ErrorLevelTest, a_store_that_refuses_after_a_failed_sync_passes_and_proves_nothing) {
  const auto outcome = run(plan("none", "300"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  const LevelOutcome& level = outcome->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::pass) << level.reason << level.coverage.dump(1);
  EXPECT_EQ(level.observed, Loss::intact);
  EXPECT_FALSE(level.proven);
  EXPECT_GE(level.cases, 300U);
  for (const char* const call :
       {"pwrite64", "fdatasync", "fsync", "pread64", "ftruncate", "openat"})
    EXPECT_TRUE(level.coverage["faults_by_call"].contains(call)) << call;
  EXPECT_TRUE(level.coverage["faults"].contains("a short write once at write"));
  EXPECT_FALSE(level.coverage.contains("lives_that_acknowledge_after_a_failed_sync") &&
               level.coverage["lives_that_acknowledge_after_a_failed_sync"] == level.cases);
  EXPECT_EQ(outcome->records.at(0)["outcome"], "undecided");
  EXPECT_GT(outcome->records.at(0)["coverage"]["cases_per_second"].get<double>(), 0.0);
}

TEST_F(ErrorLevelTest, a_store_that_writes_again_before_it_syncs_again_is_not_blamed) {
  const auto outcome = run(plan("writes_again", "300"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  const LevelOutcome& level = outcome->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::pass) << level.reason << level.coverage.dump(1);
  EXPECT_GT(level.coverage.value("lives_that_acknowledge_after_a_failed_sync", 0), 0)
      << "it does go on after a failed sync";
}

TEST_F(ErrorLevelTest, several_writers_at_once_are_told_of_errors_and_the_wrong_are_found) {
  CampaignPlan made = plan("none", "160");
  made.shape.writers = 3;
  const auto right = run(made);
  ASSERT_TRUE(right) << right.error().message();
  const LevelOutcome& level = right->levels.at(0);
  EXPECT_EQ(level.verdict, Verdict::pass) << level.reason << level.coverage.dump(1);
  EXPECT_GT(level.coverage.value("lives_with_several_writers", 0), 15);
  EXPECT_LT(level.coverage.value("lives_with_several_writers", 0), 80);
  CampaignPlan wrong = plan("ignores_a_failed_sync", "1500");
  wrong.shape.writers = 3;
  wrong.out = directory_.file("wrong");
  wrong.failures_max = 30;
  const auto found = run(wrong);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_GT(found->levels.at(0).coverage.value("failures_with_several_writers", 0), 0)
      << found->levels.at(0).coverage.dump(1);
}

TEST_F(ErrorLevelTest, the_bundle_of_a_lost_page_shows_it_again) {
  CampaignPlan made = plan("syncs_again", "1500");
  made.failures_max = 1;
  const auto outcome = run(made);
  ASSERT_TRUE(outcome) << outcome.error().message();
  ASSERT_FALSE(outcome->levels.at(0).bundles.empty());
  const auto bundle = read_bundle(outcome->levels.at(0).bundles.front());
  ASSERT_TRUE(bundle) << bundle.error().message();
  const auto again =
      replay_bundle(outcome->levels.at(0).bundles.front(), *bundle, sync_toy_driver(), made.root);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->allowed(bundle->allowed));
  EXPECT_NE(bundle_story(*bundle, *again).find("EIO"), std::string::npos);
}

TEST_F(ErrorLevelTest, a_few_faults_are_too_few_to_say_anything) {
  const auto outcome = run(plan("none", "5"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->levels.at(0).verdict, Verdict::inconclusive);
}

}  // namespace
}  // namespace assay::qualify::error
