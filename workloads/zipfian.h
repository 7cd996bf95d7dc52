// Zipfian ranks: rank k (from 1) has a probability proportional to k^-theta, exactly, for any
// theta > 0 and up to 2^48 ranks, without a table of the size of the rank count.
//
// The first ranks are drawn one by one from an alias table (Walker 1974, Vose 1991). The ranks
// behind them lie in ranges whose ends differ by a factor of at most 17/16; the alias table draws a
// range, and rejection from the uniform distribution draws the rank in it: 19 of 20 candidates are
// accepted at once and nearly all others are decided by a tangent below or a chord above the curve,
// so that a power is computed for one draw in some thousands. Set-up costs some hundred powers
// whatever the count.
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
    const Wide slot = static_cast<Wide>(random.next()) * slots_.size();
    const auto at = static_cast<std::size_t>(slot >> 64);
    // The slot's own range or its alias, and single ranks on the same path as the others: branches
    // on either could not be predicted. The empty statement keeps the compiler from making one.
    std::uint64_t own = 0 - std::uint64_t{static_cast<std::uint64_t>(slot) < slots_[at].threshold};
    asm("" : "+r"(own));
    const Range& range = ranges_[(at & own) | (slots_[at].alias & ~own)];
    const Wide place = static_cast<Wide>(random.next()) * range.ranks;
    const std::uint64_t rank = range.first + static_cast<std::uint64_t>(place >> 64);
    if (static_cast<std::uint64_t>(place) <= range.sure) [[likely]]
      return rank - 1;
    return settle(range, rank, static_cast<std::uint64_t>(place), random);
  }

 private:
  struct Slot {
    std::uint64_t threshold;
    std::uint64_t alias;
  };
  struct Range {
    std::uint64_t first;  ///< rank, from 1
    std::uint64_t ranks;
    std::uint64_t sure;  ///< every candidate up to this threshold is accepted
  };
  /// Accepts or rejects a candidate beyond `sure`, and draws on until one is accepted.
  [[nodiscard]] std::uint64_t settle(const Range& range, std::uint64_t rank, std::uint64_t fraction,
                                     Random& random) const;
  void build_alias(std::vector<double> weights);

  double theta_;
  std::vector<Range> ranges_;
  std::vector<Slot> slots_;
};

}  // namespace assay
