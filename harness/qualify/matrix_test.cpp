// The matrix tells a blind harness from a lossy store, and its table agrees with the adapters.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/qualify/matrix.h"
#include "harness/qualify/perform.h"

namespace assay::qualify {
namespace {

MatrixEntry entry(Verdict verdict, Loss observed, std::optional<Control> control) {
  MatrixEntry made;
  made.row = {"toy | <row>", "toy", {}};
  made.claimed = DurabilityClass::power_prefix;
  made.control = std::move(control);
  made.outcome.level = Level::power_files;
  made.outcome.profile = "ordered";
  made.outcome.verdict = verdict;
  made.outcome.allowed = Loss::suffix;
  made.outcome.observed = observed;
  made.outcome.cases = 321;
  made.outcome.coverage = nlohmann::json::object();
  return made;
}

const Control kLossy{Loss::suffix, Loss::suffix, "its manual"};

TEST(Matrix, a_lossy_control_that_lost_nothing_does_not_pass) {
  MatrixEntry missed = entry(Verdict::pass, Loss::intact, kLossy);
  examine(missed);
  EXPECT_EQ(missed.verdict, Verdict::inconclusive);
  EXPECT_NE(missed.reason.find("has to lose 'suffix'"), std::string::npos) << missed.reason;
  MatrixEntry reached = entry(Verdict::pass, Loss::suffix, kLossy);
  examine(reached);
  EXPECT_EQ(reached.verdict, Verdict::pass);
}

TEST(Matrix, what_a_profile_with_fewer_guarantees_shows_counts_as_reached) {
  MatrixEntry strict = entry(Verdict::pass, Loss::intact, kLossy);
  strict.outcome.coverage["profiles"]["strict"] = {{"worst", "suffix"}, {"passes", true}};
  examine(strict);
  EXPECT_EQ(strict.reached, Loss::suffix);
  EXPECT_EQ(strict.verdict, Verdict::pass);
}

TEST(Matrix, a_level_s_own_verdict_is_never_made_better) {
  for (const Verdict verdict : {Verdict::fail, Verdict::harness_error, Verdict::skipped}) {
    MatrixEntry bad = entry(verdict, Loss::suffix, kLossy);
    examine(bad);
    EXPECT_EQ(bad.verdict, verdict);
  }
}

TEST(Matrix, every_form_of_output_shows_row_verdict_and_reason) {
  Matrix matrix;
  MatrixEntry failing = entry(Verdict::fail, Loss::torn, kLossy);
  failing.outcome.reason = "a & b";
  failing.outcome.bundles = {"out/bundle"};
  failing.outcome.coverage["profiles"] = {
      {"ordered", {{"worst", "torn"}, {"passes", false}, {"states_checked", 300}}},
      {"strict", {{"worst", "torn"}, {"passes", false}, {"states_checked", 21}}}};
  examine(failing);
  matrix.entries.push_back(failing);
  EXPECT_EQ(worst_verdict(matrix), Verdict::fail);
  const std::string text = matrix_text(matrix);
  EXPECT_NE(text.find("strict"), std::string::npos) << text;
  EXPECT_NE(text.find("FAIL: a & b"), std::string::npos) << text;
  EXPECT_NE(text.find("assay qualify replay out/bundle"), std::string::npos) << text;
  const std::string markdown = matrix_markdown(matrix);
  EXPECT_NE(markdown.find("toy \\| \\<row>"), std::string::npos) << markdown;
  const std::string junit = matrix_junit(matrix);
  EXPECT_NE(junit.find("failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("name=\"toy | &lt;row&gt;\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("a &amp; b"), std::string::npos) << junit;
  const nlohmann::json json = matrix_json({}, matrix);
  EXPECT_EQ(json["verdict"], "FAIL");
  EXPECT_EQ(json["rows"][0]["control"]["within_its_maximum"], false);
  EXPECT_EQ(json["rows"][0]["control"]["reached_what_it_must"], true);
}

TEST(Matrix, rows_are_chosen_by_name_or_store_and_a_typo_lists_the_valid_ones) {
  const auto sqlite = choose_rows({"sqlite", "sqlite wal full"});
  ASSERT_TRUE(sqlite);
  EXPECT_GT(sqlite->size(), 5U);
  EXPECT_TRUE(std::ranges::all_of(*sqlite, [](const auto& row) { return row.store == "sqlite"; }));
  EXPECT_EQ(choose_rows({"lmdb nosync"})->size(), 1U);
  const auto typo = choose_rows({"sqlite wall full"});
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message().find("sqlite wal full"), std::string::npos);
}

/// What the table says of a row must be found by the settings that are in force when it runs, and
/// an adapter must not claim more than the documentation gives.
TEST(Matrix, each_row_is_a_control_and_claims_no_more_than_its_documentation) {
  for (const MatrixRow& row : matrix_rows()) {
    const auto driver = find_driver(row.store);
    if (!driver) continue;  // left out of this build
    const auto in_force = resolve_settings(**driver, DurabilityClass::power, row.settings);
    ASSERT_TRUE(in_force) << row.name << ": " << in_force.error().message();
    const auto claimed = given_durability(**driver, DurabilityClass::power, row.settings);
    ASSERT_TRUE(claimed) << row.name;
    const auto power = find_control(row.store, *in_force, Crash::power);
    ASSERT_TRUE(power) << row.name;
    EXPECT_GE(allowed_loss(claimed->given, Crash::power), power->most)
        << row.name << " is claimed to be " << to_string(claimed->given);
    const auto kill = find_control(row.store, *in_force, Crash::kill);
    ASSERT_TRUE(kill) << row.name;
    EXPECT_GE(allowed_loss(claimed->given, Crash::kill), kill->most)
        << row.name << " is claimed to be " << to_string(claimed->given);
    EXPECT_LE(power->must_reach.value_or(Loss::intact), power->most) << row.name;
  }
}

TEST(Matrix, sizes_are_small_where_the_user_gave_none_and_stay_where_one_was_given) {
  EXPECT_EQ(small_scale("lode", {}).at("log_segment_bytes"), "65536");
  EXPECT_EQ(small_scale("lode", {{"log_segment_bytes", "1048576"}}).at("log_segment_bytes"),
            "1048576");
  EXPECT_TRUE(small_scale("sqlite", {}).empty());
}

TEST(Matrix, each_row_is_a_setting_that_its_store_takes) {
  for (const MatrixRow& row : matrix_rows()) {
    const auto driver = find_driver(row.store);
    ASSERT_TRUE(driver) << row.store;
    const TemporaryDirectory home;
    const OpenOptions options = qualification_options(
        home.path(), DurabilityClass::power, small_scale(row.store, row.settings), KeyKind::bytes);
    const auto store = (*driver)->open(options);
    EXPECT_TRUE(store) << row.name << ": " << (store ? "" : store.error().message());
  }
}

}  // namespace
}  // namespace assay::qualify
