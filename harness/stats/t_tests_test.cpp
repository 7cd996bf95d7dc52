// Worked examples from outside, each with its source, then the edges and the level of the tests.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

using Values = std::vector<double>;

// Student (1908), "The probable error of a mean", Biometrika 6, table of additional hours of
// sleep; the data set `sleep` of R. R's documentation runs t.test() on it.
const Values kFirstDrug = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const Values kSecondDrug = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(Welch, agrees_with_the_first_example_of_wikipedia) {
  // Wikipedia, "Welch's t-test", example 1: t = -2.46, 25.0 degrees of freedom, p = 0.021.
  // The same data in Rosetta Code, "Welch's t-test": p = 0.021378001462867.
  const Values a = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                    21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
  const Values b = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                    24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4};
  const TestResult result = welch(a, b, 0.95);
  EXPECT_NEAR(result.statistic, -2.46, 0.005);
  EXPECT_NEAR(result.degrees_of_freedom, 25.0, 0.05);
  EXPECT_NEAR(result.p, 0.021378001462867, 1e-12);
}

TEST(Welch, agrees_with_the_second_example_of_wikipedia_of_unequal_sizes) {
  // Wikipedia, example 2: t = -1.57, 9.9 degrees of freedom, p = 0.149; Rosetta Code:
  // p = 0.148841696605327.
  const Values a = {17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8};
  const Values b = {21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8,
                    20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5, 21.5, 21.8};
  const TestResult result = welch(a, b, 0.95);
  EXPECT_NEAR(result.statistic, -1.57, 0.005);
  EXPECT_NEAR(result.degrees_of_freedom, 9.9, 0.05);
  EXPECT_NEAR(result.p, 0.148841696605327, 1e-12);
}

TEST(Welch, agrees_with_the_third_example_of_wikipedia) {
  // Wikipedia, example 3: t = -2.22, 24.5 degrees of freedom, p = 0.036; Rosetta Code:
  // p = 0.0359722710297968.
  const Values a = {19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0};
  const Values b = {28.2, 26.6, 20.1, 23.3, 25.2, 22.1, 17.7, 27.6, 20.6, 13.7,
                    23.2, 17.5, 20.6, 18.0, 23.9, 21.6, 24.3, 20.4, 24.0, 13.2};
  const TestResult result = welch(a, b, 0.95);
  EXPECT_NEAR(result.statistic, -2.22, 0.01);
  EXPECT_NEAR(result.degrees_of_freedom, 24.5, 0.05);
  EXPECT_NEAR(result.p, 0.0359722710297968, 1e-12);
}

TEST(Welch, agrees_with_rosetta_code_on_small_samples) {
  // Rosetta Code, "Welch's t-test": the task's own x and y, and the pair d7, d8.
  EXPECT_NEAR(welch(Values{3.0, 4.0, 1.0, 2.1}, Values{490.2, 340.0, 433.9}, 0.95).p,
              0.0107515611497845, 1e-12);
  EXPECT_NEAR(welch(Values{30.02, 29.99, 30.11, 29.97, 30.01, 29.99},
                    Values{29.89, 29.93, 29.72, 29.98, 30.02, 29.98}, 0.95)
                  .p,
              0.090773324285671, 1e-11);
}

TEST(Welch, agrees_with_r_on_the_sleep_data) {
  // R, t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939, 95 percent
  // confidence interval -3.3654832 to 0.2054832.
  const TestResult result = welch(kFirstDrug, kSecondDrug, 0.95);
  EXPECT_NEAR(result.difference, 0.75 - 2.33, 1e-12);
  EXPECT_NEAR(result.statistic, -1.8608, 5e-5);
  EXPECT_NEAR(result.degrees_of_freedom, 17.776, 5e-4);
  EXPECT_NEAR(result.p, 0.07939, 5e-6);
  EXPECT_NEAR(result.low, -3.3654832, 5e-8);
  EXPECT_NEAR(result.high, 0.2054832, 5e-8);
}

TEST(Paired, agrees_with_r_on_the_sleep_data) {
  // R, paired t-test of the same data: t = -4.0621, df = 9, p-value = 0.002833, 95 percent
  // confidence interval -2.4598858 to -0.7001142. Student (1908) gives the mean difference 1.58.
  const TestResult result = paired(kFirstDrug, kSecondDrug, 0.95);
  EXPECT_NEAR(result.difference, -1.58, 1e-12);
  EXPECT_NEAR(result.statistic, -4.0621, 5e-5);
  EXPECT_EQ(result.degrees_of_freedom, 9);
  EXPECT_NEAR(result.p, 0.002833, 5e-7);
  EXPECT_NEAR(result.low, -2.4598858, 5e-8);
  EXPECT_NEAR(result.high, -0.7001142, 5e-8);
}

