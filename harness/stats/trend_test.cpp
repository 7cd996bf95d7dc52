#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

using Values = std::vector<double>;

TEST(MannKendall, agrees_with_an_example_worked_by_hand) {
  // J. Little, College of the Holy Cross, "A Mann-Kendall Example (By Hand)": S = 54 with one pair
  // of equal values, Z = 2.9058, one-sided p about .0018.
  const Values values = {12.9, 14.8, 13.2, 15.7, 13.8, 15.6, 12.9,
                         11.0, 17.3, 15.9, 19.0, 18.3, 20.1, 21.7};
  const Trend trend = mann_kendall(values);
  EXPECT_EQ(trend.s, 54);
  EXPECT_NEAR(trend.p / 2, 0.0018, 0.00005);
  EXPECT_GT(trend.slope, 0);
}

TEST(MannKendall, a_straight_line_has_its_own_slope) {
  Values values;
  for (int i = 0; i < 30; ++i) values.push_back(100 - 0.5 * i);
  const Trend trend = mann_kendall(values);
  EXPECT_EQ(trend.s, -30 * 29 / 2);
  EXPECT_NEAR(trend.slope, -0.5, 1e-12);
  EXPECT_LT(trend.p, 1e-9);
}

TEST(MannKendall, constants_and_two_points_have_no_trend) {
  EXPECT_EQ(mann_kendall(Values(10, 3.0)).p, 1);
  EXPECT_EQ(mann_kendall(Values(10, 3.0)).slope, 0);
  EXPECT_EQ(mann_kendall(Values{1, 2}).p, 1);
}

TEST(MannKendall, keeps_its_level_on_noise) {
  const unsigned seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  int significant = 0;
  for (int i = 0; i < 2000; ++i) {
    Values values(30);
    for (double& value : values) value = normal(generator);
    significant += mann_kendall(values).p < 0.05 ? 1 : 0;
  }
  EXPECT_GE(significant, 68);  // 99.9 % of a binomial(2000, 0.05)
  EXPECT_LE(significant, 132);
}

TEST(MannKendall, thins_a_long_series_and_keeps_the_slope_a_step) {
  Values values;
  for (int i = 0; i < 10'000; ++i) values.push_back(i * 0.25);
  EXPECT_NEAR(mann_kendall(values).slope, 0.25, 1e-9);
}

}  // namespace
}  // namespace assay::stats
