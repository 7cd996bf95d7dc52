#include <cmath>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

TEST(Power, needs_the_trials_of_cohens_table) {
  // Cohen (1992), "A power primer", table 2, alpha = .05, power .80: 393, 64 and 26 a group for
  // small, medium and large effects; G*Power 3.1 gives 394 for the small one (power at 393 is
  // 0.79993: the table rounds).
  EXPECT_EQ(trials_needed(0.2, 1, 0.05, 0.80, false), 394U);
  EXPECT_NEAR(power_two_sample(0.2, 1, 393, 0.05), 0.80, 0.001);
  EXPECT_EQ(trials_needed(0.5, 1, 0.05, 0.80, false), 64U);
  EXPECT_EQ(trials_needed(0.8, 1, 0.05, 0.80, false), 26U);
}

TEST(Power, needs_the_pairs_of_gpower) {
  // G*Power 3.1, "difference between two dependent means", dz = 0.5, alpha = .05, power .80:
  // total sample size 34, actual power 0.8077775.
  EXPECT_EQ(trials_needed(0.5, 1, 0.05, 0.80, true), 34U);
  EXPECT_NEAR(power_paired(0.5, 1, 34, 0.05), 0.8077775, 1e-6);
}

TEST(Power, agrees_with_r) {
  // R, help page of power.t.test: n = 20, delta = 1, sd = 1 gives power = 0.8689528 (the other tail
  // left out, which is 2e-9 here); power = .90, delta = 1 gives n = 22.02110.
  EXPECT_NEAR(power_two_sample(1, 1, 20, 0.05), 0.8689528, 1e-6);
  EXPECT_NEAR(power_two_sample(1, 1, 22.02110, 0.05), 0.90, 1e-5);
  EXPECT_EQ(trials_needed(1, 1, 0.05, 0.90, false), 23U);
}

TEST(Power, shows_what_a_margin_of_two_percent_costs) {
  // The rules of measuring name 49 trials an arm at a coefficient of variation of 4 % and 776 at
  // 16 %. That is the normal approximation 2 (z(.95) + z(.80))^2 (cv / -ln(0.98))^2 for a one-sided
  // test at 0.05 (non-inferiority) with power 0.80. One-sided at 0.05 is the two-sided test at
  // 0.10; with the t distribution, whose critical value is larger, it takes one trial more.
  const double margin = -std::log(0.98);
  const double z = 1.6448536 + 0.8416212;  // any normal table
  EXPECT_EQ(std::ceil(2 * z * z * std::pow(0.04 / margin, 2)), 49);
  EXPECT_EQ(std::ceil(2 * z * z * std::pow(0.16 / margin, 2)), 776);
  EXPECT_EQ(trials_needed(margin, 0.04, 0.10, 0.80, false), 50U);
  EXPECT_EQ(trials_needed(margin, 0.16, 0.10, 0.80, false), 777U);
}

TEST(Power, of_no_effect_is_alpha) {
  EXPECT_NEAR(power_two_sample(0, 1, 20, 0.05), 0.05, 1e-9);
  EXPECT_NEAR(power_paired(0, 1, 5, 0.01), 0.01, 1e-9);
}

TEST(Power, smallest_effect_is_the_one_that_needs_these_trials) {
  for (const bool paired_design : {false, true}) {
    for (const std::size_t n : {2U, 3U, 20U, 500U}) {
      const double effect = smallest_effect(0.05, n, 0.05, 0.80, paired_design);
      EXPECT_EQ(trials_needed(effect, 0.05, 0.05, 0.80, paired_design), n);
      EXPECT_GT(trials_needed(effect * 0.99, 0.05, 0.05, 0.80, paired_design), n - 1);
    }
  }
}

TEST(Power, without_variance_sees_anything) {
  EXPECT_EQ(trials_needed(0.01, 0, 0.05, 0.80, false), 2U);
  EXPECT_EQ(smallest_effect(0, 20, 0.05, 0.80, false), 0);
}

TEST(Power, grows_with_the_effect_up_to_one) {
  double last = 0;
  for (double effect = 0; effect < 200; effect += 0.5) {
    const double power = power_two_sample(effect, 1, 3, 0.05);
    EXPECT_GE(power, last - 1e-9) << "effect " << effect;
    EXPECT_LE(power, 1);
    last = power;
  }
  EXPECT_NEAR(last, 1, 1e-9);
}

TEST(Power, of_a_hopelessly_small_effect_ends_at_more_trials_than_anybody_runs) {
  EXPECT_EQ(trials_needed(1e-6, 1, 0.05, 0.80, false), kMostTrials);
  // Where there are very many, n is 2 (z(.975) + z(.80))^2 / d^2, the normal limit. Boost's series
  // is good to about 1e-6 of power there, which is some 1e-5 of n.
  EXPECT_NEAR(static_cast<double>(trials_needed(0.001, 1, 0.05, 0.80, false)), 15'697'760, 160);
}

TEST(PowerDeathTest, refuses_an_effect_of_zero) {
  EXPECT_DEATH((void)trials_needed(0, 1, 0.05, 0.80, false), "zero");
}

// t(0.975; 1) = 12.7062, t(0.975; 38) = 2.0244 (tables of Student's t).
TEST(Width, follows_from_the_quantile_of_t) {
  EXPECT_NEAR(largest_deviation(0.1, 2, 0.05, true), 0.1 / (2 * 12.7062 / std::sqrt(2.0)), 1e-6);
  EXPECT_NEAR(largest_deviation(0.1, 20, 0.05, false), 0.1 / (2 * 2.0244 * std::sqrt(0.1)), 1e-5);
}

TEST(Width, needs_the_trials_at_which_it_is_reached_and_no_fewer) {
  for (const bool paired_design : {false, true}) {
    for (const double deviation : {0.001, 0.05, 0.3}) {
      const std::size_t n = trials_for_width(0.1, deviation, 0.05, paired_design);
      EXPECT_GE(largest_deviation(0.1, n, 0.05, paired_design), deviation);
      if (n > 2) {
        EXPECT_LT(largest_deviation(0.1, n - 1, 0.05, paired_design), deviation);
      }
    }
  }
  EXPECT_EQ(trials_for_width(0.1, 0.0, 0.05, true), 2U);
}

}  // namespace
}  // namespace assay::stats
