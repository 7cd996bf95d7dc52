// Distributions against their theory. Every chi-square statistic must stay within five standard
// deviations of its mean (degrees of freedom k: mean k, variance 2k); the seeds are fixed.
#include "workloads/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <xxhash.h>

#include "workloads/codec.h"

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 20'240'229;

void expect_fits(const std::vector<double>& observed, const std::vector<double>& expected) {
  ASSERT_EQ(observed.size(), expected.size());
  double statistic = 0.0;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    ASSERT_GE(expected[i], 5.0) << "cell " << i << " is too small for the test";
    statistic += (observed[i] - expected[i]) * (observed[i] - expected[i]) / expected[i];
  }
  const auto freedom = static_cast<double>(observed.size() - 1);
  EXPECT_LT(std::abs(statistic - freedom), 5.0 * std::sqrt(2.0 * freedom)) << "seed " << kSeed;
}

KeySpec keys_of(std::uint64_t count, bool hashed = true) {
  KeySpec keys;
  keys.count = count;
  keys.hashed = hashed;
  return keys;
}

std::vector<double> draw_counts(IndexSampler& sampler, std::size_t cells, int draws) {
  std::vector<double> counts(cells);
  Random random(kSeed);
  for (int i = 0; i < draws; ++i) {
    const std::uint64_t index = sampler.draw(random);
    EXPECT_LT(index, cells);
    counts[index] += 1.0;
  }
  return counts;
}

