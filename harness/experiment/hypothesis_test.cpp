// Every kind of claim and every way to aggregate, from the plan's file to the verdict.
#include <cmath>

#include <fmt/format.h>

#include "harness/experiment/comparison.h"
#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/order.h"
#include "harness/experiment/verdict.h"

namespace assay {
namespace {

using nlohmann::json;

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "was: " << (message)

class Hypotheses : public FakeRun {
 protected:
  [[nodiscard]] std::string refusal(const std::string& more) const {
    const auto parsed = parse_plan(plan_text(more), "p.toml", stores_.environment());
    return parsed ? "accepted" : parsed.error().message();
  }
  json verdict_of(const std::string& more) {
    started_.clear();
    const auto outcome = run(plan(more), [] {
      RunRequest request;
      request.registered = true;
      request.fresh = true;
      return request;
    }());
    EXPECT_TRUE(outcome) << outcome.error().message();
    end_ = outcome ? outcome->end : RunEnd::void_experiment;
    std::filesystem::remove_all(folder_ + "/ledgers");
    std::filesystem::remove_all(folder_ + "/results");
    return outcome ? outcome->verdict : json();
  }
  static std::string claim(const std::string& kind, const std::string& more) {
    return "a_a = false\n[[hypotheses]]\na = \"alpha\"\nb = \"beta\"\nkind = \"" + kind + "\"\n" +
           more;
  }
  RunEnd end_ = RunEnd::judged;
};

TEST_F(Hypotheses, non_inferiority_holds_within_the_margin_and_is_refuted_beyond_it) {
  rate_["alpha"] = 1000.0;
  rate_["beta"] = 1020.0;
  json one = verdict_of(claim("non-inferiority", "margin_percent = 5\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "non-inferior");
  EXPECT_EQ(one["claim"], "shown");
  EXPECT_TRUE(one["sentence"].get<std::string>().starts_with(
      "alpha is no worse than beta by more than 5 %: 0.9"))
      << one["sentence"];
  EXPECT_EQ(end_, RunEnd::judged);

  rate_["beta"] = 1200.0;
  one = verdict_of(claim("non-inferiority", "margin_percent = 5\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_EQ(one["claim"], "refuted");
  EXPECT_TRUE(one["sentence"].get<std::string>().starts_with("it is not so that alpha is no worse"))
      << one["sentence"];
  EXPECT_EQ(end_, RunEnd::rejected);

  rate_["beta"] = 1050.0;  // at the margin nothing can be told
  one = verdict_of(claim("non-inferiority", "margin_percent = 5\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "inconclusive");
  EXPECT_EQ(one["claim"], "open");
  EXPECT_EQ(end_, RunEnd::judged);
}

TEST_F(Hypotheses, of_a_latency_count_less_as_better) {
  rate_["alpha"] = 1000.0;  // the latency is the reciprocal
  rate_["beta"] = 1200.0;
  const std::string latency = "metric = \"latency\"\nlatency_class = \"update\"\n";
  const json one =
      verdict_of(latency + claim("non-inferiority", "margin_percent = 5\n"))["comparisons"][0];
  EXPECT_GT(one["ratio"].get<double>(), 1.1);
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_EQ(one["claim"], "refuted");
}

TEST_F(Hypotheses, equivalence_is_rejected_when_the_difference_is_shown_to_exceed_the_margin) {
  rate_["alpha"] = rate_["beta"] = 1000.0;
  json one = verdict_of(claim("equivalence", "margin_percent = 3\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "equivalent");
  EXPECT_EQ(one["claim"], "shown");
  rate_["beta"] = 1100.0;
  one = verdict_of(claim("equivalence", "margin_percent = 3\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_EQ(one["claim"], "refuted");
  EXPECT_EQ(end_, RunEnd::rejected);
  rate_["beta"] = 900.0;
  one = verdict_of(claim("equivalence", "margin_percent = 3\n"))["comparisons"][0];
  EXPECT_EQ(one["verdict"], "superior");
  EXPECT_EQ(one["claim"], "refuted");
}

TEST_F(Hypotheses, that_make_no_sense_are_refused_in_place) {
  EXPECT_SAYS(refusal(claim("non-inferiority", "")), "margin_percent");
  EXPECT_SAYS(refusal(claim("superiority", "corridor = 1.2\n")), "needs kind = \"regression\"");
  EXPECT_SAYS(refusal(claim("regression", "corridor = 1.2\n")), "leave 'b' out");
  EXPECT_SAYS(refusal("[[hypotheses]]\na = \"alpha\"\nkind = \"regression\"\ncorridor = 1.2\n"
                      "relative_to = \"beta\"\n"),
              "is no reference row");
  EXPECT_SAYS(refusal(claim("superority", "")), "superiority");
}

TEST_F(Hypotheses, positive_control_that_is_seen_passes_and_one_that_is_not_makes_void) {
  const std::string control = "a_a = false\n[positive_control]\ndelay_ns = 100_000\n";
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.delay_ns == 0) return {};
    EXPECT_EQ(trial.arm.name, "alpha-delayed");
    EXPECT_EQ(trial.arm.delay_ns, 100'000U);
    raw = fake_raw(900.0 + static_cast<double>(trial.seed % 3), trial.arm.store);
    return {};
  };
  json verdict = verdict_of(control);
  EXPECT_EQ(verdict["outcome"], "judged");
  EXPECT_EQ(verdict["positive_control"]["ok"], true);
  EXPECT_SAYS(verdict["positive_control"]["sentence"].get<std::string>(), "was seen");
  ASSERT_EQ(verdict["comparisons"].size(), 1U);  // the delayed arm is part of no hypothesis

  change_ = nullptr;  // the delay has no effect: what else would be missed?
  verdict = verdict_of(control);
  EXPECT_EQ(verdict["outcome"], "void");
  EXPECT_EQ(end_, RunEnd::void_experiment);
  EXPECT_EQ(verdict["positive_control"]["ok"], false);
  EXPECT_SAYS(verdict["void_reasons"][0].get<std::string>(), "positive control:");
  EXPECT_SAYS(verdict["comparisons"][0]["sentence"].get<std::string>(),
              "not judged, the positive control was not seen");
}

TEST_F(Hypotheses, warm_up_trials_are_run_and_recorded_and_never_counted) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.seed == 1) raw = fake_raw(1.0, trial.arm.store);  // far off, in the first trial
    return {};
  };
  const json verdict = verdict_of("a_a = false\n[aggregation]\nwarm_up_trials = 1\n");
  EXPECT_EQ(started_.size(), 4U * 5U);
  EXPECT_EQ(verdict["n"], 4);
  for (const json& row : verdict["rows"]) {
    EXPECT_EQ(row["n"], 4);
    EXPECT_GT(row["geometric_mean"].get<double>(), 900.0);
  }
  EXPECT_EQ(verdict["aggregation"]["warm_up_trials"], 1);
}

TEST_F(Hypotheses, medians_are_compared_by_ranks) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    // One wild value an arm: it ruins means, not medians.
    const double base = trial.arm.store == "alpha" ? 100.0 : 110.0;
    const double value = trial.seed == 3 ? base * 50.0 : base + static_cast<double>(trial.seed);
    raw = fake_raw(value, trial.arm.store);
    return {};
  };
  const std::string more = "a_a = false\n";
  const std::string median = "[aggregation]\nof_trials = \"median\"\n";
  const auto text = [&](const std::string& aggregation) {
    std::string whole = plan_text(more + aggregation);
    whole.replace(whole.find("trials = 4"), 10, "trials = 9");
    return whole;
  };
  const auto judged = [&](const std::string& aggregation) {
    const auto parsed = parse_plan(text(aggregation), folder_ + "/p.toml", stores_.environment());
    EXPECT_TRUE(parsed) << parsed.error().message();
    return run(*parsed)->verdict;
  };
  const json by_mean = judged("");
  EXPECT_EQ(by_mean["comparisons"][0]["verdict"], "inconclusive");
  const json by_median = judged(median);
  const json& one = by_median["comparisons"][0];
  EXPECT_EQ(one["test"], "mann-whitney");
  EXPECT_EQ(one["verdict"], "inferior");
  EXPECT_NEAR(one["ratio"].get<double>(), 105.0 / 115.0, 0.01);
  EXPECT_LT(one["interval"][1].get<double>(), 1.0);
  EXPECT_EQ(by_median["rows"][0]["value"], by_median["rows"][0]["median"]);
  EXPECT_NEAR(by_median["rows"][0]["value"].get<double>(), 106.0, 1e-9);
  EXPECT_SAYS(refusal(more + "alpha = 0.01\n" + median), "takes at least 5 trials an arm");
}

TEST_F(Hypotheses, median_of_windows_makes_a_median_of_medians) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    raw = fake_raw(100.0 + static_cast<double>(trial.seed), trial.arm.store);
    raw["phases"][0]["windows"] = {1.0, 100.0 + static_cast<double>(trial.seed), 1e6};
    return {};
  };
  const json verdict = verdict_of(
      "design = \"windows\"\na_a = false\n[aggregation]\n"
      "of_process = \"median-of-windows\"\n");
  EXPECT_EQ(verdict["rows"][0]["values"], json({101.0, 102.0, 103.0, 104.0}));
  EXPECT_SAYS(refusal("[aggregation]\nof_process = \"median-of-windows\"\n"),
              "needs design = \"windows\"");
}

TEST_F(Hypotheses, restart_hot_runs_give_the_median_without_the_first) {
  std::string workload(kFakeWorkload);
  for (const char* name : {"hot-1", "hot-2", "hot-3", "hot-4"}) {
    workload += fmt::format(
        "[[phases]]\nkind = \"restart\"\nname = \"restart-{0}\"\n[[phases]]\nkind = \"run\"\n"
        "name = \"{0}\"\ncache = \"warm\"\noperations = 10\n[[phases.roles]]\nname = \"writer\"\n"
        "mix = {{ update = 1 }}\n",
        name);
  }
  write(folder_ + "/tiny.toml", workload);
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    raw = fake_raw(7.0, trial.arm.store);
    const double rates[] = {1.0, 300.0, 100.0, 200.0};
    for (int i = 0; i < 4; ++i) {
      json phase = fake_raw(rates[i], trial.arm.store)["phases"][0];
      phase["name"] = fmt::format("hot-{}", i + 1);
      raw["phases"].push_back(phase);
    }
    return {};
  };
  const json verdict =
      verdict_of("a_a = false\n[aggregation]\nof_process = \"restart-hot\"\nwarm_up_runs = 1\n");
  EXPECT_EQ(verdict["rows"][0]["values"], json({200.0, 200.0, 200.0, 200.0}));
  EXPECT_EQ(verdict["aggregation"]["phases"], json({"hot-1", "hot-2", "hot-3", "hot-4"}));
  write(folder_ + "/tiny.toml", std::string(kFakeWorkload));
  EXPECT_SAYS(refusal("[aggregation]\nof_process = \"restart-hot\"\n"),
              "has 0 timed run phases right after a restart");
}

}  // namespace
}  // namespace assay
