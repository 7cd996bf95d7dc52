#include <vector>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

using Values = std::vector<double>;

TEST(MannWhitney, ranks_the_tortoises_and_hares) {
  // Wikipedia, "Mann-Whitney U test": finishing order T H H H H H T T T T T H, U = 11 for the
  // tortoises and 25 for the hares. Places run upwards here, so the tortoises' U is the 25 pairs
  // in which a tortoise came in behind a hare.
  const Values tortoises = {1, 7, 8, 9, 10, 11};
  const Values hares = {2, 3, 4, 5, 6, 12};
  EXPECT_EQ(mann_whitney(tortoises, hares).u, 25);
  EXPECT_EQ(mann_whitney(hares, tortoises).u, 11);
  // Mann and Whitney (1947), table for n = m = 6: P(U <= 11) = 0.155 (one-sided).
  EXPECT_NEAR(mann_whitney(tortoises, hares).p / 2, 0.155, 0.0005);
}

TEST(MannWhitney, is_exact_on_the_permeability_constants) {
  // Hollander and Wolfe (1973), 69f., the example of R's wilcox.test: W = 35, one-sided
  // p-value = 0.1272.
  const Values term = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Values weeks = {1.15, 0.88, 0.90, 0.74, 1.21};
  const RankTest test = mann_whitney(term, weeks);
  EXPECT_EQ(test.u, 35);
  EXPECT_NEAR(test.p, 2 * 0.1272, 1e-4);
}

TEST(MannWhitney, corrects_for_ties_on_the_ozone_data) {
  // R's wilcox.test example, Ozone of May against August in `airquality` (Chambers et al. 1983):
  // W = 127.5, p-value = 0.0001208.
  const Values may = {41, 36, 12, 18, 28, 23, 19, 8, 7,  16, 11, 14,  18,
                      14, 34, 6,  30, 11, 1,  11, 4, 32, 23, 45, 115, 37};
  const Values august = {39, 9,  16, 78, 35, 66, 122, 89,  110, 44, 28,  65, 22,
                         59, 23, 31, 44, 21, 9,  45,  168, 73,  76, 118, 84, 85};
  const RankTest test = mann_whitney(may, august);
  EXPECT_EQ(test.u, 127.5);
  EXPECT_NEAR(test.p, 0.0001208, 5e-8);
}

TEST(MannWhitney, complete_separation_has_one_arrangement_in_each_tail) {
  // C(10, 5) = 252 arrangements, two of them complete.
  const RankTest test = mann_whitney(Values{1, 2, 3, 4, 5}, Values{6, 7, 8, 9, 10});
  EXPECT_EQ(test.u, 0);
  EXPECT_NEAR(test.p, 2.0 / 252, 1e-15);
}

TEST(MannWhitney, goes_over_to_the_approximation_without_a_jump) {
  // 20 x 20 is counted out, 20 x 21 is approximated; a shift of the same kind must not jump.
  Values a;
  Values b;
  for (int i = 0; i < 20; ++i) {
    a.push_back(i);
    b.push_back(i + 3.5);
  }
  const double exact = mann_whitney(a, b).p;
  b.push_back(13.25);
  EXPECT_NEAR(mann_whitney(a, b).p, exact, 0.02);
}

TEST(MannWhitney, equal_values_only_say_nothing) {
  EXPECT_EQ(mann_whitney(Values{1, 1, 1}, Values{1, 1}).p, 1);
}

TEST(WilcoxonSignedRank, is_exact_on_the_depression_scores) {
  // Hollander and Wolfe (1973), 29f., the example of R's wilcox.test: V = 40, one-sided
  // p-value = 0.01953.
  const Values x = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const Values y = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  const RankTest test = wilcoxon_signed_rank(x, y);
  EXPECT_EQ(test.u, 40);
  EXPECT_NEAR(test.p, 2 * 0.01953, 1e-5);
}

TEST(WilcoxonSignedRank, corrects_for_ties_and_zeros_on_the_sleep_data) {
  // R, wilcox.test on the paired sleep data (Student 1908): V = 0, p-value = 0.009091.
  const Values first = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const Values second = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const RankTest test = wilcoxon_signed_rank(first, second);
  EXPECT_EQ(test.u, 0);
  EXPECT_NEAR(test.p, 0.009091, 5e-7);
}

TEST(WilcoxonSignedRank, pairs_that_never_differ_say_nothing) {
  EXPECT_EQ(wilcoxon_signed_rank(Values{1, 2}, Values{1, 2}).p, 1);
}

}  // namespace
}  // namespace assay::stats
