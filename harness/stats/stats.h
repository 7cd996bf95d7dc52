// The statistics of a comparison. One value a process; distribution functions from Boost.Math.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::stats {

struct Summary {
  std::size_t n = 0;
  double mean = 0.0;
  double standard_deviation = 0.0;  ///< n - 1 in the denominator
  double median = 0.0;
};
[[nodiscard]] Summary summarize(std::span<const double> values);
/// Geometric mean with its two-sided confidence interval (t on the logs). All values > 0.
struct GeometricMean {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] GeometricMean geometric_mean(std::span<const double> values, double confidence);

/// A difference of means, its test and its interval. For logs the difference is a log ratio.
struct TestResult {
  double difference = 0.0;  ///< mean(a) - mean(b)
  double statistic = 0.0;
  double degrees_of_freedom = 0.0;
  double p = 1.0;    ///< two-sided
  double low = 0.0;  ///< confidence interval of the difference
  double high = 0.0;
  double standard_error = 0.0;
};
/// Welch's t-test with Welch-Satterthwaite degrees of freedom. Both samples of at least 2.
[[nodiscard]] TestResult welch(std::span<const double> a, std::span<const double> b,
                               double confidence);
/// Paired t-test; equal sizes of at least 2.
[[nodiscard]] TestResult paired(std::span<const double> a, std::span<const double> b,
                                double confidence);

struct RankTest {
  double u = 0.0;  ///< of the first sample
  double p =
      1.0;  ///< two-sided: exact without ties and n*m <= 400, else normal with tie correction
};
[[nodiscard]] RankTest mann_whitney(std::span<const double> a, std::span<const double> b);
/// Wilcoxon's signed rank test, the sensitivity check of paired designs.
[[nodiscard]] RankTest wilcoxon_signed_rank(std::span<const double> a, std::span<const double> b);

/// Holm's step-down adjustment; result in the order given.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

/// Two one-sided tests for |difference| < margin; p is the larger of the two.
[[nodiscard]] double tost_p(const TestResult& test, double margin);
/// One-sided p of H0: difference <= -margin (non-inferiority of a to b).
[[nodiscard]] double non_inferiority_p(const TestResult& test, double margin);

/// Power of the two-sided two-sample t-test with n values an arm (noncentral t).
[[nodiscard]] double power_two_sample(double effect, double standard_deviation, double n,
                                      double alpha);
/// Power of the two-sided paired t-test; `standard_deviation` is that of the differences.
[[nodiscard]] double power_paired(double effect, double standard_deviation, double n, double alpha);
/// Smallest n an arm that reaches `power`; at least 2.
[[nodiscard]] std::size_t trials_needed(double effect, double standard_deviation, double alpha,
                                        double power, bool paired_design);
/// Smallest effect seen with `power` by n values an arm.
[[nodiscard]] double smallest_effect(double standard_deviation, std::size_t n, double alpha,
                                     double power, bool paired_design);

/// Smallest n an arm for which the confidence interval at 1 - `alpha` of a difference is expected
/// to be no wider than `width`; at least 2.
[[nodiscard]] std::size_t trials_for_width(double width, double standard_deviation, double alpha,
                                           bool paired_design);
/// Largest standard deviation for which n values an arm give such an interval.
[[nodiscard]] double largest_deviation(double width, std::size_t n, double alpha,
                                       bool paired_design);

/// Mann-Kendall test for a monotonic trend; two-sided p (normal approximation, tie corrected).
struct Trend {
  double s = 0.0;
  double p = 1.0;
  double slope = 0.0;  ///< Sen's slope, a step
};
[[nodiscard]] Trend mann_kendall(std::span<const double> values);

}  // namespace assay::stats
