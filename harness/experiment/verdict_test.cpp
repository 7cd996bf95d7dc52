#include "harness/experiment/verdict.h"

#include <cmath>

#include <fmt/format.h>

#include "harness/experiment/comparison.h"
#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/google_benchmark_json.h"

namespace assay {
namespace {

using nlohmann::json;

class Verdict : public FakeRun {
 protected:
  /// Verdict of a run in which arm `name` had these rates, round by round.
  json judged(const std::string& more, std::map<std::string, std::vector<double>> rates) {
    change_ = [rates = std::move(rates)](const TrialRequest& trial, json& raw) -> Status {
      const auto found = rates.find(trial.arm.name);
      if (found != rates.end()) {
        raw = fake_raw(found->second.at(trial.seed - 1), trial.arm.store);
      }
      return {};
    };
    auto outcome = run(plan(more));
    EXPECT_TRUE(outcome) << outcome.error().message();
    return outcome ? outcome->verdict : json();
  }
  static const json& row(const json& verdict, const std::string& arm) {
    for (const json& one : verdict["rows"]) {
      if (one["arm"] == arm) return one;
    }
    ADD_FAILURE() << "no row " << arm;
    return verdict;
  }
  static std::string warnings(const json& verdict) { return verdict["warnings"].dump(); }
};

TEST_F(Verdict, gives_the_ratio_of_geometric_means_with_its_interval) {
  const json verdict =
      judged("a_a = false\n", {{"alpha", {100, 104, 98, 101}}, {"beta", {210, 200, 195, 205}}});
  const json& one = verdict["comparisons"][0];
  const double expected = std::pow(100.0 * 104 * 98 * 101 / (210.0 * 200 * 195 * 205), 0.25);
  EXPECT_NEAR(one["ratio"].get<double>(), expected, 1e-9);
  EXPECT_LT(one["interval"][0], one["ratio"]);
  EXPECT_GT(one["interval"][1], one["ratio"]);
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_EQ(one["test"], "welch");
  EXPECT_EQ(one["rank_test"], "mann-whitney");
  const std::string sentence = one["sentence"];
  EXPECT_TRUE(sentence.starts_with("beta is 2.01x alpha (1.9")) << sentence;
  EXPECT_NE(sentence.find(", p = "), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with(", n = 4")) << sentence;
}

TEST_F(Verdict, shows_an_arm_whose_settings_weaken_it_under_the_class_that_they_give) {
  const std::string text =
      plan_text("mixed_durability = true\na_a = false\n") + "[arms.settings]\nsync = \"off\"\n";
  const auto parsed = parse_plan(text, folder_ + "/p.toml", stores_.environment());
  ASSERT_TRUE(parsed) << parsed.error().message();
  const json verdict = run(*parsed)->verdict;
  EXPECT_EQ(row(verdict, "alpha")["durability"], "power");
  EXPECT_EQ(row(verdict, "alpha")["proof"], "declared");
  EXPECT_EQ(row(verdict, "beta")["durability"], "process");
  EXPECT_EQ(row(verdict, "beta")["proof"], "declared power, settings give process");
}

TEST_F(Verdict, warns_once_where_the_page_cache_was_not_part_of_the_budget) {
  const auto with_memory = [&](const json& memory) {
    change_ = [memory](const TrialRequest&, json& raw) -> Status {
      raw["memory"] = memory;
      return {};
    };
    return warnings(run(plan("a_a = false\n"))->verdict);
  };
  const std::string held = with_memory({{"limit_bytes", 1}});
  EXPECT_EQ(held.find("memory budget"), std::string::npos) << held;
  const std::string loose = with_memory({{"unknown", "no groups here"}});
  const std::size_t first = loose.find("memory budget (no groups here)");
  ASSERT_NE(first, std::string::npos) << loose;
  EXPECT_EQ(loose.find("memory budget", first + 1), std::string::npos) << loose;
}

// Blocks that differ by a factor of 10 hide a difference of 5 % from Welch's test, not from the
// paired one.
TEST_F(Verdict, of_blocks_compares_within_the_block) {
  const json verdict =
      judged("design = \"blocks\"\na_a = false\n",
             {{"alpha", {100, 1000, 300, 3000}}, {"beta", {105.1, 1050, 315.3, 3149}}});
  const json& one = verdict["comparisons"][0];
  EXPECT_EQ(one["test"], "paired");
  EXPECT_EQ(one["rank_test"], "wilcoxon");
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_LT(one["p"], 0.001);
  EXPECT_GT(one["welch_p"], 0.5);
  // Four pairs cannot reach p < 0.05 in a signed rank test: 2 / 2^4 is the least.
  EXPECT_NEAR(one["mann_whitney_p"].get<double>(), 0.125, 1e-9);
  EXPECT_NEAR(one["rank_p_smallest"].get<double>(), 0.125, 1e-9);
  EXPECT_EQ(one["disagreement"], false);
  EXPECT_EQ(warnings(verdict).find("the t-test and the rank test disagree"), std::string::npos);
}

// Wholly apart, which four a side suffice to see by ranks, but one wild value hides it from the
// t-test.
TEST_F(Verdict, says_when_the_rank_test_sees_what_the_t_test_does_not) {
  const json verdict =
      judged("a_a = false\n", {{"alpha", {100, 101, 102, 103}}, {"beta", {104, 105, 106, 10000}}});
  const json& one = verdict["comparisons"][0];
  EXPECT_LT(one["rank_p_smallest"], 0.05);
  EXPECT_LT(one["mann_whitney_p"], 0.05);
  EXPECT_GT(one["p"], 0.05);
  EXPECT_EQ(one["disagreement"], true);
  EXPECT_NE(warnings(verdict).find("the t-test and the rank test disagree"), std::string::npos);
}

TEST(Sentence, says_that_a_p_value_was_adjusted) {
  json comparison = {{"a", "x"}, {"b", "y"},     {"kind", "superiority"},
                     {"n", 5},   {"ratio", 2.0}, {"interval", {1.9, 2.1}},
                     {"p", 0.01}};
  judge_comparison(Plan{}, 0.03, 0.03, comparison);
  EXPECT_EQ(comparison["sentence"], "x is 2.00x y (1.90 to 2.10), adjusted p = 0.03, n = 5");
  judge_comparison(Plan{}, 0.01, 0.01, comparison);  // a family of one
  EXPECT_EQ(comparison["sentence"], "x is 2.00x y (1.90 to 2.10), p = 0.01, n = 5");
}

TEST_F(Verdict, says_why_a_store_that_keeps_nothing_has_no_recovery) {
  change_ = [](const TrialRequest&, json& raw) -> Status {
    raw["validation"] = {{"unknown", "the store declares that it retains nothing"}};
    raw["recovery_ns"] = json::array();
    return {};
  };
  const json row = run(plan("a_a = false\n"))->verdict["rows"][0];
  EXPECT_EQ(row["recovery_ns"]["unknown"],
            "not opened again: the store declares that it retains nothing");
}

TEST_F(Verdict, is_void_when_the_a_a_interval_is_wider_than_the_effect) {
  const std::map<std::string, std::vector<double>> noisy = {{"alpha", {100, 150, 80, 120}},
                                                            {"alpha-again", {130, 90, 100, 140}}};
  const json verdict = judged("effect_percent = 10\n", noisy);
  EXPECT_EQ(verdict["outcome"], "void");
  EXPECT_EQ(verdict["a_a"]["ok"], false);
  EXPECT_NE(verdict["a_a"]["sentence"].get<std::string>().find("wider than the 10 %"),
            std::string::npos);
  EXPECT_EQ(verdict["comparisons"][0]["verdict"], "void");
  EXPECT_TRUE(verdict["comparisons"][0]["ratio"].is_number());
  EXPECT_TRUE(verdict["comparisons"][0]["sentence"].get<std::string>().starts_with("not judged"));
  const json wide = judged("effect_percent = 500\n", noisy);
  EXPECT_EQ(wide["outcome"], "judged");
  EXPECT_EQ(wide["a_a"]["ok"], true);
  EXPECT_GT(wide["smallest_detectable_ratio"], 1.2);
}

TEST_F(Verdict, is_void_when_the_a_a_interval_lies_outside_the_effect) {
  const json verdict = judged("effect_percent = 10\n", {{"alpha", {100, 101, 100, 101}},
                                                        {"alpha-again", {130, 131, 130, 131}}});
  EXPECT_EQ(verdict["outcome"], "void");
  EXPECT_NE(verdict["a_a"]["sentence"].get<std::string>().find("wholly outside the 10 %"),
            std::string::npos);
}

TEST_F(Verdict, is_sound_when_a_small_a_a_difference_is_significant) {
  const json verdict = judged("effect_percent = 10\n", {{"alpha", {100, 100.1, 100, 100.1}},
                                                        {"alpha-again", {101, 101.1, 101, 101.1}}});
  EXPECT_LT(verdict["a_a"]["p"], 0.05);
  EXPECT_EQ(verdict["a_a"]["ok"], true);
  EXPECT_EQ(verdict["outcome"], "judged");
}

TEST_F(Verdict, adjusts_the_family_by_holm) {
  const std::string three =
      "[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\n[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\n";
  const Plan two = plan(three);
  change_ = nullptr;
  const auto outcome = run(two);
  ASSERT_TRUE(outcome);
  const json& comparisons = outcome->verdict["comparisons"];
  ASSERT_EQ(comparisons.size(), 2U);
  EXPECT_NEAR(comparisons[0]["p_adjusted"].get<double>(), 2 * comparisons[0]["p"].get<double>(),
              1e-15);
}

TEST_F(Verdict, keeps_the_declared_family_when_an_arm_drops_out) {
  Plan three = plan();
  three.arms.insert(three.arms.begin() + 2, three.arms[0]);
  three.arms[2].name = three.arms[2].store = "gamma";
  three.hypotheses = {{"alpha", "beta"}, {"alpha", "gamma"}, {"beta", "gamma"}};
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name != "gamma") return {};
    raw["status"] = "disqualified";
    raw["reason"] = "lost a key";
    return {};
  };
  const auto outcome = run(three);
  ASSERT_TRUE(outcome) << outcome.error().message();
  const json& first = outcome->verdict["comparisons"][0];
  EXPECT_EQ(outcome->verdict["comparisons"][1]["verdict"], "void");
  EXPECT_NEAR(first["p_adjusted"].get<double>(), 3 * first["p"].get<double>(), 1e-15);
}