TEST(Zipfian, weights_agree_with_the_exact_sum) {
  for (const double theta : {0.01, 0.5, 0.99, 1.0, 1.2, 3.0}) {
    for (const auto& [first, last] : {std::pair<std::uint64_t, std::uint64_t>{1, 1},
                                      {1, 63},
                                      {1, 64},
                                      {1, 20'000},
                                      {50, 70},
                                      {1000, 1062},
                                      {99'999, 99'999}}) {
      long double exact = 0.0;
      for (std::uint64_t k = last; k >= first; --k) {
        exact += std::pow(static_cast<long double>(k), -static_cast<long double>(theta));
      }
      const double sum = zipfian_weight(first, last, theta);
      EXPECT_NEAR(sum / static_cast<double>(exact), 1.0, 1e-12)
          << theta << " " << first << " " << last;
    }
  }
}

TEST(Zipfian, weights_agree_with_the_zeta_of_ycsb) {
  // YCSB, ScrambledZipfianGenerator.java: ZETAN for 10,000,000,000 items and theta 0.99.
  EXPECT_NEAR(zipfian_weight(1, 10'000'000'000, 0.99), 26.46902820178302, 1e-8);
}

TEST(Zipfian, first_ranks_have_the_probabilities_of_gray_and_ycsb) {
  // Their generator gives rank 1 with 1 / zeta(n) and rank 2 with 0.5^theta / zeta(n).
  constexpr std::uint64_t kRanks = 1'000'000;
  constexpr int kDraws = 1'000'000;
  const double zeta = zipfian_weight(1, kRanks, 0.99);
  const ZipfianSampler sampler(kRanks, 0.99);
  Random random(kSeed);
  double first = 0;
  double second = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t rank = sampler.draw(random);
    first += rank == 0;
    second += rank == 1;
  }
  const auto near = [&](double observed, double p) {
    EXPECT_NEAR(observed, kDraws * p, 5.0 * std::sqrt(kDraws * p * (1 - p)));
  };
  near(first, 1.0 / zeta);
  near(second, std::pow(0.5, 0.99) / zeta);
}

class ZipfianFit : public ::testing::TestWithParam<double> {};

TEST_P(ZipfianFit, draws_fit_the_power_law_over_all_ranks) {
  constexpr std::uint64_t kRanks = 20'000;
  constexpr int kDraws = 2'000'000;
  const double theta = GetParam();
  const ZipfianSampler sampler(kRanks, theta);
  // Cells: ranks one by one, then groups of growing size, so that the ranges' edges are crossed.
  std::vector<std::uint64_t> ends;
  for (std::uint64_t end = 1; end < kRanks; end += 1 + end / 9) ends.push_back(end);
  ends.push_back(kRanks);
  std::vector<double> observed(ends.size());
  std::vector<double> expected;
  const double zeta = zipfian_weight(1, kRanks, theta);
  std::uint64_t first = 1;
  for (const std::uint64_t end : ends) {
    expected.push_back(kDraws * zipfian_weight(first, end, theta) / zeta);
    first = end + 1;
  }
  Random random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t rank = sampler.draw(random) + 1;
    ASSERT_LE(rank, kRanks);
    const auto cell = std::lower_bound(ends.begin(), ends.end(), rank) - ends.begin();
    observed[static_cast<std::size_t>(cell)] += 1.0;
  }
  expect_fits(observed, expected);
}

INSTANTIATE_TEST_SUITE_P(skews, ZipfianFit, ::testing::Values(0.2, 0.5, 0.8, 0.99, 1.0, 1.1, 1.3));

TEST(Zipfian, a_range_of_many_ranks_is_not_flat_inside) {
  // Inside one range the two halves differ by the power law; flat acceptance would be seen.
  constexpr int kDraws = 4'000'000;
  const ZipfianSampler sampler(100'000, 1.3);
  const std::uint64_t cuts[] = {2000, 2030, 2060, 2090};
  std::vector<double> observed(3);
  std::vector<double> expected;
  const double zeta = zipfian_weight(1, 100'000, 1.3);
  for (int cell = 0; cell < 3; ++cell) {
    expected.push_back(kDraws * zipfian_weight(cuts[cell], cuts[cell + 1] - 1, 1.3) / zeta);
  }
  Random random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t rank = sampler.draw(random) + 1;
    for (std::size_t cell = 0; cell < 3; ++cell) {
      observed[cell] += rank >= cuts[cell] && rank < cuts[cell + 1];
    }
  }
  for (std::size_t cell = 0; cell < 3; ++cell) {
    EXPECT_NEAR(observed[cell], expected[cell], 5.0 * std::sqrt(expected[cell]));
  }
}

// Digests of what the plain rejection drew, a power for every candidate: the tangent and the chord
// that stand in for most powers, and the alias taken without a branch, must never change a draw.
TEST(Zipfian, bounds_that_save_powers_change_no_draw) {
  for (const auto& [theta, digest] :
       {std::pair{0.2, 0x41eaec11578ff9b4ULL}, std::pair{0.99, 0xd496199670f04f7bULL},
        std::pair{1.3, 0x532a85f7fec4e0e5ULL}}) {
    const ZipfianSampler sampler(1'000'003, theta);
    Random random(42);
    std::vector<std::uint64_t> draws(1'000'000);
    for (std::uint64_t& draw : draws) draw = sampler.draw(random);
    EXPECT_EQ(XXH3_64bits(draws.data(), draws.size() * sizeof draws[0]), digest) << theta;
  }
}

TEST(Zipfian, works_for_a_billion_ranks_and_for_one) {
  const ZipfianSampler many(1'000'000'000, 0.99);
  const ZipfianSampler one(1, 0.99);
  Random random(kSeed);
  bool deep = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t rank = many.draw(random);
    ASSERT_LT(rank, 1'000'000'000U);
    deep = deep || rank > 100'000'000;
    ASSERT_EQ(one.draw(random), 0U);
  }
  EXPECT_TRUE(deep);
}

TEST(Distribution, uniform_is_uniform) {
  IndexSampler sampler({}, keys_of(1000), kSeed, 0, 1);
  expect_fits(draw_counts(sampler, 1000, 200'000), std::vector<double>(1000, 200.0));
}

TEST(Distribution, scrambling_moves_the_popular_items_and_keeps_their_probabilities) {
  Distribution plain{.kind = DistributionKind::zipfian, .scrambled = false};
  Distribution scrambled{.kind = DistributionKind::zipfian, .scrambled = true};
  IndexSampler a(plain, keys_of(1000), kSeed, 0, 1);
  IndexSampler b(scrambled, keys_of(1000), kSeed, 0, 1);
  std::vector<double> in_order = draw_counts(a, 1000, 100'000);
  std::vector<double> spread = draw_counts(b, 1000, 100'000);
  EXPECT_EQ(std::max_element(in_order.begin(), in_order.end()) - in_order.begin(), 0);
  EXPECT_NE(in_order, spread);
  std::sort(in_order.begin(), in_order.end());
  std::sort(spread.begin(), spread.end());
  EXPECT_EQ(in_order, spread) << "the same draws, at other indices: a bijection, no collisions";
}

TEST(Distribution, sequential_visits_every_index_once_and_starts_over) {
  Distribution sequential{.kind = DistributionKind::sequential};
  IndexSampler sampler(sequential, keys_of(10), kSeed, 1, 2);
  Random random(kSeed);
  std::vector<std::uint64_t> seen;
  for (int i = 0; i < 11; ++i) seen.push_back(sampler.draw(random));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5}));
}

TEST(Distribution, hot_set_gets_its_share_of_the_draws) {
  Distribution hot{.kind = DistributionKind::hot_set,
                   .scrambled = false,
                   .hot_fraction = 0.1,
                   .hot_probability = 0.75};
  IndexSampler sampler(hot, keys_of(100), kSeed, 0, 1);
  const auto counts = draw_counts(sampler, 100, 120'000);
  std::vector<double> expected(10, 120'000 * 0.75 / 10);
  expected.resize(100, 120'000 * 0.25 / 90);
  expect_fits(counts, expected);
}

TEST(Distribution, hot_prefix_is_one_64th_of_the_keys_below_one_prefix) {
  for (const bool hashed : {true, false}) {
    const KeySpec keys = keys_of(64'000, hashed);
    Distribution hot{
        .kind = DistributionKind::hot_prefix, .hot_fraction = 1.0 / 64.0, .hot_probability = 1.0};
    IndexSampler sampler(hot, keys, kSeed, 0, 1);
    const KeyCodec codec(keys, kSeed);
    Random random(kSeed);
    std::map<std::uint64_t, double> counts;
    std::set<unsigned> prefixes;
    for (int i = 0; i < 50'000; ++i) {
      const std::uint64_t index = sampler.draw(random);
      ASSERT_LT(index, keys.count);
      counts[index] += 1.0;
      char key[8];
      codec.encode(index, key);
      prefixes.insert(static_cast<unsigned char>(key[0]) >> 2);
    }
    ASSERT_EQ(counts.size(), 1000U);
    if (hashed) {
      EXPECT_EQ(prefixes.size(), 1U) << "all keys begin with the same 6 bits";
    } else {
      EXPECT_EQ(std::prev(counts.end())->first - counts.begin()->first, 999U) << "neighbours";
    }
    std::vector<double> observed;
    for (const auto& count : counts) observed.push_back(count.second);
    expect_fits(observed, std::vector<double>(1000, 50.0));
  }
}

TEST(Random, bounded_draws_have_no_bias_for_a_bound_that_does_not_divide) {
  Random random(kSeed);
  const std::uint64_t bound = (std::uint64_t{3} << 62);  // a quarter of the draws is rejected
  double low = 0;
  for (int i = 0; i < 100'000; ++i) low += random.bounded(bound) < (std::uint64_t{1} << 62);
  EXPECT_NEAR(low, 100'000 / 3.0, 5.0 * std::sqrt(100'000 * 2.0 / 9.0));
}

TEST(Random, range_bijections_are_bijections) {
  for (const std::uint64_t n : {1, 2, 3, 5, 63, 64, 65, 1000, 4096, 4097}) {
    const RangeBijection order(n, kSeed);
    std::set<std::uint64_t> images;
    for (std::uint64_t x = 0; x < n; ++x) {
      const std::uint64_t image = order.forward(x);
      ASSERT_LT(image, n);
      ASSERT_EQ(order.inverse(image), x);
      images.insert(image);
    }
    EXPECT_EQ(images.size(), n);
  }
}

TEST(Random, a_range_bijection_leaves_few_neighbours_together) {
  const RangeBijection order(100'000, kSeed);
  int together = 0;
  for (std::uint64_t x = 0; x + 1 < 100'000; ++x) {
    const auto a = static_cast<std::int64_t>(order.forward(x));
    const auto b = static_cast<std::int64_t>(order.forward(x + 1));
    together += std::abs(a - b) < 100;
  }
  EXPECT_LT(together, 1000) << "a random order has about 200 such pairs";
}

}  // namespace
}  // namespace assay
