// The order in which the arms of an experiment take their turns. A pure function of design,
// number of arms, trials and seed, so that a resumed run goes on with the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/experiment/plan.h"

namespace assay {

/// One trial: arm number `arm` for the `round`-th time. In a design of blocks, `round` is the
/// block; in a design of windows it is the set.
struct Turn {
  std::size_t arm = 0;  ///< of the plan's arms, those of all cells
  std::uint64_t round = 0;
};

/// Every trial of the design in order; arms * trials of them.
/// random: a uniform random permutation of all trials (Fisher-Yates), so that Welch's test holds.
/// blocks: each block holds every arm once, in the order of a row of Williams' square.
/// windows: set by set, the arms of each in random order (the order within is run_window_set's).
[[nodiscard]] std::vector<Turn> order_of_trials(Design design, std::size_t arms,
                                                std::uint64_t trials, std::uint64_t seed);

/// Turns of a whole plan. Without a sweep those of order_of_trials(). Of a sweep they are spread
/// over its cells, so that what drifts falls on none: `random` permutes the trials of all cells
/// together; `blocks` and `windows` go round by round, each with one block (or set) of every cell
/// in random order.
[[nodiscard]] std::vector<Turn> order_of_plan(const Plan& plan);

/// The rows of Williams' design for `arms` treatments: every arm once a row, and over all rows
/// every arm follows every other one equally often (E. J. Williams, Australian Journal of
/// Scientific Research A 2 (1949), 149-168). `arms` rows when even, 2 * `arms` when odd.
[[nodiscard]] std::vector<std::vector<std::size_t>> williams_rows(std::size_t arms);

/// SplitMix64: the generator behind seeds and orders; equal on every machine and library.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// Uniform in [0, bound), without modulo bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

}  // namespace assay
