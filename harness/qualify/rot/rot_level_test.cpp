// Level R has teeth: a store that notices damage passes, one that only claims to is caught.
#include "harness/qualify/rot/rot_level.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/rot/rot_claim.h"
#include "harness/qualify/rot/testdata/rot_toy.h"

namespace assay::qualify::rot {
namespace {

class RotLevelTest : public ::testing::Test {
 protected:
  CampaignPlan plan(const std::string& checksums, const std::string& mistake) {
    CampaignPlan made;
    made.store = "rot-toy";
    made.settings = {{"checksums", checksums}, {"mistake", mistake}};
    made.settings_in_force = made.settings;
    made.durability = DurabilityClass::process;
    made.claimed = DurabilityClass::process;
    made.levels = {Level::rot};
    made.shape = *shape_for(rot_toy_driver().capabilities(), 1);
    made.seed = 7;
    made.budget = *parse_budget("150");
    made.root = directory_.file("root");
    made.out = directory_.file("out-" + checksums + mistake + std::to_string(++runs_));
    made.jobs = 2;
    made.binary = ASSAY_ROT_TOY_CHILD;
    made.open_timeout_ms = mistake == "hangs" ? 500 : 30'000;
    made.failures_max = mistake == "none" ? 50 : 2;
    return made;
  }

  LevelOutcome run(const CampaignPlan& made) {
    const auto outcome = run_campaign(made, {"test"}, stop_, observer_);
    EXPECT_TRUE(outcome) << outcome.error().message();
    if (!outcome) return {};
    EXPECT_EQ(outcome->records.at(0)["outcome"], "undecided") << "rot is apart from durability";
    EXPECT_TRUE(std::filesystem::is_empty(made.root)) << "something of ours stays behind";
    return outcome->levels.at(0);
  }

  void expect_caught(const std::string& mistake, const std::string& effect) {
    const CampaignPlan made = plan("on", mistake);
    const LevelOutcome level = run(made);
    EXPECT_EQ(level.verdict, Verdict::fail) << level.coverage.dump(1);
    EXPECT_TRUE(level.coverage.at("effects").contains(effect)) << level.coverage.dump(1);
    ASSERT_FALSE(level.bundles.empty());
    const auto bundle = read_bundle(level.bundles.front());
    ASSERT_TRUE(bundle) << bundle.error().message();
    const auto again = replay_bundle(level.bundles.front(), *bundle, rot_toy_driver(), made.root);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_FALSE(again->allowed(bundle->allowed));
  }

  TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
  CampaignObserver observer_;
  int runs_ = 0;
};

TEST_F(RotLevelTest, a_store_that_compares_its_checksums_passes_and_notices) {
  const LevelOutcome level = run(plan("on", "none"));
  EXPECT_EQ(level.verdict, Verdict::pass) << level.reason << level.coverage.dump(1);
  EXPECT_TRUE(level.reason.empty()) << level.reason;
  EXPECT_EQ(level.coverage.at("effects").value("detected", std::uint64_t{0}), level.cases)
      << level.coverage.dump(1);
  EXPECT_EQ(level.coverage.at("effects_by_damage").size(), 4U) << "every kind of damage";
  EXPECT_FALSE(level.proven);
}

TEST_F(RotLevelTest, a_store_that_claims_checksums_and_does_not_look_is_caught) {
  expect_caught("ignores", "wrong-data");
}

TEST_F(RotLevelTest, a_store_that_crashes_while_reading_rot_is_caught) {
  expect_caught("crashes", "crashed");
}

TEST_F(RotLevelTest, a_store_that_hangs_while_reading_rot_is_caught) {
  expect_caught("hangs", "hung");
}

TEST_F(RotLevelTest, a_store_without_checksums_is_reported_and_not_failed) {
  const LevelOutcome level = run(plan("off", "ignores"));
  EXPECT_EQ(level.verdict, Verdict::pass);
  EXPECT_EQ(level.reason.substr(0, 11), "undetected:") << level.reason;
  EXPECT_GT(level.coverage.at("effects").value("wrong-data", 0), 0) << level.coverage.dump(1);
}

TEST_F(RotLevelTest, the_same_seed_does_the_same_damage) {
  CampaignPlan made = plan("off", "ignores");
  made.jobs = 1;
  const LevelOutcome first = run(made);
  made.out += "-again";
  EXPECT_EQ(first.coverage.at("effects_by_damage"), run(made).coverage.at("effects_by_damage"));
}

TEST(RotClaim, says_of_every_store_of_the_tree_whether_it_has_checksums) {
  EXPECT_FALSE(rot_claim_of("sqlite", {}).checksums);
  EXPECT_FALSE(rot_claim_of("lmdb", {}).checksums);
  EXPECT_TRUE(rot_claim_of("raw-file", {}).checksums);
  EXPECT_EQ(rot_claim_of("lode", {}).unsaid, Loss::suffix);
  EXPECT_EQ(rot_claim_of("rocksdb", {{"wal_recovery_mode", "absolute"}}).unsaid, Loss::intact);
  EXPECT_EQ(rot_claim_of("rocksdb", {{"wal_recovery_mode", "point_in_time"}}).unsaid, Loss::suffix);
}

}  // namespace
}  // namespace assay::qualify::rot
