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

/// The least p that the rank test of two samples of these sizes can give: that of samples which
/// lie wholly apart. Two a side cannot get below 0.33, three not below 0.1.
[[nodiscard]] double smallest_rank_p(std::size_t a, std::size_t b, bool paired_design);
/// Shift between two samples by Hodges and Lehmann (The Annals of Mathematical Statistics 34
/// (1963), 598-611): the median of all differences, or of all means of two paired differences. p is
/// that of the rank test, the interval holds the shifts that this test does not reject; an end is
/// infinite where no shift is rejected. Neither standard error nor degrees of freedom.
[[nodiscard]] TestResult rank_shift(std::span<const double> a, std::span<const double> b,
                                    double confidence, bool paired_design);
/// One-sided p of H0: shift of a against b <= -margin, by the rank test.
[[nodiscard]] double rank_non_inferiority_p(std::span<const double> a, std::span<const double> b,
                                            double margin, bool paired_design);

/// Holm's step-down adjustment; result in the order given.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

/// Two one-sided tests for |difference| < margin; p is the larger of the two.
[[nodiscard]] double tost_p(const TestResult& test, double margin);
/// One-sided p of H0: difference <= bound; small where it is shown to lie above.
[[nodiscard]] double above_p(const TestResult& test, double bound);
/// One-sided p of H0: difference >= bound.
[[nodiscard]] double below_p(const TestResult& test, double bound);
/// One-sided p of H0: difference <= -margin (non-inferiority of a to b).
[[nodiscard]] double non_inferiority_p(const TestResult& test, double margin);
/// Two-sided interval of the count of successes
/// that `trials` of `probability` give: a count outside of it has a chance of less than
/// 1 - `confidence`.
struct CountInterval {
  std::size_t low = 0;
  std::size_t high = 0;
};
[[nodiscard]] CountInterval binomial_interval(std::size_t trials, double probability,
                                              double confidence);

/// Power of the two-sided two-sample t-test with n values an arm (noncentral t).
[[nodiscard]] double power_two_sample(double effect, double standard_deviation, double n,
                                      double alpha);
/// Power of the two-sided paired t-test; `standard_deviation` is that of the differences.
[[nodiscard]] double power_paired(double effect, double standard_deviation, double n, double alpha);
/// Where the two searches for a number of trials end: nobody runs more. What they return is then no
/// answer but "this many or more".
inline constexpr std::size_t kMostTrials = 100'000'000;
/// Smallest n an arm that reaches `power`; from 2 to kMostTrials.
[[nodiscard]] std::size_t trials_needed(double effect, double standard_deviation, double alpha,
                                        double power, bool paired_design);
/// Smallest effect seen with `power` by n values an arm.
[[nodiscard]] double smallest_effect(double standard_deviation, std::size_t n, double alpha,
                                     double power, bool paired_design);

/// Smallest n an arm for which the confidence interval at 1 - `alpha` of a difference is expected
/// to be no wider than `width`; from 2 to kMostTrials.
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