TEST(Welch, swapping_the_samples_only_turns_the_sign) {
  const TestResult forward = welch(kFirstDrug, kSecondDrug, 0.9);
  const TestResult backward = welch(kSecondDrug, kFirstDrug, 0.9);
  EXPECT_DOUBLE_EQ(forward.difference, -backward.difference);
  EXPECT_DOUBLE_EQ(forward.p, backward.p);
  EXPECT_DOUBLE_EQ(forward.low, -backward.high);
}

TEST(Welch, interval_excludes_zero_exactly_when_p_is_below_alpha) {
  const double p = welch(kFirstDrug, kSecondDrug, 0.95).p;
  EXPECT_GT(welch(kFirstDrug, kSecondDrug, 1 - p * 0.999).high, 0);
  EXPECT_LT(welch(kFirstDrug, kSecondDrug, 1 - p * 1.001).high, 0);
}

TEST(Welch, two_values_a_sample_are_enough) {
  // By hand: means 2 and 6, standard error sqrt(1 + 1), df = 2, t = -2.828427.
  const TestResult result = welch(Values{1, 3}, Values{5, 7}, 0.95);
  EXPECT_NEAR(result.degrees_of_freedom, 2, 1e-12);
  EXPECT_NEAR(result.statistic, -2 * std::sqrt(2.0), 1e-12);
  // Student's t with 2 degrees of freedom has the closed form p = 1 - |t| / sqrt(t^2 + 2).
  EXPECT_NEAR(result.p, 1 - 2 * std::sqrt(2.0) / std::sqrt(10.0), 1e-12);
}

TEST(Welch, equal_samples_give_p_of_one) {
  const TestResult result = welch(kFirstDrug, kFirstDrug, 0.95);
  EXPECT_EQ(result.difference, 0);
  EXPECT_EQ(result.p, 1);
  EXPECT_LT(result.low, 0);
}

TEST(Welch, samples_without_variance_are_compared_as_constants) {
  const TestResult same = welch(Values{0.1, 0.1, 0.1}, Values{0.1, 0.1}, 0.95);
  EXPECT_EQ(same.p, 1);
  EXPECT_EQ(same.difference, 0);
  const TestResult other = welch(Values{0.1, 0.1, 0.1}, Values{0.3, 0.3}, 0.95);
  EXPECT_EQ(other.p, 0);
  EXPECT_EQ(other.low, other.difference);
  EXPECT_EQ(other.high, other.difference);
  EXPECT_TRUE(std::isinf(other.statistic));
}

TEST(Welch, one_sample_without_variance_leaves_the_other_ones_degrees_of_freedom) {
  EXPECT_NEAR(welch(Values{1, 1, 1, 1}, Values{1, 2, 3}, 0.95).degrees_of_freedom, 2, 1e-12);
}

TEST(WelchDeathTest, refuses_nan_and_single_values) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DEATH((void)welch(Values{1, nan}, Values{1, 2}, 0.95), "NaN");
  EXPECT_DEATH((void)paired(Values{1, nan}, Values{1, 2}, 0.95), "NaN");
  EXPECT_DEATH((void)holm(Values{nan}), "NaN");
  EXPECT_DEATH((void)welch(Values{1}, Values{1, 2}, 0.95), "two values");
  EXPECT_DEATH((void)paired(Values{1, 2, 3}, Values{1, 2}, 0.95), "pairs");
}

