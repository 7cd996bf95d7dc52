// Estimate, interval and margin test that belong to the rank tests.
#include <algorithm>
#include <cmath>
#include <limits>

#include "adapters/result.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

RankTest rank_test(std::span<const double> a, std::span<const double> b, bool paired_design) {
  return paired_design ? wilcoxon_signed_rank(a, b) : mann_whitney(a, b);
}

RankTest shifted_test(std::span<const double> a, std::span<const double> b, double shift,
                      bool paired_design) {
  std::vector<double> moved(a.begin(), a.end());
  for (double& value : moved) value -= shift;
  return rank_test(moved, b, paired_design);
}

/// Every shift at which the rank test's statistic changes, ascending.
std::vector<double> steps_of(std::span<const double> a, std::span<const double> b,
                             bool paired_design) {
  std::vector<double> steps;
  if (!paired_design) {
    for (const double x : a) {
      for (const double y : b) steps.push_back(x - y);
    }
  } else {
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = i; j < a.size(); ++j) {
        steps.push_back((a[i] - b[i] + a[j] - b[j]) / 2);
      }
    }
  }
  std::ranges::sort(steps);
  return steps;
}

/// The statistic of a rank test is symmetric about this value when nothing differs.
double middle_of(std::size_t a, std::size_t b, bool paired_design) {
  const auto n = static_cast<double>(a);
  return paired_design ? n * (n + 1) / 4 : n * static_cast<double>(b) / 2;
}

}  // namespace

double smallest_rank_p(std::size_t a, std::size_t b, bool paired_design) {
  std::vector<double> low;
  std::vector<double> high;
  for (std::size_t i = 0; i < a; ++i) low.push_back(static_cast<double>(i));
  // Squares keep all paired differences distinct.
  for (std::size_t i = 0; i < b; ++i) {
    high.push_back(static_cast<double>(a + 1 + i) * static_cast<double>(a + 1 + i));
  }
  return rank_test(low, high, paired_design).p;
}

TestResult rank_shift(std::span<const double> a, std::span<const double> b, double confidence,
                      bool paired_design) {
  ASSAY_CHECK(!a.empty() && !b.empty(), "a shift needs a value a sample");
  const std::vector<double> steps = steps_of(a, b, paired_design);
  const RankTest test = rank_test(a, b, paired_design);
  TestResult result;
  result.difference = summarize(steps).median;
  result.statistic = test.u;
  result.p = test.p;
  const double alpha = 1 - confidence;
  // Between two steps p is constant; it rises towards the middle and falls behind it.
  const auto rejected = [&](std::size_t gap) {
    const double shift = steps[gap - 1] + (steps[gap] - steps[gap - 1]) / 2;
    return shifted_test(a, b, shift, paired_design).p <= alpha;
  };
  const double beyond = std::max(1.0, std::fabs(steps.front()) + std::fabs(steps.back()));
  const bool open = shifted_test(a, b, steps.front() - beyond, paired_design).p > alpha;
  if (open) {
    result.low = -std::numeric_limits<double>::infinity();
    result.high = std::numeric_limits<double>::infinity();
    return result;
  }
  // The ends lie between the outermost gap and the middle one.
  std::size_t outer = 0;
  std::size_t inner = std::max<std::size_t>(1, steps.size() / 2);
  while (inner - outer > 1) {
    const std::size_t gap = outer + (inner - outer) / 2;
    (rejected(gap) ? outer : inner) = gap;
  }
  result.low = steps[inner - 1];
  inner = std::min(steps.size() - 1, steps.size() / 2);
  outer = steps.size();
  while (outer - inner > 1) {
    const std::size_t gap = inner + (outer - inner) / 2;
    (rejected(gap) ? outer : inner) = gap;
  }
  result.high = steps[inner];
  return result;
}

double rank_non_inferiority_p(std::span<const double> a, std::span<const double> b, double margin,
                              bool paired_design) {
  const RankTest test = shifted_test(a, b, -margin, paired_design);
  const bool above = test.u > middle_of(a.size(), b.size(), paired_design);
  return above ? test.p / 2 : 1 - test.p / 2;
}

CountInterval binomial_interval(std::size_t trials, double probability, double confidence) {
  const double tail = (1 - confidence) / 2;
  return {binomial_quantile(trials, probability, tail),
          binomial_quantile(trials, probability, 1 - tail)};
}

}  // namespace assay::stats
