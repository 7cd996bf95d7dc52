// Level B as a campaign runs it, on ext4. Where the machine does not let disks be made, these tests
// are skipped and say why.
#include "harness/qualify/block/block_level.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/qualify/block/exec_store.h"
#include "harness/qualify/block/file_system.h"
#include "harness/qualify/block/loop_device.h"
#include "harness/qualify/bundle.h"
#include "harness/trial/trial.h"

namespace assay::qualify::block {
namespace {

class Silent final : public CampaignObserver {};

class BlockLevelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacking = what_is_lacking(*find_file_system("ext4"));
    if (!lacking.empty()) GTEST_SKIP() << lacking;
  }

  CampaignPlan plan_of(const std::string& store, const Settings& settings, std::uint64_t cuts) {
    CampaignPlan plan;
    plan.store = store;
    plan.settings = settings;
    const auto driver = find_block_store(store);
    ASSAY_CHECK(driver.has_value(), "the store is there");
    plan.settings_in_force = *resolve_settings(**driver, plan.durability, settings);
    plan.claimed = given_durability(**driver, plan.durability, settings)->given;
    plan.shape = *shape_for((*driver)->capabilities(), 1);
    plan.levels = {Level::power_blocks};
    const char* const cases = std::getenv("ASSAY_TEST_CUTS");
    plan.budget.cases = cases == nullptr ? cuts : std::strtoull(cases, nullptr, 10);
    plan.root = home_.file("root");
    plan.out = home_.file("out");
    std::filesystem::create_directories(plan.out);
    return plan;
  }

  LevelOutcome run(const CampaignPlan& plan, const DiskFault& fault = {}) {
    Silent silent;
    const auto outcomes = run_block_level_on(fault, plan, {}, stop_, silent);
    EXPECT_TRUE(outcomes) << (outcomes ? "" : outcomes.error().message());
    if (!outcomes || outcomes->size() != 1) return {};
    if (std::getenv("ASSAY_TEST_STORIES") != nullptr)
      fmt::print("{}\n", to_json(outcomes->front()).dump(1));
    EXPECT_TRUE(std::filesystem::is_empty(plan.root)) << "something of ours stays behind";
    return outcomes->front();
  }

  TemporaryDirectory home_;
  const std::atomic<bool> stop_{false};
};

TEST_F(BlockLevelTest, a_safe_setting_passes_and_is_proven_on_the_file_system_that_is_named) {
  const LevelOutcome outcome =
      run(plan_of("sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}}, 110));
  EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.reason;
  EXPECT_EQ(outcome.observed, Loss::intact);
  EXPECT_EQ(outcome.proven, DurabilityClass::power);
  EXPECT_EQ(outcome.profile, "ext4");
  EXPECT_GE(outcome.cases, 110U);
  const nlohmann::json system = outcome.coverage.value("file_system", nlohmann::json::object());
  EXPECT_NE(system.value("features", "").find("has_journal"), std::string::npos) << system.dump();
  EXPECT_GT(outcome.coverage.value("disk_flushes", 0), 40);
}

TEST_F(BlockLevelTest, a_lossy_setting_reaches_what_it_may_lose) {
  const LevelOutcome outcome = run(plan_of("sqlite", {{"synchronous", "off"}}, 60));
  EXPECT_GE(outcome.observed, Loss::suffix);
  EXPECT_EQ(outcome.failures, 0U) << outcome.reason;
}

TEST_F(BlockLevelTest, a_claim_that_is_not_kept_fails_with_a_bundle_that_shows_it_again) {
  CampaignPlan plan = plan_of("raw-file", {{"method", "none"}}, 60);
  plan.claimed = DurabilityClass::power;  // as a user would who believes it
  plan.settings_in_force.clear();         // ... and no table knows better
  plan.failures_max = 1;
  const LevelOutcome outcome = run(plan);
  ASSERT_EQ(outcome.verdict, Verdict::fail) << outcome.reason;
  ASSERT_FALSE(outcome.bundles.empty());
  const auto bundle = read_bundle(outcome.bundles.front());
  ASSERT_TRUE(bundle) << bundle.error().message();
  const auto again =
      replay_bundle(outcome.bundles.front(), *bundle, **find_driver("raw-file"), home_.path());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->loss, bundle->judgement.loss);
  EXPECT_FALSE(again->allowed(bundle->allowed));
}

TEST_F(BlockLevelTest, a_disk_that_loses_what_was_flushed_is_the_harness_error_and_no_verdict) {
  const LevelOutcome outcome =
      run(plan_of("sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}}, 40),
          {.forgets_flushes = true});
  EXPECT_EQ(outcome.verdict, Verdict::harness_error) << outcome.reason;
  EXPECT_FALSE(outcome.proven);
  EXPECT_NE(outcome.reason.find("flushed"), std::string::npos) << outcome.reason;
}

TEST_F(BlockLevelTest, a_file_system_that_nobody_knows_is_refused_with_the_valid_ones) {
  CampaignPlan plan = plan_of("sqlite", {}, 10);
  plan.file_systems = {"ext5"};
  Silent silent;
  const auto outcomes = run_block_level(plan, {}, stop_, silent);
  ASSERT_FALSE(outcomes);
  EXPECT_NE(outcomes.error().message().find("xfs"), std::string::npos);
}

}  // namespace
}  // namespace assay::qualify::block