TEST_F(Verdict, says_what_scatter_its_power_is_taken_from_and_what_it_would_take) {
  const std::map<std::string, std::vector<double>> noisy = {{"alpha", {100, 150, 80, 120}},
                                                            {"alpha-again", {130, 90, 100, 140}}};
  const json verdict = judged("effect_percent = 10\n", noisy);
  const json& power = verdict["power"];
  EXPECT_EQ(power["source"], "the A/A arm");
  EXPECT_EQ(power["smallest_detectable_ratio"], verdict["smallest_detectable_ratio"]);
  EXPECT_GT(power["trials_needed"], 50);
  EXPECT_GT(power["gate_trials_needed"], power["trials_needed"]);
  const std::string sentence = verdict["a_a"]["sentence"];
  EXPECT_NE(sentence.find(fmt::format("takes about {} trials an arm instead of 4",
                                      power["gate_trials_needed"].get<int>())),
            std::string::npos)
      << sentence;
  const json without = judged("a_a = false\n", noisy);
  EXPECT_EQ(without["power"]["source"], "the arms");
  EXPECT_FALSE(without["power"].contains("gate_trials_needed"));
}

TEST_F(Verdict, turns_the_direction_for_a_latency) {
  const json verdict = judged(
      "a_a = false\nmetric = \"latency\"\nlatency_class = \"update\"\nlatency_percentile = "
      "\"p99\"\n",
      {{"alpha", {100, 101, 99, 100}}, {"beta", {200, 201, 199, 200}}});
  EXPECT_EQ(verdict["metric"], "latency p99 of update");
  EXPECT_EQ(verdict["unit"], "ns");
  const json& one = verdict["comparisons"][0];
  EXPECT_NEAR(one["ratio"].get<double>(), 2.0, 0.02);
  EXPECT_EQ(one["verdict"], "inferior");
  const std::string sentence = one["sentence"];
  EXPECT_TRUE(sentence.starts_with("alpha's latency p99 of update is 2.00x beta's")) << sentence;
}

