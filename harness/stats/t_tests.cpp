#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "adapters/result.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

/// Fills in statistic, p and interval from difference, standard error and degrees of freedom.
void finish(TestResult& result, double confidence) {
  ASSAY_CHECK(confidence > 0 && confidence < 1, "a confidence level lies between 0 and 1");
  if (result.standard_error > 0) {
    result.statistic = result.difference / result.standard_error;
    result.p = student_t_two_sided(result.statistic, result.degrees_of_freedom);
  } else {
    // No variance at all: the figures are constants, and constants differ or they do not.
    result.statistic =
        result.difference == 0
            ? 0.0
            : std::copysign(std::numeric_limits<double>::infinity(), result.difference);
    result.p = result.difference == 0 ? 1.0 : 0.0;
  }
  const double half =
      student_t_quantile(0.5 + confidence / 2, result.degrees_of_freedom) * result.standard_error;
  result.low = result.difference - half;
  result.high = result.difference + half;
}

double variance(const Summary& summary) {
  return summary.standard_deviation * summary.standard_deviation;
}

}  // namespace

Summary summarize(std::span<const double> values) {
  check_finite(values);
  Summary summary;
  summary.n = values.size();
  if (values.empty()) return summary;
  const auto n = static_cast<double>(values.size());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  summary.median = sorted.size() % 2 == 1
                       ? sorted[half]
                       : sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
  if (sorted.front() == sorted.back()) {  // exactly zero variance, whatever the rounding of a sum
    summary.mean = sorted.front();
    return summary;
  }
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.standard_deviation = std::sqrt(squares / (n - 1));
  return summary;
}

GeometricMean geometric_mean(std::span<const double> values, double confidence) {
  ASSAY_CHECK(!values.empty(), "a geometric mean needs a value");
  check_finite(values);
  std::vector<double> logs(values.size());
  std::ranges::transform(values, logs.begin(), [](double value) {
    ASSAY_CHECK(value > 0, "a geometric mean takes positive values only");
    return std::log(value);
  });
  const Summary summary = summarize(logs);
  TestResult interval;
  interval.difference = summary.mean;
  const double value = std::exp(summary.mean);
  if (summary.n < 2) return {value, 0.0, std::numeric_limits<double>::infinity()};
  interval.degrees_of_freedom = static_cast<double>(summary.n - 1);
  interval.standard_error = summary.standard_deviation / std::sqrt(static_cast<double>(summary.n));
  finish(interval, confidence);
  return {value, std::exp(interval.low), std::exp(interval.high)};
}

TestResult welch(std::span<const double> a, std::span<const double> b, double confidence) {
  ASSAY_CHECK(a.size() >= 2 && b.size() >= 2, "Welch's test needs two values a sample");
  const Summary first = summarize(a);
  const Summary second = summarize(b);
  const double first_share = variance(first) / static_cast<double>(first.n);
  const double second_share = variance(second) / static_cast<double>(second.n);
  const double first_df = static_cast<double>(first.n - 1);
  const double second_df = static_cast<double>(second.n - 1);
  TestResult result;
  result.difference = first.mean - second.mean;
  result.standard_error = std::sqrt(first_share + second_share);
  // Welch-Satterthwaite, on shares of the total so that tiny variances do not underflow.
  const double total = first_share + second_share;
  const double fraction = total > 0 ? first_share / total : 0.5;
  result.degrees_of_freedom =
      total > 0 ? 1 / (fraction * fraction / first_df + (1 - fraction) * (1 - fraction) / second_df)
                : first_df + second_df;
  finish(result, confidence);
  return result;
}

TestResult paired(std::span<const double> a, std::span<const double> b, double confidence) {
  ASSAY_CHECK(a.size() == b.size() && a.size() >= 2, "a paired test needs two complete pairs");
  check_finite(a);
  check_finite(b);
  std::vector<double> differences(a.size());
  std::ranges::transform(a, b, differences.begin(), std::minus<>());
  const Summary summary = summarize(differences);
  TestResult result;
  result.difference = summary.mean;
  result.degrees_of_freedom = static_cast<double>(summary.n - 1);
  result.standard_error = summary.standard_deviation / std::sqrt(static_cast<double>(summary.n));
  finish(result, confidence);
  return result;
}

std::vector<double> holm(std::span<const double> p) {
  check_finite(p);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t x, std::size_t y) { return p[x] < p[y]; });
  std::vector<double> adjusted(p.size());
  double running = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double value = p[order[rank]];
    ASSAY_CHECK(value >= 0 && value <= 1, "a p value lies between 0 and 1");
    running = std::max(running, value * static_cast<double>(order.size() - rank));
    adjusted[order[rank]] = std::min(1.0, running);
  }
  return adjusted;
}

double above_p(const TestResult& test, double bound) {
  const double above = test.difference - bound;
  if (test.standard_error <= 0) return above > 0 ? 0.0 : 1.0;
  return student_t_upper(above / test.standard_error, test.degrees_of_freedom);
}

double below_p(const TestResult& test, double bound) {
  TestResult mirrored = test;
  mirrored.difference = -test.difference;
  return above_p(mirrored, -bound);
}

double non_inferiority_p(const TestResult& test, double margin) {
  ASSAY_CHECK(margin >= 0, "a margin is not negative");
  return above_p(test, -margin);
}

double tost_p(const TestResult& test, double margin) {
  ASSAY_CHECK(margin >= 0, "a margin is not negative");
  return std::max(above_p(test, -margin), below_p(test, margin));
}

}  // namespace assay::stats
