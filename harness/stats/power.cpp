#include <algorithm>
#include <cmath>

#include "adapters/result.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

double power_of(double effect, double standard_deviation, double n, double alpha,
                bool paired_design) {
  return paired_design ? power_paired(effect, standard_deviation, n, alpha)
                       : power_two_sample(effect, standard_deviation, n, alpha);
}

double power_at(double effect, double standard_error, double degrees_of_freedom, double alpha) {
  ASSAY_CHECK(alpha > 0 && alpha < 1, "alpha lies between 0 and 1");
  ASSAY_CHECK(std::isfinite(effect) && std::isfinite(standard_error) && standard_error >= 0,
              "power needs a finite effect and a standard deviation that is not negative");
  if (standard_error == 0) return effect == 0 ? alpha : 1.0;
  const double critical = student_t_quantile(1 - alpha / 2, degrees_of_freedom);
  return noncentral_t_outside(critical, degrees_of_freedom, std::fabs(effect) / standard_error);
}

/// Width of the confidence interval of a difference at a standard deviation of 1.
double unit_width(std::size_t n, double alpha, bool paired_design) {
  const auto count = static_cast<double>(n);
  const double freedom = paired_design ? count - 1 : 2 * count - 2;
  const double error = paired_design ? std::sqrt(1 / count) : std::sqrt(2 / count);
  return 2 * student_t_quantile(1 - alpha / 2, freedom) * error;
}

/// Smallest n of at least 2 for which `enough` holds; it holds for every larger one too.
template <class Enough>
std::size_t least_n(const Enough& enough) {
  std::size_t high = 2;
  while (high < kMostTrials && !enough(high)) high *= 2;
  std::size_t low = high / 2;  // not enough, or below the smallest possible n
  while (high > 2 && high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return std::min(high, kMostTrials);
}

}  // namespace

double power_two_sample(double effect, double standard_deviation, double n, double alpha) {
  ASSAY_CHECK(n >= 2, "a two-sample test needs two values an arm");
  return power_at(effect, standard_deviation * std::sqrt(2 / n), 2 * n - 2, alpha);
}

double power_paired(double effect, double standard_deviation, double n, double alpha) {
  ASSAY_CHECK(n >= 2, "a paired test needs two pairs");
  return power_at(effect, standard_deviation / std::sqrt(n), n - 1, alpha);
}

std::size_t trials_needed(double effect, double standard_deviation, double alpha, double power,
                          bool paired_design) {
  ASSAY_CHECK(effect != 0 && power > 0 && power < 1, "no number of trials sees an effect of zero");
  return least_n([&](std::size_t n) {
    return power_of(effect, standard_deviation, static_cast<double>(n), alpha, paired_design) >=
           power;
  });
}

std::size_t trials_for_width(double width, double standard_deviation, double alpha,
                             bool paired_design) {
  ASSAY_CHECK(width > 0 && standard_deviation >= 0, "no number of trials gives a width of zero");
  return least_n([&](std::size_t n) {
    return standard_deviation * unit_width(n, alpha, paired_design) <= width;
  });
}

double largest_deviation(double width, std::size_t n, double alpha, bool paired_design) {
  ASSAY_CHECK(width > 0 && n >= 2, "an interval needs two values an arm and a width");
  return width / unit_width(n, alpha, paired_design);
}

double smallest_effect(double standard_deviation, std::size_t n, double alpha, double power,
                       bool paired_design) {
  ASSAY_CHECK(n >= 2 && power > alpha && power < 1, "power lies between alpha and 1");
  if (standard_deviation == 0) return 0.0;
  const auto enough = [&](double effect) {
    return power_of(effect, standard_deviation, static_cast<double>(n), alpha, paired_design) >=
           power;
  };
  double high = standard_deviation;
  while (!enough(high)) high *= 2;
  double low = 0;
  for (int step = 0; step < 60 && high - low > 1e-12 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace assay::stats
