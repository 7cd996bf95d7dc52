#include "harness/report/units.h"

#include <gtest/gtest.h>

#include "harness/stats/p_text.h"

namespace assay::report {
namespace {

TEST(Number, has_three_significant_digits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(1.0 / 3.0), "0.333");
  EXPECT_EQ(format_number(1.2345), "1.23");
  EXPECT_EQ(format_number(12.345), "12.3");
  EXPECT_EQ(format_number(123.45), "123");
  EXPECT_EQ(format_number(9.996), "10.0");
  EXPECT_EQ(format_number(-9.996), "-10.0");
}

TEST(Count, takes_the_next_prefix_when_rounding_reaches_it) {
  EXPECT_EQ(format_count(999.4), "999");
  EXPECT_EQ(format_count(999.7), "1.00 k");
  EXPECT_EQ(format_count(1234), "1.23 k");
  EXPECT_EQ(format_count(22e6), "22.0 M");
}

TEST(Time, chooses_the_unit_that_people_would) {
  EXPECT_EQ(format_time_ns(0), "0 ns");
  EXPECT_EQ(format_time_ns(850), "850 ns");
  EXPECT_EQ(format_time_ns(12'300), "12.3 \u00b5s");
  EXPECT_EQ(format_time_ns(4'560'000), "4.56 ms");
  EXPECT_EQ(format_time_ns(7.89e9), "7.89 s");
  EXPECT_EQ(format_time_ns(600e9), "10.0 min");
}

TEST(Bytes, are_binary) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1000), "1000 B");
  EXPECT_EQ(format_bytes(4096), "4.00 KiB");
  EXPECT_EQ(format_bytes(1.25 * 1024 * 1024 * 1024), "1.25 GiB");
}

TEST(PValue, keeps_its_exponent) {
  EXPECT_EQ(stats::p_text(0.61), "0.61");
  EXPECT_EQ(stats::p_text(0.0312), "0.031");
  EXPECT_EQ(stats::p_text(3.2e-8), "3e-8");
  EXPECT_EQ(stats::p_text(9.7e-8), "1e-7");
  EXPECT_EQ(stats::p_text(0.0), "< 1e-15");
}

TEST(Percent, shows_a_digit_below_ten) {
  EXPECT_EQ(format_percent(0.714), "71 %");
  EXPECT_EQ(format_percent(0.0042), "0.4 %");
}

TEST(Metric, follows_the_unit_of_the_verdict) {
  EXPECT_EQ(format_metric(1234, "operations/s"), "1.23 k/s");
  EXPECT_EQ(format_metric(1500, "ns"), "1.50 \u00b5s");
  EXPECT_EQ(format_metric(2048, "bytes"), "2.00 KiB");
  EXPECT_EQ(format_metric(7, "apples"), "7.00 apples");
}

TEST(Unknown, is_a_question_mark_and_never_a_zero) {
  EXPECT_EQ(shown(Quantity{std::nullopt, "no counter"}, format_count), "?");
  EXPECT_EQ(shown(Quantity{0.0, ""}, format_count), "0");
}

}  // namespace
}  // namespace assay::report