TEST_F(Verdict, finds_arms_equal_within_a_margin) {
  const std::string claim =
      "a_a = false\n[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\nkind = "
      "\"equivalence\"\nmargin_percent = ";
  const std::map<std::string, std::vector<double>> close = {{"alpha", {100, 101, 99, 100}},
                                                            {"beta", {101, 100, 100, 101}}};
  EXPECT_EQ(judged(claim + "5\n", close)["comparisons"][0]["verdict"], "equivalent");
  const json tight = judged(claim + "0.5\n", close)["comparisons"][0];
  EXPECT_EQ(tight["verdict"], "inconclusive");
  EXPECT_TRUE(tight["sentence"].get<std::string>().starts_with(
      "it was not shown that alpha and beta are equal within 0.5 %"))
      << tight["sentence"];
}

TEST_F(Verdict, of_a_registered_claim_that_turned_out_the_other_way_is_rejected) {
  const Plan claim = plan("[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\n");
  RunRequest request;
  request.registered = true;
  const auto outcome = run(claim, request);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, RunEnd::rejected);
  const auto exploring = run(claim);
  ASSERT_TRUE(exploring);
  EXPECT_EQ(exploring->end, RunEnd::judged);
}

TEST_F(Verdict, shows_shares_of_the_references_and_figures_an_operation) {
  const json verdict = judged("", {});
  const json& alpha = row(verdict, "alpha");
  EXPECT_NEAR(alpha["share_of_raw"].get<double>(), 0.25, 0.01);
  EXPECT_NEAR(alpha["null_share"].get<double>(), 0.001, 0.0001);
  EXPECT_EQ(alpha["barriers_per_operation"], 1.0);
  EXPECT_EQ(alpha["device_bytes_per_operation"], 500.0);
  EXPECT_EQ(alpha["write_amplification"], 5.0);
  EXPECT_EQ(alpha["read_amplification"], 2.5);
  EXPECT_EQ(alpha["disk_bytes_per_entry"], 81.92);
  EXPECT_EQ(alpha["cpu_ns_per_operation"], 300.0);
  EXPECT_EQ(alpha["drain_ns"], 7.0);
  EXPECT_TRUE(alpha["recovery_ns"].contains("unknown"));
  EXPECT_EQ(row(verdict, "null")["reference"], true);
  EXPECT_EQ(row(verdict, "alpha-again")["a_a"], true);
}

