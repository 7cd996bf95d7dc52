#include <algorithm>
#include <cmath>
#include <numeric>

#include "adapters/result.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace assay::stats {
namespace {

/// Largest n * m for which the null distribution of U is counted out.
constexpr std::size_t kExactProduct = 400;
/// Largest n for which the null distribution of the signed rank sum is counted out.
constexpr std::size_t kExactPairs = 50;

struct Ranks {
  std::vector<double> of;  ///< mid-ranks, in the order given
  double tie_sum = 0;      ///< sum over groups of ties of t^3 - t
};

Ranks rank(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t x, std::size_t y) { return values[x] < values[y]; });
  Ranks ranks;
  ranks.of.resize(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double middle = (static_cast<double>(first + 1) + static_cast<double>(end)) / 2;
    for (std::size_t i = first; i < end; ++i) ranks.of[order[i]] = middle;
    const auto tied = static_cast<double>(end - first);
    ranks.tie_sum += tied * tied * tied - tied;
    first = end;
  }
  return ranks;
}

/// Two-sided p of `statistic`, whose null distribution over 0 .. counts.size() - 1 is symmetric.
double exact_two_sided(const std::vector<double>& counts, double statistic) {
  const double largest = static_cast<double>(counts.size() - 1);
  const auto tail = static_cast<std::ptrdiff_t>(std::min(statistic, largest - statistic));
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double below = std::accumulate(counts.begin(), counts.begin() + tail + 1, 0.0);
  return std::min(1.0, 2 * below / total);
}

/// Two-sided p of a normal approximation with continuity correction.
double approximate_two_sided(double distance, double variance) {
  if (variance <= 0) return 1.0;  // everything tied: no evidence either way
  return normal_two_sided(std::max(0.0, std::fabs(distance) - 0.5) / std::sqrt(variance));
}

/// Number of arrangements of n and m values that give each U. Adding the values of the second
/// sample one by one: N(u; n, m) = N(u - m; n - 1, m) + N(u; n, m - 1) (Mann and Whitney 1947).
std::vector<double> mann_whitney_counts(std::size_t n, std::size_t m) {
  // rows[i] = distribution for i values of the first sample and j of the second.
  std::vector<std::vector<double>> rows(n + 1, std::vector<double>(n * m + 1, 0.0));
  for (auto& row : rows) row[0] = 1;  // j = 0: only U = 0
  for (std::size_t j = 1; j <= m; ++j) {
    for (std::size_t i = 1; i <= n; ++i) {
      for (std::size_t u = i * j + 1; u-- > j;) rows[i][u] += rows[i - 1][u - j];
    }
  }
  return rows[n];
}

}  // namespace

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  ASSAY_CHECK(!a.empty() && !b.empty(), "the Mann-Whitney test needs a value a sample");
  check_finite(a);
  check_finite(b);
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const Ranks ranks = rank(all);
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double rank_sum = std::accumulate(
      ranks.of.begin(), ranks.of.begin() + static_cast<std::ptrdiff_t>(a.size()), 0.0);
  RankTest test;
  test.u = rank_sum - n * (n + 1) / 2;
  if (ranks.tie_sum == 0 && a.size() * b.size() <= kExactProduct) {
    test.p = exact_two_sided(mann_whitney_counts(a.size(), b.size()), test.u);
    return test;
  }
  const double all_count = n + m;
  const double variance =
      n * m / 12 * (all_count + 1 - ranks.tie_sum / (all_count * (all_count - 1)));
  test.p = approximate_two_sided(test.u - n * m / 2, variance);
  return test;
}

RankTest wilcoxon_signed_rank(std::span<const double> a, std::span<const double> b) {
  ASSAY_CHECK(a.size() == b.size(), "a signed rank test needs complete pairs");
  check_finite(a);
  check_finite(b);
  std::vector<double> sizes;
  std::vector<bool> positive;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = a[i] - b[i];
    if (difference == 0) continue;  // Wilcoxon's own treatment of zeros
    sizes.push_back(std::fabs(difference));
    positive.push_back(difference > 0);
  }
  RankTest test;
  if (sizes.empty()) return test;
  const Ranks ranks = rank(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) test.u += positive[i] ? ranks.of[i] : 0.0;
  const bool zeros = sizes.size() != a.size();
  if (ranks.tie_sum == 0 && !zeros && sizes.size() <= kExactPairs) {
    // Subsets of 1 .. n by their sum.
    std::vector<double> counts(sizes.size() * (sizes.size() + 1) / 2 + 1, 0.0);
    counts[0] = 1;
    for (std::size_t r = 1; r <= sizes.size(); ++r) {
      for (std::size_t sum = counts.size(); sum-- > r;) counts[sum] += counts[sum - r];
    }
    test.p = exact_two_sided(counts, test.u);
    return test;
  }
  const auto n = static_cast<double>(sizes.size());
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - ranks.tie_sum / 48;
  test.p = approximate_two_sided(test.u - n * (n + 1) / 4, variance);
  return test;
}

}  // namespace assay::stats
