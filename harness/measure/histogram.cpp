#include "harness/measure/histogram.h"

#include <algorithm>
#include <cmath>

#include "adapters/result.h"

namespace assay {

Histogram::Histogram() : counts_(index_of(kHighestNs) + 1) {}

std::uint64_t Histogram::highest_of(std::size_t index) {
  constexpr std::size_t half = std::size_t{1} << (kSubBits - 1);
  if (index < 2 * half) return index;  // the first 2^11 values have a bucket each
  const std::size_t shift = index / half - 1;
  const std::uint64_t sub = index - shift * half;
  return ((sub + 1) << shift) - 1;
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

void Histogram::reset() {
  if (total_ != 0) {
    const auto first = counts_.begin() + static_cast<std::ptrdiff_t>(index_of(min_));
    const auto last = counts_.begin() + static_cast<std::ptrdiff_t>(index_of(max_));
    std::fill(first, last + 1, 0);
  }
  total_ = 0;
  sum_ = 0;
  max_ = 0;
  min_ = ~std::uint64_t{0};
}

double Histogram::mean() const {
  return total_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(total_);
}

std::uint64_t Histogram::value_at(double quantile) const {
  ASSAY_CHECK(quantile >= 0 && quantile <= 1, "a quantile lies between 0 and 1");
  if (total_ == 0) return 0;
  // 0.07 * 100 is 7.000000000000001 in binary: a relative 1e-12 keeps such a product on its rank.
  const double position = quantile * static_cast<double>(total_) * (1 - 1e-12);
  const auto rank =
      std::clamp(static_cast<std::uint64_t>(std::ceil(position)), std::uint64_t{1}, total_);
  std::uint64_t seen = 0;
  for (std::size_t i = index_of(min_); i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(highest_of(i), max_);
  }
  ASSAY_CHECK(false, "the buckets hold fewer values than were counted");
  return max_;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Histogram::buckets() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> occupied;
  if (total_ == 0) return occupied;
  for (std::size_t i = index_of(min_); i <= index_of(max_); ++i) {
    if (counts_[i] != 0) occupied.emplace_back(highest_of(i), counts_[i]);
  }
  return occupied;
}

}  // namespace assay