TEST_F(Verdict, warns_where_the_harness_itself_is_a_large_part_of_an_operation) {
  rate_["alpha"] = 3e5;
  const json verdict = judged("", {});
  EXPECT_NE(warnings(verdict).find("alpha: the harness's own cost is 30 %"), std::string::npos)
      << warnings(verdict);
  EXPECT_EQ(warnings(verdict).find("beta: the harness"), std::string::npos);
}

TEST_F(Verdict, pools_the_latencies_of_all_trials) {
  const json verdict = judged("", {{"alpha", {1e6, 1e6, 1e6, 1e5}}});
  const json& alpha = row(verdict, "alpha");  // 27 x 1 us, 3 x 2 us, 9 x 10 us, 1 x 20 us
  EXPECT_EQ(alpha["p50_ns"], 1000);
  EXPECT_EQ(alpha["p90_ns"], 10000);
  EXPECT_EQ(alpha["p99_ns"], 20000);
  EXPECT_EQ(alpha["max_ns"], 20000.0);
}

TEST_F(Verdict, does_not_judge_an_arm_without_a_figure) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta") raw["phases"][0]["throughput_per_s"] = {{"unknown", "lost"}};
    return {};
  };
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->verdict["comparisons"][0]["verdict"], "void");
  EXPECT_TRUE(row(outcome->verdict, "beta")["geometric_mean"].contains("unknown"));
}

TEST_F(Verdict, counts_a_declared_drain_as_part_of_the_run) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta") raw["phases"][0]["throughput_with_drain_per_s"] = 50.0;
    return {};
  };
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(row(outcome->verdict, "beta")["values"], (json{50.0, 50.0, 50.0, 50.0}));
}

TEST_F(Verdict, is_withheld_when_the_a_a_arm_itself_has_no_figure) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "alpha-again") {
      raw["phases"][0]["throughput_per_s"] = {{"unknown", "lost"}};
    }
    return {};
  };
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::void_experiment);
  EXPECT_EQ(outcome->verdict["comparisons"][0]["verdict"], "void");
  EXPECT_NE(outcome->verdict["void_reasons"].dump().find("A/A gate"), std::string::npos);
}

TEST_F(Verdict, is_readable_by_google_benchmark_tools) {
  const json verdict = judged("", {{"alpha", {1e6, 1e6, 1e6, 1e5}}});
  const json out = google_benchmark_json(verdict, {{"cpu", {{"logical", 2}}}});
  EXPECT_EQ(out["context"]["num_cpus"], 2);
  ASSERT_EQ(out["benchmarks"].size(), 20U);
  const json& first = out["benchmarks"][0];
  EXPECT_EQ(first["name"], "exp/alpha");
  EXPECT_EQ(first["run_type"], "iteration");
  EXPECT_EQ(first["time_unit"], "ns");
  EXPECT_NEAR(first["real_time"].get<double>(), 1000.0, 1e-9);
  EXPECT_NEAR(first["items_per_second"].get<double>(), 1e6, 1e-6);
}

TEST(Sentence, writes_ratios_as_people_do) {
  EXPECT_EQ(ratio_text(1.3234, 1.25, 1.39), "1.32");
  EXPECT_EQ(ratio_text(1.0034, 1.001, 1.006), "1.003");
  EXPECT_EQ(ratio_text(12.34, 11, 13), "12.3");
  EXPECT_EQ(ratio_text(1234.5, 1100, 1300), "1234");
}

}  // namespace
}  // namespace assay
