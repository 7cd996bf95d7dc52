// Every check of the suite passes on a store without flaws, and fails on one that breaks just that
// promise: a check that cannot fail would be worth nothing.
#include "adapters/conformance/conformance.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "adapters/conformance/testdata/flawed_store.h"
#include "adapters/temporary_directory.h"

namespace assay {
namespace {

using conformance::Flaw;
using conformance::FlawedDriver;

Result<ConformanceReport> run(const Driver& driver, std::vector<std::string> only = {},
                              std::uint64_t seed = 1) {
  const TemporaryDirectory directory;
  ConformanceOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::volatile_;
  options.only = std::move(only);
  options.seed = seed;
  return check_conformance(driver, options);
}

struct Planted {
  Flaw flaw;
  const char* check;
  CheckResult result;
};

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.check;
}

class PlantedFlaw : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFlaw, is_found_by_the_check_for_it) {
  const FlawedDriver driver(GetParam().flaw);
  const auto report = run(driver, {GetParam().check});
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->outcomes.size(), 1u);
  EXPECT_EQ(report->outcomes[0].check, GetParam().check);
  EXPECT_EQ(to_string(report->outcomes[0].result), to_string(GetParam().result))
      << report->outcomes[0].detail;
  EXPECT_FALSE(report->outcomes[0].detail.empty());
  EXPECT_FALSE(report->ok());
}

constexpr auto kFailed = CheckResult::failed;
constexpr auto kWrong = CheckResult::wrong_contents;

const std::vector<Planted> kPlanted{
    {Flaw::no_version, "description", kFailed},
    {Flaw::no_reason, "settings_listed", kFailed},
    {Flaw::get_fails, "open_and_close", kFailed},
    {Flaw::nothing_read_back, "effective_settings", kFailed},
    {Flaw::any_setting, "unknown_setting", kFailed},
    {Flaw::any_durability, "undeclared_durability", kFailed},
    {Flaw::erase_does_nothing, "contents", kWrong},
    {Flaw::views_into_the_map, "sessions_agree", kWrong},
    {Flaw::shorter_value_ignored, "overwrite", kWrong},
    {Flaw::erase_of_absent_fails, "erase_absent", kFailed},
    {Flaw::empty_value_is_absent, "empty_value", kWrong},
    {Flaw::empty_key_refused, "shortest_key", kFailed},
    {Flaw::long_key_accepted, "longest_key", kFailed},
    {Flaw::key_cut, "longest_key", kWrong},
    {Flaw::value_cut, "large_values", kWrong},
    {Flaw::key_cut, "prefix_keys", kWrong},
    {Flaw::key_ends_at_nul, "binary_keys", kWrong},
    {Flaw::shorter_keys_first, "order", kWrong},
    {Flaw::last_excluded, "bounds", kWrong},
    {Flaw::limit_off_by_one, "bounds", kWrong},
    {Flaw::sink_not_heard, "early_end", kWrong},
    {Flaw::live_scan, "snapshot", kWrong},
    {Flaw::signed_order, "u64_keys", kWrong},
    {Flaw::batch_drops_last, "batch", kWrong},
    {Flaw::batch_first_wins, "batch_same_key", kWrong},
    {Flaw::batch_half_made, "batch_refused", kWrong},
    {Flaw::rollback_leaves_last, "rollback", kWrong},
    {Flaw::rollback_undeclared, "rollback", kFailed},
    {Flaw::reopen_loses_last_key, "reopen", kWrong},
    {Flaw::opens_nothing, "no_create", kFailed},
    {Flaw::checkpoint_loses, "maintenance", kWrong},
    {Flaw::no_footprint, "footprint", kFailed},
    {Flaw::torn_batches, "readers_beside_writer", kWrong},
    {Flaw::writers_lose, "concurrent_writers", kWrong},
    {Flaw::forgets_some, "random_history", kWrong},
};

INSTANTIATE_TEST_SUITE_P(Conformance, PlantedFlaw, ::testing::ValuesIn(kPlanted));

TEST(Conformance, every_check_has_a_flaw_that_it_finds) {
  std::set<std::string> covered;
  for (const Planted& planted : kPlanted) covered.insert(planted.check);
  for (const CheckDescription& check : conformance_checks()) {
    EXPECT_TRUE(covered.contains(check.name)) << check.name;
    EXPECT_FALSE(check.promise.empty()) << check.name;
  }
}

TEST(Conformance, passes_a_store_without_flaws) {
  const FlawedDriver driver(Flaw::none);
  const auto report = run(driver);
  ASSERT_TRUE(report) << report.error().message();
  for (const CheckOutcome& outcome : report->outcomes) {
    EXPECT_EQ(to_string(outcome.result), "passed") << outcome.check << ": " << outcome.detail;
  }
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->outcomes.size(), conformance_checks().size());
}

TEST(Conformance, shows_the_seed_of_a_history_that_fails) {
  const FlawedDriver driver(Flaw::forgets_some);
  const auto report = run(driver, {"random_history"}, 4711);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_NE(report->outcomes[0].detail.find("seed 4711, "), std::string::npos)
      << report->outcomes[0].detail;
}

TEST(Conformance, names_the_nearest_check) {
  const FlawedDriver driver(Flaw::none);
  const auto report = run(driver, {"contens"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message(), "there is no check \"contens\" (did you mean \"contents\"?)");
}

TEST(Conformance, refuses_a_class_that_the_store_does_not_claim) {
  const FlawedDriver driver(Flaw::none);
  const TemporaryDirectory directory;
  ConformanceOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::power;
  const auto report = check_conformance(driver, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind(), ErrorKind::unsupported);
}

TEST(Conformance, leaves_nothing_behind) {
  const FlawedDriver driver(Flaw::erase_does_nothing);
  const TemporaryDirectory directory;
  ConformanceOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::volatile_;
  ASSERT_TRUE(check_conformance(driver, options));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(ConformanceReport, comes_back_from_json) {
  const ConformanceReport report{
      .store = "toy",
      .version = "1",
      .durability = DurabilityClass::power_last,
      .seed = 9,
      .outcomes = {{"contents", CheckResult::wrong_contents, "\"k\" is missing", 1.5},
                   {"rollback", CheckResult::not_supported, "declared", 0.25}}};
  const auto back = conformance_report_from_json(to_json(report));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(to_json(*back), to_json(report));
  EXPECT_FALSE(back->ok());
  EXPECT_FALSE(conformance_report_from_json(nlohmann::json::object()));
}

}  // namespace
}  // namespace assay
