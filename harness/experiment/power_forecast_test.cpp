#include "harness/experiment/power_forecast.h"

#include <cmath>

#include "harness/experiment/fake_trial_test.h"
#include "harness/stats/stats.h"
#include "harness/stats/trials_text.h"

namespace assay {
namespace {

using nlohmann::json;

class Forecast : public FakeRun {
 protected:
  /// What a run tells before its first trial.
  std::string told(const Plan& plan, const RunRequest& more = {}) {
    struct Said : RunObserver {
      void say(const std::string& sentence) override { all += sentence + "\n"; }
      std::string all;
    } said;
    RunRequest request = more;
    request.tree = folder_;
    const auto outcome = run_experiment(plan, request, services(), stop_, said);
    EXPECT_TRUE(outcome) << outcome.error().message();
    if (outcome) ledger_ = outcome->ledger_path;
    return said.all;
  }
  [[nodiscard]] json recorded() const {
    const auto contents = read_ledger(ledger_);
    EXPECT_TRUE(contents);
    json power;
    for (const LedgerRecord& record : contents->records) {
      if (record.kind == "plan") power = record.body["power"];
    }
    return power;
  }
  std::string ledger_;
};

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "was: " << (message)

TEST_F(Forecast, of_a_plan_about_which_nothing_is_known_gives_cases) {
  const std::string told_before = told(plan());
  EXPECT_SAYS(told_before, "the scatter here is not known");
  EXPECT_SAYS(told_before, "at a scatter of 50 %");
  EXPECT_SAYS(told_before, "the A/A gate asks for a scatter of at most");
  EXPECT_EQ(recorded()["cases"].size(), 3U);
}

TEST_F(Forecast, takes_the_cv_that_the_plan_declares_and_says_so) {
  const std::string told_before = told(plan("cv_percent = 4\neffect_percent = 2\n"));
  EXPECT_SAYS(told_before, "(from cv_percent of the plan)");
  // The margin of 2 % at a CV of 4 % takes about n = 2 (z(.975) + z(.8))^2 (.04 / ln 1.02)^2 = 64
  // trials; the t-test one more.
  EXPECT_SAYS(told_before, "at a scatter of 4 % ");
  EXPECT_SAYS(told_before, "for the 2 % of the plan 65 are needed");
  EXPECT_EQ(recorded()["source"], "cv_percent of the plan");
}

TEST_F(Forecast, says_whose_effect_it_tells_of_and_where_the_search_for_trials_ended) {
  Plan tiny = plan("cv_percent = 50\n");
  tiny.effect_percent = 1e-4;
  const std::string sentence = power_sentence(tiny, power_before(tiny, std::nullopt), "asked for");
  EXPECT_SAYS(sentence, "0.0001 % asked for more than 100 million are needed");
  EXPECT_EQ(sentence.find("of the plan more"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("134217728"), std::string::npos) << sentence;
  EXPECT_EQ(stats::trials_text(20), "20");
}

TEST_F(Forecast, writes_a_large_scatter_without_an_exponent) {
  const std::string told_before = told(plan("cv_percent = 150\n"));
  EXPECT_SAYS(told_before, "at a scatter of 150 % ");
}

TEST_F(Forecast, takes_the_scatter_of_the_same_experiment_from_its_ledger) {
  RunRequest registered;
  registered.registered = true;
  EXPECT_SAYS(told(plan("cv_percent = 4\n"), registered), "cv_percent");
  EXPECT_SAYS(told(plan("cv_percent = 4\n"), registered), "(from the A/A arm of result ");
  const json power = recorded();
  EXPECT_GT(power["deviation"], 0.0);
  EXPECT_LT(power["deviation"], 0.01);
}

TEST_F(Forecast, takes_the_scatter_of_an_earlier_exploratory_run) {
  told(plan());
  EXPECT_SAYS(told(plan("seed = 7\n")), "(from the A/A arm of result ");
  fingerprint_ = "another machine";
  EXPECT_SAYS(told(plan("seed = 8\n")), "not known");
}

TEST_F(Forecast, does_not_take_the_scatter_of_another_experiment) {
  told(plan());
  EXPECT_SAYS(told(plan("durability = \"process\"\n")), "not known");
}

TEST_F(Forecast, warns_that_two_sets_will_hardly_pass_the_gate) {
  const std::string text = "name = \"exp\"\nworkload = \"" + folder_ +
                           "/tiny.toml\"\ntrials = 2\ncv_percent = 5\n" +
                           "design = \"windows\"\n[[arms]]\nstore = \"alpha\"\n";
  const auto two = parse_plan(text, "p.toml", stores_.environment());
  ASSERT_TRUE(two) << two.error().message();
  const std::string sentence = power_sentence(*two, power_before(*two, std::nullopt));
  EXPECT_SAYS(sentence, "2 sets see differences");
  EXPECT_SAYS(sentence, "so that it will hardly be passed: that takes about ");
}

TEST_F(Forecast, of_blocks_takes_the_scatter_within_the_block) {
  const Plan blocks = plan("design = \"blocks\"\na_a = false\n");
  const json rows = {{{"arm", "alpha"}, {"values", {100.0, 1000.0, 300.0}}},
                     {{"arm", "beta"}, {"values", {200.0, 2000.0, 600.0}}},
                     {{"arm", "null"}, {"reference", true}, {"values", {1.0, 9.0, 4.0}}}};
  const auto scatter = scatter_of_rows(blocks, rows, 2, "");
  ASSERT_TRUE(scatter);
  EXPECT_NEAR(scatter->deviation, 0.0, 1e-9);
  const Plan random = plan("a_a = false\n");
  EXPECT_GT(scatter_of_rows(random, rows, 2, "")->deviation, 1.0);
  EXPECT_FALSE(scatter_of_rows(random, rows, 4, ""));
}

}  // namespace
}  // namespace assay
