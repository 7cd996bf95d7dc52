#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

using Values = std::vector<double>;

TEST(RankShift, of_pairs_is_that_of_the_depression_scores) {
  // Hollander and Wolfe (1999), examples 3.1 to 3.4 (R's wilcox.test example): y - x has the
  // estimate -0.46 and the 96.1 % interval (-0.786, -0.010), from the critical value 5 at n = 9.
  const Values x = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const Values y = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  const TestResult shift = rank_shift(y, x, 0.95, true);
  EXPECT_NEAR(shift.difference, -0.46, 1e-9);
  EXPECT_NEAR(shift.low, -0.786, 1e-9);
  EXPECT_NEAR(shift.high, -0.010, 1e-9);
}

TEST(RankShift, of_two_samples_lies_between_the_order_statistics_of_the_published_table) {
  // Mann and Whitney's table for 5 and 10 values: U <= 8 is significant at 0.05 (two-sided), so the
  // interval ends at the 9th of the 50 differences from either side.
  const Values term = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Values weeks = {1.15, 0.88, 0.90, 0.74, 1.21};
  Values differences;
  for (const double a : term) {
    for (const double b : weeks) differences.push_back(a - b);
  }
  std::sort(differences.begin(), differences.end());
  const TestResult shift = rank_shift(term, weeks, 0.95, false);
  EXPECT_NEAR(shift.difference, 0.305, 1e-9);  // Hollander and Wolfe (1999), example 4.3
  EXPECT_NEAR(shift.low, differences[8], 1e-9);
  EXPECT_NEAR(shift.high, differences[41], 1e-9);
}

TEST(RankShift, has_no_ends_where_no_p_can_be_small_enough) {
  const TestResult shift = rank_shift(Values{1, 2, 3}, Values{4, 5, 6}, 0.95, false);
  EXPECT_EQ(shift.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(shift.high, std::numeric_limits<double>::infinity());
  EXPECT_NEAR(smallest_rank_p(3, 3, false), 0.1, 1e-9);
  EXPECT_NEAR(smallest_rank_p(4, 4, true), 0.125, 1e-9);
}

TEST(RankNonInferiority, is_half_of_the_two_sided_p_at_the_margin) {
  const Values a = {1.0, 1.1, 1.2, 1.3, 1.4};
  const Values b = {1.45, 1.55, 1.62, 1.71, 1.83};
  // Moved up by 1, every a is above every b: 2 / 252 two-sided.
  EXPECT_NEAR(rank_non_inferiority_p(a, b, 1.0, false), 1.0 / 252.0, 1e-9);
  EXPECT_GT(rank_non_inferiority_p(a, b, 0.1, false), 0.5);
}

TEST(BinomialInterval, holds_the_central_counts) {
  // Tables of the binomial distribution, n = 20, p = 0.5: P(K <= 5) = 0.0207, P(K <= 6) = 0.0577.
  const CountInterval interval = binomial_interval(20, 0.5, 0.95);
  EXPECT_EQ(interval.low, 6U);
  EXPECT_EQ(interval.high, 14U);
}

}  // namespace
}  // namespace assay::stats
