// How a number of trials that a search found is written. A pure function, callable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "harness/stats/stats.h"

namespace assay::stats {

/// "20"; "more than 100 million" where the search ended (kMostTrials), for that number is no
/// answer.
[[nodiscard]] inline std::string trials_text(std::uint64_t trials) {
  if (trials < kMostTrials) return fmt::format("{}", trials);
  return fmt::format("more than {} million", kMostTrials / 1'000'000);
}

}  // namespace assay::stats
