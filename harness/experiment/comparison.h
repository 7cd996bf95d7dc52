// One hypothesis tested, and the A/A gate. Internal to the verdict.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/experiment/arm_figures.h"
#include "harness/experiment/plan.h"
#include "harness/stats/stats.h"

namespace assay {

/// Two samples on the log scale, by the plan's aggregation: t-tests of means, or rank tests with
/// Hodges and Lehmann's shift where the plan takes medians. At least two values each, as many of
/// either when paired.
class LogComparison {
 public:
  LogComparison(const Plan& plan, const std::vector<double>& a, const std::vector<double>& b,
                bool paired);
  [[nodiscard]] const stats::TestResult& test() const { return test_; }
  [[nodiscard]] std::string_view name() const;  ///< "welch", "paired", "mann-whitney", "wilcoxon"
  /// One-sided p of H0: log ratio <= `bound`; small where it is shown to lie above.
  [[nodiscard]] double p_above(double bound) const;
  /// One-sided p of H0: log ratio >= `bound`.
  [[nodiscard]] double p_below(double bound) const;

 private:
  std::vector<double> a_;
  std::vector<double> b_;
  bool paired_;
  bool ranks_;
  stats::TestResult test_;
};

/// The design's test on the values.
[[nodiscard]] stats::TestResult log_test(const Plan& plan, const std::vector<double>& a,
                                         const std::vector<double>& b);

/// What an arm is held against when no other arm is: the values of an accepted result.
struct Baseline {
  std::string result;
  std::string record;                                 ///< hash of the accept record
  std::map<std::string, std::vector<double>> values;  ///< by arm
  /// By arm that works on tables: the digest of its access path, or the checksum that it loaded.
  std::map<std::string, std::string> table_work = {};
};

/// What a row says of its work on tables (Baseline::table_work); empty where it has none.
[[nodiscard]] std::string table_work_of(const nlohmann::json& row);
/// Why values of other table work than the baseline's are not held against them; else empty.
[[nodiscard]] std::string other_table_work(const Baseline& baseline, const std::string& arm,
                                           const std::string& now);

/// A comparison of the verdict before the family is adjusted: no "p_adjusted", "verdict", "claim",
/// "sentence" yet. "p_refuted" is that of the opposite of the claim.
[[nodiscard]] nlohmann::json compare_values(const Plan& plan, const Hypothesis& hypothesis,
                                            const std::vector<double>& a,
                                            const std::vector<double>& b);
/// Adds "p_adjusted", "verdict", "claim" and "sentence".
void judge_comparison(const Plan& plan, double p_adjusted, double p_refuted_adjusted,
                      nlohmann::json& comparison);
/// Turns a judged comparison into one that was measured but may not be judged, with the reason.
void withhold_verdict(nlohmann::json& comparison, const std::string& why);
/// A comparison that cannot be judged, with the reason.
[[nodiscard]] nlohmann::json void_comparison(const Hypothesis& hypothesis, const std::string& why);

/// The delayed arm against its original: "ok" is false where the delay was not seen.
[[nodiscard]] nlohmann::json judge_control(const Plan& plan, const ArmSample& original,
                                           const ArmSample& delayed);

/// The A/A arm against its original: "ok" is false where the experiment is void.
[[nodiscard]] nlohmann::json judge_a_a(const Plan& plan, const ArmSample& original,
                                       const ArmSample& twin);

/// "1.32", "12.3", "0.981": as many digits as the interval's width makes sense of.
[[nodiscard]] std::string ratio_text(double ratio, double low, double high);

}  // namespace assay
