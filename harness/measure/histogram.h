// Latency histogram in the manner of HdrHistogram: log-linear buckets, 3 significant decimal
// digits, 1 ns to 1 h. Recording is branch-light and allocates nothing. One thread records;
// histograms of several threads are merged afterwards.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace assay {

class Histogram {
 public:
  static constexpr std::uint64_t kHighestNs = 3'600'000'000'000;  ///< larger values are clamped

  Histogram();

  void record(std::uint64_t value_ns) {
    const std::uint64_t value = value_ns < kHighestNs ? value_ns : kHighestNs;
    ++counts_[index_of(value)];
    ++total_;
    sum_ += value;
    // Branches, because they are hardly ever taken: a conditional move would store each time.
    if (value > max_) [[unlikely]]
      max_ = value;
    if (value < min_) [[unlikely]]
      min_ = value;
  }
  void merge(const Histogram& other);
  void reset();

  [[nodiscard]] std::uint64_t count() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] std::uint64_t min() const { return total_ ? min_ : 0; }
  [[nodiscard]] double mean() const;
  /// Smallest recorded value (to 3 digits, highest of its bucket) such that at least `quantile` of
  /// the values are no larger; 0 <= quantile <= 1. Zero when empty.
  [[nodiscard]] std::uint64_t value_at(double quantile) const;
  /// Occupied buckets: highest value of the bucket, count.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets() const;

 private:
  // 2^11 sub-buckets a power of two: 2048 > 2 * 10^3, hence 3 significant digits.
  static constexpr unsigned kSubBits = 11;

  static std::size_t index_of(std::uint64_t value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value | ((1U << kSubBits) - 1)));
    const unsigned shift = width - kSubBits;
    return (static_cast<std::size_t>(shift) << (kSubBits - 1)) +
           static_cast<std::size_t>(value >> shift);
  }
  static std::uint64_t highest_of(std::size_t index);

  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
};

}  // namespace assay
