#include "harness/experiment/reproduction.h"

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/plan_record.h"

namespace assay {
namespace {

using nlohmann::json;

class RecordedPlan : public FakeRun {
 protected:
  /// What a ledger would keep of it, and the plan that is built from that alone.
  void expect_built_back(const Plan& original) {
    const json canonical = to_json(original);
    std::filesystem::remove(folder_ + "/tiny.toml");
    const auto again = plan_from_record(canonical, stores_.environment());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(differences(canonical, to_json(*again)), std::vector<std::string>());
    EXPECT_EQ(plan_digest(to_json(*again)), plan_digest(canonical));
  }
};

TEST_F(RecordedPlan, is_built_back_from_its_defaults) {
  expect_built_back(plan());
}

TEST_F(RecordedPlan, is_built_back_with_a_latency_demands_and_no_twin) {
  expect_built_back(
      plan("metric = \"latency\"\nlatency_class = \"update\"\n"
           "latency_percentile = \"p99\"\na_a = false\nreferences = [\"null\"]\n"
           "machine_demands = [\"thp\"]\nquestion = \"why?\"\nseed = 12\n"));
}

TEST_F(RecordedPlan, is_built_back_with_claims_windows_and_a_control) {
  const std::string more =
      "[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\nkind = \"equivalence\"\nmargin_percent = 3\n"
      "[[hypotheses]]\na = \"alpha\"\nkind = \"regression\"\ncorridor = 1.3\n"
      "relative_to = \"raw-file\"\n"
      "[positive_control]\narm = \"beta\"\ndelay_ns = 1000\n"
      "[windows]\noperations = 7\nwindows = 9\n"
      "[aggregation]\nof_process = \"median-of-windows\"\nwarm_up_trials = 1\n";
  auto parsed = parse_plan(plan_text("design = \"windows\"\na_a_arm = \"beta\"\n") + more,
                           folder_ + "/p.toml", stores_.environment());
  ASSERT_TRUE(parsed) << parsed.error().message();
  expect_built_back(*parsed);
}

TEST_F(RecordedPlan, of_a_store_that_is_not_here_is_an_error_that_names_it) {
  json canonical = to_json(plan());
  canonical["arms"][0]["store"] = "omega";
  const auto refused = plan_from_record(canonical, stores_.environment());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("omega"), std::string::npos);
}

TEST_F(RecordedPlan, that_is_none_is_an_error_of_the_ledger) {
  const auto refused = plan_from_record(json{{"name", "x"}}, stores_.environment());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::ledger);
}

json verdict_of(const std::string& verdict, double ratio, double low, double high,
                const std::string& kind = "superiority") {
  return {{"outcome", "judged"},
          {"rows", {{{"arm", "a"}, {"disqualified", false}}}},
          {"comparisons",
           {{{"a", "a"},
             {"b", "b"},
             {"kind", kind},
             {"verdict", verdict},
             {"ratio", ratio},
             {"interval", {low, high}}}}}};
}

TEST(Confirmation, takes_the_same_verdict_and_overlapping_intervals) {
  const json earlier = verdict_of("superior", 1.5, 1.4, 1.6);
  EXPECT_EQ(confirm(earlier, earlier)["confirmed"], true);
  EXPECT_EQ(confirm(earlier, verdict_of("superior", 1.65, 1.6, 1.7))["confirmed"], true);
  const json apart = confirm(earlier, verdict_of("superior", 1.9, 1.8, 2.0));
  EXPECT_EQ(apart["confirmed"], false);
  EXPECT_EQ(apart["comparisons"][0]["same_verdict"], true);
  EXPECT_EQ(apart["comparisons"][0]["overlap"], false);
  const json unclear = confirm(earlier, verdict_of("inconclusive", 1.5, 0.9, 2.0));
  EXPECT_EQ(unclear["confirmed"], false);
  EXPECT_EQ(unclear["comparisons"][0]["overlap"], true);
}

TEST(Confirmation, counts_neither_what_was_void_nor_what_needs_the_earlier_baseline) {
  json earlier = verdict_of("superior", 1.5, 1.4, 1.6);
  const json regression = verdict_of("non-inferior", 1.0, 0.9, 1.1, "regression")["comparisons"][0];
  earlier["comparisons"].push_back(regression);
  EXPECT_EQ(confirm(earlier, verdict_of("superior", 1.5, 1.4, 1.6))["confirmed"], true);
  const json nothing = verdict_of("void", 1.5, 1.4, 1.6);
  EXPECT_EQ(confirm(nothing, nothing)["confirmed"], false);
  EXPECT_NE(confirm(nothing, nothing)["sentence"].get<std::string>().find("no comparison"),
            std::string::npos);
}

TEST(Confirmation, is_refused_where_another_arm_was_disqualified_or_the_new_one_is_void) {
  const json earlier = verdict_of("superior", 1.5, 1.4, 1.6);
  json now = earlier;
  now["rows"][0]["disqualified"] = true;
  EXPECT_EQ(confirm(earlier, now)["confirmed"], false);
  now = earlier;
  now["outcome"] = "void";
  EXPECT_EQ(confirm(earlier, now)["confirmed"], false);
  now = earlier;
  now["comparisons"] = json::array();
  EXPECT_EQ(confirm(earlier, now)["confirmed"], false);
}

}  // namespace
}  // namespace assay
