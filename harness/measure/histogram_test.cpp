#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "harness/measure/histogram.h"

namespace assay {
namespace {

/// The value of which at least `quantile` of `sorted` are no larger.
std::uint64_t exact(const std::vector<std::uint64_t>& sorted, double quantile) {
  const double position = std::ceil(quantile * static_cast<double>(sorted.size()) * (1 - 1e-12));
  const auto rank = static_cast<std::size_t>(std::max(1.0, position));
  return sorted[rank - 1];
}

const double kQuantiles[] = {0,   0.0001, 0.01, 0.1,   0.25,   0.5,     0.75,
                             0.9, 0.95,   0.99, 0.999, 0.9999, 0.99999, 1};

void expect_exact_percentiles(std::vector<std::uint64_t> values) {
  Histogram histogram;
  for (const std::uint64_t value : values) histogram.record(value);
  std::ranges::sort(values);
  for (const double quantile : kQuantiles) {
    const auto want = static_cast<double>(exact(values, quantile));
    const auto got = static_cast<double>(histogram.value_at(quantile));
    EXPECT_GE(got, want) << quantile;  // the highest value of the bucket
    EXPECT_LE(got, want * 1.001) << quantile;
  }
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  EXPECT_EQ(histogram.value_at(1), values.back());
}

TEST(Histogram, has_exact_percentiles_to_three_digits_over_every_decade) {
  const unsigned seed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> exponent(0, std::log(3.6e12));
  std::vector<std::uint64_t> values(200'000);
  for (auto& value : values) value = static_cast<std::uint64_t>(std::exp(exponent(generator)));
  expect_exact_percentiles(values);
}

TEST(Histogram, has_exact_percentiles_of_lognormal_latencies) {
  const unsigned seed = 4;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 generator(seed);
  std::lognormal_distribution<double> latency(std::log(250'000), 1.2);
  std::vector<std::uint64_t> values(100'000);
  for (auto& value : values) value = static_cast<std::uint64_t>(latency(generator));
  expect_exact_percentiles(values);
}

TEST(Histogram, keeps_every_value_below_two_thousand_exactly) {
  for (std::uint64_t value = 0; value < 2048; ++value) {
    Histogram histogram;
    histogram.record(value);
    histogram.record(Histogram::kHighestNs);  // so that the maximum does not hide the bucket
    ASSERT_EQ(histogram.value_at(0.5), value);
  }
}

TEST(Histogram, bucket_edges_are_contiguous_and_narrow_enough) {
  // Around every power of two, where the width of a bucket doubles: the bucket's highest value is
  // never below the value and never more than 0.1 % above it.
  for (unsigned power = 1; power < 42; ++power) {
    for (int offset = -3; offset <= 3; ++offset) {
      const std::uint64_t value = (std::uint64_t{1} << power) + static_cast<std::uint64_t>(offset);
      if (value > Histogram::kHighestNs) continue;
      Histogram histogram;
      histogram.record(value);
      histogram.record(Histogram::kHighestNs);
      const std::uint64_t shown = histogram.value_at(0.5);
      EXPECT_GE(shown, value);
      EXPECT_LE(static_cast<double>(shown - value), static_cast<double>(value) * 0.001);
      histogram.record(shown);  // the edge lies in its own bucket, the next value does not
      EXPECT_EQ(histogram.buckets().front().second, 2U);
      histogram.record(shown + 1);
      EXPECT_EQ(histogram.buckets().front().second, 2U);
    }
  }
}

TEST(Histogram, clamps_what_is_above_an_hour) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  histogram.record(Histogram::kHighestNs + 1);
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.max(), Histogram::kHighestNs);
  EXPECT_EQ(histogram.value_at(0.5), Histogram::kHighestNs);
}

TEST(Histogram, merging_is_recording_into_one) {
  std::mt19937_64 generator(5);
  Histogram first;
  Histogram second;
  Histogram both;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = generator() % 100'000'000;
    (i % 3 == 0 ? first : second).record(value);
    both.record(value);
  }
  first.merge(second);
  EXPECT_EQ(first.buckets(), both.buckets());
  EXPECT_EQ(first.count(), both.count());
  EXPECT_EQ(first.min(), both.min());
  EXPECT_EQ(first.max(), both.max());
  EXPECT_DOUBLE_EQ(first.mean(), both.mean());
}

TEST(Histogram, merging_an_empty_one_changes_nothing) {
  Histogram histogram;
  histogram.record(7);
  histogram.merge(Histogram());
  EXPECT_EQ(histogram.min(), 7U);
  EXPECT_EQ(histogram.max(), 7U);
}

TEST(Histogram, buckets_add_up_to_the_count_in_rising_order) {
  std::mt19937_64 generator(6);
  Histogram histogram;
  for (int i = 0; i < 1'000; ++i) histogram.record(generator() % 5'000'000);
  std::uint64_t sum = 0;
  std::uint64_t last = 0;
  for (const auto& [value, count] : histogram.buckets()) {
    EXPECT_GT(count, 0U);
    EXPECT_TRUE(sum == 0 || value > last);
    last = value;
    sum += count;
  }
  EXPECT_EQ(sum, histogram.count());
}

TEST(Histogram, reset_leaves_an_empty_one) {
  Histogram histogram;
  for (const std::uint64_t value : {0ULL, 5ULL, 123'456ULL, 3'600'000'000'000ULL})
    histogram.record(value);
  histogram.reset();
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.value_at(0.5), 0U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_TRUE(histogram.buckets().empty());
  histogram.record(9);
  EXPECT_EQ(histogram.value_at(1), 9U);
  EXPECT_EQ(histogram.buckets().size(), 1U);
}

TEST(Histogram, a_rank_that_binary_fractions_miss_is_not_rounded_up) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.record(value);
  EXPECT_EQ(histogram.value_at(0.07), 7U);
  EXPECT_EQ(histogram.value_at(0.29), 29U);
  EXPECT_EQ(histogram.value_at(0.071), 8U);
}

}  // namespace
}  // namespace assay