TEST(Holm, adjusts_the_published_example) {
  // Wikipedia, "Holm-Bonferroni method", example: p = 0.01, 0.04, 0.03, 0.005 at alpha = 0.05; H1
  // and H4 are rejected, H2 and H3 are not. Adjusted by the formula of the same article.
  const std::vector<double> adjusted = holm(Values{0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(adjusted[0], 0.03, 1e-15);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[3], 0.02, 1e-15);
}

TEST(Holm, is_capped_at_one_and_leaves_a_single_test_alone) {
  EXPECT_EQ(holm(Values{0.6, 0.9}), (Values{1.0, 1.0}));
  EXPECT_EQ(holm(Values{0.04}), Values{0.04});
  EXPECT_TRUE(holm(Values{}).empty());
}

/// A TestResult from published means, deviations and sizes (Welch).
TestResult from_moments(double mean_a, double sd_a, double n_a, double mean_b, double sd_b,
                        double n_b) {
  const double a = sd_a * sd_a / n_a;
  const double b = sd_b * sd_b / n_b;
  TestResult test;
  test.difference = mean_a - mean_b;
  test.standard_error = std::sqrt(a + b);
  test.degrees_of_freedom = (a + b) * (a + b) / (a * a / (n_a - 1) + b * b / (n_b - 1));
  return test;
}

TEST(Tost, agrees_with_the_two_sample_example_of_lakens) {
  // Lakens (2017), "Equivalence tests", Social Psychological and Personality Science 8(4), and the
  // help page of TOSTtwo() in his R package TOSTER: the replication of Moery and Calin-Jageman, 95
  // values of 5.25 (0.95) and 89 of 5.22 (0.83), bounds d = 0.43: t(182) = -2.69, p = 0.004.
  const TestResult test = from_moments(5.25, 0.95, 95, 5.22, 0.83, 89);
  const double margin = 0.43 * std::sqrt((0.95 * 0.95 + 0.83 * 0.83) / 2);
  EXPECT_NEAR(test.degrees_of_freedom, 182, 1);  // 182 is n - 2; Welch gives 181.1
  EXPECT_NEAR((test.difference - margin) / test.standard_error, -2.69, 0.005);
  EXPECT_NEAR(tost_p(test, margin), 0.004, 0.0005);
}

TEST(Tost, is_the_inclusion_of_the_interval_at_twice_alpha) {
  // Schuirmann (1987): equivalence at alpha exactly when the 1 - 2 alpha interval lies within.
  const TestResult test = welch(kFirstDrug, kSecondDrug, 0.90);
  const double reach = std::max(std::fabs(test.low), std::fabs(test.high));
  EXPECT_NEAR(tost_p(test, reach), 0.05, 1e-9);
  EXPECT_LT(tost_p(test, reach * 1.01), 0.05);
  EXPECT_GT(tost_p(test, reach * 0.99), 0.05);
}

TEST(Tost, constants_are_equivalent_only_strictly_within_the_margin) {
  const TestResult test = welch(Values{1, 1}, Values{1.5, 1.5}, 0.95);
  EXPECT_EQ(tost_p(test, 0.6), 0);
  EXPECT_EQ(tost_p(test, 0.5), 1);
  EXPECT_EQ(tost_p(test, 0.4), 1);
}

TEST(NonInferiority, is_half_the_two_sided_p_at_margin_zero) {
  const TestResult test = welch(kSecondDrug, kFirstDrug, 0.95);
  EXPECT_NEAR(non_inferiority_p(test, 0), test.p / 2, 1e-12);
  EXPECT_LT(non_inferiority_p(test, 1), non_inferiority_p(test, 0));
}

TEST(GeometricMean, has_the_interval_of_the_logs) {
  const GeometricMean mean = geometric_mean(Values{1, 4}, 0.95);
  EXPECT_NEAR(mean.value, 2, 1e-12);
  // t(0.975, 1 df) = 12.7062047 (any table); log interval: ln 2 +- t * ln(4)/2.
  EXPECT_NEAR(std::log(mean.high), std::log(2.0) + 12.7062047 * std::log(2.0), 1e-6);
  EXPECT_NEAR(mean.low * mean.high, 4, 1e-9);
}

TEST(Summary, gives_the_median_of_even_and_odd_counts) {
  EXPECT_EQ(summarize(Values{3, 1, 2}).median, 2);
  EXPECT_EQ(summarize(Values{4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(summarize(Values{}).n, 0U);
  EXPECT_EQ(summarize(Values{0.1, 0.1, 0.1}).standard_deviation, 0);
  EXPECT_NEAR(summarize(Values{2, 4, 4, 4, 5, 5, 7, 9}).standard_deviation, std::sqrt(32.0 / 7),
              1e-12);
}

// 2000 comparisons of the same thing with itself: about alpha of them may be significant. The
// bounds hold 99.9 % of a binomial(2000, 0.05): 100 +- 3.29 * sqrt(95).
constexpr int kComparisons = 2000;
constexpr int kFewest = 68;
constexpr int kMost = 132;

TEST(Welch, keeps_its_level_when_there_is_nothing_to_find) {
  const unsigned seed = 20'261'130;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> first(0, 1);
  std::normal_distribution<double> second(0, 3);
  int significant = 0;
  for (int i = 0; i < kComparisons; ++i) {
    Values a(20);
    Values b(10);
    for (double& value : a) value = first(generator);
    for (double& value : b) value = second(generator);
    significant += welch(a, b, 0.95).p < 0.05 ? 1 : 0;
  }
  EXPECT_GE(significant, kFewest);
  EXPECT_LE(significant, kMost);
}

TEST(Paired, keeps_its_level_under_block_correlation_where_welch_does_not) {
  const unsigned seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  int by_paired = 0;
  int by_welch = 0;
  for (int i = 0; i < kComparisons; ++i) {
    Values a(20);
    Values b(20);
    for (std::size_t block = 0; block < a.size(); ++block) {
      const double shared = normal(generator) * std::sqrt(0.8);  // block correlation 0.8
      a[block] = shared + normal(generator) * std::sqrt(0.2);
      b[block] = shared + normal(generator) * std::sqrt(0.2);
    }
    by_paired += paired(a, b, 0.95).p < 0.05 ? 1 : 0;
    by_welch += welch(a, b, 0.95).p < 0.05 ? 1 : 0;
  }
  EXPECT_GE(by_paired, kFewest);
  EXPECT_LE(by_paired, kMost);
  EXPECT_LT(by_welch, 10);  // measurement rules: 0.02 % at block correlation 0.8
}

}  // namespace
}  // namespace assay::stats
