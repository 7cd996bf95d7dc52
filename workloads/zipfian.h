// Zipfian ranks: rank k (from 1) has a probability proportional to k^-theta, exactly, for any
// theta > 0 and up to 2^48 ranks, without a table of the size of the rank count.
//
// The first ranks are drawn one by one from an alias table (Walker 1974, Vose 1991). The ranks
// behind them lie in ranges whose ends differ by a factor of at most 9/8; the alias table draws a
// range, and rejection from the uniform distribution draws the rank in it: nine of ten candidates
// are accepted without computing a power. Set-up costs some hundred powers whatever the count.
//
// Gray et al. ("Quickly generating billion-record synthetic databases", SIGMOD 1994), which YCSB
// follows, has exact probabilities for the first two ranks only and cannot do theta >= 1.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/random.h"

namespace assay {

/// Sum of k^-theta for k = first .. last (1 <= first <= last), by the Euler-Maclaurin formula
/// beyond k = 64. Relative error below 1e-12.
[[nodiscard]] double zipfian_weight(std::uint64_t first, std::uint64_t last, double theta);

class ZipfianSampler {
 public:
  /// `count` in 1 .. 2^48.
  ZipfianSampler(std::uint64_t count, double theta);

  /// A rank in [0, count); 0 is the most popular one.
  [[nodiscard]] std::uint64_t draw(Random& random) const {
    const Wide product = static_cast<Wide>(random.next()) * slots_.size();
    const Slot& slot = slots_[static_cast<std::size_t>(product >> 64)];
    const bool own = static_cast<std::uint64_t>(product) < slot.threshold;
    const Range& range = ranges_[own ? static_cast<std::size_t>(product >> 64) : slot.alias];
    if (range.ranks == 1) return range.first - 1;
    return draw_in(range, random);
  }

 private:
  struct Slot {
    std::uint64_t threshold;
    std::uint64_t alias;
  };
  struct Range {
    std::uint64_t first;  ///< rank, from 1
    std::uint64_t ranks;
    std::uint64_t sure;  ///< every candidate below this threshold is accepted
  };
  [[nodiscard]] std::uint64_t draw_in(const Range& range, Random& random) const;
  void build_alias(std::vector<double> weights);

  double theta_;
  std::vector<Range> ranges_;
  std::vector<Slot> slots_;
};

}  // namespace assay
