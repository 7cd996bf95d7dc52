#include "workloads/zipfian.h"

#include <algorithm>
#include <cmath>

#include "adapters/result.h"

namespace assay {
namespace {

constexpr std::uint64_t kSingleRanks = 64;
constexpr std::uint64_t kExactTerms = 64;

/// Integral of x^-theta from a to b, without cancellation near theta = 1.
double integral(double a, double b, double theta) {
  const double exponent = 1.0 - theta;
  const double ratio_log = std::log(b / a);
  if (exponent == 0.0) return ratio_log;
  return std::pow(a, exponent) * std::expm1(exponent * ratio_log) / exponent;
}

double euler_maclaurin(double a, double b, double theta) {
  const auto value = [theta](double x) { return std::pow(x, -theta); };
  const auto first = [theta](double x) { return -theta * std::pow(x, -theta - 1); };
  const auto third = [theta](double x) {
    return -theta * (theta + 1) * (theta + 2) * std::pow(x, -theta - 3);
  };
  const auto fifth = [theta](double x) {
    return -theta * (theta + 1) * (theta + 2) * (theta + 3) * (theta + 4) * std::pow(x, -theta - 5);
  };
  return integral(a, b, theta) + (value(a) + value(b)) / 2 + (first(b) - first(a)) / 12 -
         (third(b) - third(a)) / 720 + (fifth(b) - fifth(a)) / 30240;
}

}  // namespace

double zipfian_weight(std::uint64_t first, std::uint64_t last, double theta) {
  double sum = 0.0;
  std::uint64_t k = first;
  for (; k <= last && k < kExactTerms; ++k) sum += std::pow(static_cast<double>(k), -theta);
  if (k > last) return sum;
  return sum + euler_maclaurin(static_cast<double>(k), static_cast<double>(last), theta);
}

ZipfianSampler::ZipfianSampler(std::uint64_t count, double theta) : theta_(theta) {
  ASSAY_CHECK(count > 0 && theta > 0.0, "a Zipfian distribution needs ranks and a positive skew");
  std::vector<double> weights;
  std::uint64_t rank = 1;
  for (; rank <= std::min(count, kSingleRanks); ++rank) {
    ranges_.push_back({rank, 1, ~std::uint64_t{0}});
    weights.push_back(std::pow(static_cast<double>(rank), -theta));
  }
  while (rank <= count) {
    const std::uint64_t last = std::min(count, rank + rank / 16);
    const double least = std::pow(static_cast<double>(rank) / static_cast<double>(last), theta);
    ranges_.push_back({rank, last - rank + 1, threshold_of(least)});
    weights.push_back(zipfian_weight(rank, last, theta));
    rank = last + 1;
  }
  build_alias(std::move(weights));
}

void ZipfianSampler::build_alias(std::vector<double> weights) {
  double total = 0.0;
  for (std::size_t i = weights.size(); i-- > 0;) total += weights[i];  // small ones first
  const double scale = static_cast<double>(weights.size()) / total;
  std::vector<std::size_t> small;
  std::vector<std::size_t> large;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] *= scale;
    (weights[i] < 1.0 ? small : large).push_back(i);
  }
  slots_.assign(weights.size(), Slot{~std::uint64_t{0}, 0});
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].alias = i;
  while (!small.empty() && !large.empty()) {
    const std::size_t less = small.back();
    const std::size_t more = large.back();
    small.pop_back();
    slots_[less] = {threshold_of(weights[less]), more};
    weights[more] -= 1.0 - weights[less];
    if (weights[more] < 1.0) {
      large.pop_back();
      small.push_back(more);
    }
  }
}

std::uint64_t ZipfianSampler::settle(const Range& range, std::uint64_t rank, std::uint64_t fraction,
                                     Random& random) const {
  constexpr double kRounding = 1e-12;  // what lies so close to a bound is left to the power
  const auto first = static_cast<double>(range.first);
  while (fraction > range.sure) {
    // Accepted with probability (first / rank)^theta: convex in the rank, so it lies above its
    // tangent at `first` and below the chord to the last rank of the range.
    const auto beyond = static_cast<double>(rank - range.first);
    const double drawn = static_cast<double>(fraction) * 0x1p-64;
    if (drawn < 1.0 - theta_ * beyond / first - kRounding) break;
    const double fall = 1.0 - static_cast<double>(range.sure) * 0x1p-64;
    const bool rejected =
        drawn > 1.0 - fall * beyond / static_cast<double>(range.ranks - 1) + kRounding;
    if (!rejected && drawn < std::pow(first / static_cast<double>(rank), theta_)) break;
    const Wide place = static_cast<Wide>(random.next()) * range.ranks;
    rank = range.first + static_cast<std::uint64_t>(place >> 64);
    fraction = static_cast<std::uint64_t>(place);
  }
  return rank - 1;
}

}  // namespace assay
