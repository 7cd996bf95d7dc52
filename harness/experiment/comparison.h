// One hypothesis tested, and the A/A gate. Internal to the verdict.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/experiment/arm_figures.h"
#include "harness/experiment/plan.h"
#include "harness/stats/stats.h"

namespace assay {

/// The design's test on the log values; samples of at least two, equal in size when paired.
[[nodiscard]] stats::TestResult log_test(const Plan& plan, const std::vector<double>& a,
                                         const std::vector<double>& b);

/// A comparison of the verdict before the family is adjusted: no "p_adjusted", "verdict",
/// "sentence" yet.
[[nodiscard]] nlohmann::json compare_arms(const Plan& plan, const Hypothesis& hypothesis,
                                          const ArmSample& a, const ArmSample& b);
/// Adds "p_adjusted", "verdict" and "sentence".
void judge_comparison(const Plan& plan, double p_adjusted, nlohmann::json& comparison);
/// Turns a judged comparison into one that was measured but may not be judged: the A/A gate failed.
void withhold_verdict(nlohmann::json& comparison);
/// A comparison that cannot be judged, with the reason.
[[nodiscard]] nlohmann::json void_comparison(const Hypothesis& hypothesis, const std::string& why);

/// The A/A arm against its original: "ok" is false where the experiment is void.
[[nodiscard]] nlohmann::json judge_a_a(const Plan& plan, const ArmSample& original,
                                       const ArmSample& twin);

/// "1.32", "12.3", "0.981": as many digits as the interval's width makes sense of.
[[nodiscard]] std::string ratio_text(double ratio, double low, double high);

}  // namespace assay
