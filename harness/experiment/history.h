// One experiment over its results: where each arm's values changed first.
//
// Results in the order of time. An arm's level is the pooled values of its results since its last
// change. A result is a change when its values are shown to lie outside the corridor around that
// level, on either side: the tests of the verdict against the two bounds, the smaller p doubled for
// the two sides, and multiplied by the number of such tests in the whole history (Bonferroni; the
// level depends on earlier decisions, so that no step-down method may be used). The corridor is
// there because sessions differ: without one every drift of the machine would be a change once the
// trials are many. Stateless; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"

namespace assay {

struct HistoryPoint {
  std::string result;
  std::string commit;  ///< of the program that measured; empty = not known
  std::string time;
  std::map<std::string, std::vector<double>> values;  ///< by arm, positive
  std::string record = {};                            ///< hash of the verdict
  bool accepted = false;                              ///< the accepted baseline
};

/// `points` oldest first; `corridor` above 1. Per arm of the newest plan that is no reference, twin
/// or control: {"arm", "store", "points": [{result, record, commit, time, n, value, low, high,
/// ratio, interval, p_adjusted, changed, accepted}], "changes": [sentences]}. `low` and `high` are
/// the interval of `value`; `ratio`, `interval` and `p_adjusted` (null for the first) are of the
/// result against the level before it. `relative_to` not empty: values are shares of that
/// reference's, round by round.
[[nodiscard]] nlohmann::json history_of(const std::vector<HistoryPoint>& points, const Plan& plan,
                                        double corridor, const std::string& relative_to);

}  // namespace assay
