#include <algorithm>
#include <cmath>
#include <map>

#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

/// Beyond this many values the pairs (n^2 / 2) are taken over evenly spaced means instead.
constexpr std::size_t kMostPoints = 2'000;

std::vector<double> thinned(std::span<const double> values, double& step) {
  const std::size_t width = (values.size() + kMostPoints - 1) / kMostPoints;
  step = static_cast<double>(width);
  std::vector<double> means;
  for (std::size_t first = 0; first + width <= values.size(); first += width) {
    double sum = 0;
    for (const double value : values.subspan(first, width)) sum += value;
    means.push_back(sum / static_cast<double>(width));
  }
  return means;
}

}  // namespace

Trend mann_kendall(std::span<const double> values) {
  check_finite(values);
  Trend trend;
  if (values.size() < 3) return trend;  // two points always have a direction
  double step = 1;
  std::vector<double> kept;
  if (values.size() > kMostPoints) {
    kept = thinned(values, step);
    values = kept;
  }
  const std::size_t n = values.size();
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double rise = values[j] - values[i];
      trend.s += rise > 0 ? 1 : rise < 0 ? -1 : 0;
      slopes.push_back(rise / static_cast<double>(j - i));
    }
  }
  std::map<double, double> groups;
  for (const double value : values) groups[value] += 1;
  const auto count = static_cast<double>(n);
  double variance = count * (count - 1) * (2 * count + 5);
  for (const auto& [value, tied] : groups) variance -= tied * (tied - 1) * (2 * tied + 5);
  variance /= 18;
  if (variance > 0) {
    const double distance = std::max(0.0, std::fabs(trend.s) - 1);  // continuity correction
    trend.p = normal_two_sided(distance / std::sqrt(variance));
  }
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::ranges::nth_element(slopes, middle);
  double median = *middle;
  if (slopes.size() % 2 == 0) {
    const double lower = *std::max_element(slopes.begin(), middle);
    median = lower + (median - lower) / 2;
  }
  trend.slope = median / step;
  return trend;
}

}  // namespace assay::stats
