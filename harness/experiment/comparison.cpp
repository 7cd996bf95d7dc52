#include "harness/experiment/comparison.h"

#include <cmath>

#include <fmt/format.h>

#include "harness/stats/p_text.h"

namespace assay {
namespace {

using nlohmann::json;

std::vector<double> logs(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) result.push_back(std::log(value));
  return result;
}

double log_margin(double percent) {
  return std::log1p(percent / 100.0);
}

/// "1.32x lmdb (1.25 to 1.39)": turned round where that makes the ratio larger than 1.
struct Shown {
  std::string first;
  std::string second;
  std::string ratio;
  std::string low;
  std::string high;
};

Shown shown(const json& comparison, bool turn) {
  double ratio = comparison["ratio"].get<double>();
  double low = comparison["interval"][0].get<double>();
  double high = comparison["interval"][1].get<double>();
  std::string first = comparison["a"].get<std::string>();
  std::string second = comparison["b"].get<std::string>();
  if (turn && ratio < 1.0) {
    ratio = 1.0 / ratio;
    const double new_low = 1.0 / high;
    high = 1.0 / low;
    low = new_low;
    std::swap(first, second);
  }
  return {std::move(first), std::move(second), ratio_text(ratio, low, high),
          ratio_text(low, low, high), ratio_text(high, low, high)};
}

/// The least p that the rank test can give for samples of this size: those of two that lie wholly
/// apart. Two a side cannot get below 0.33, three not below 0.1, however far apart they are.
double smallest_rank_p(const Plan& plan, std::size_t size_a, std::size_t size_b) {
  std::vector<double> low;
  std::vector<double> high;
  for (std::size_t i = 0; i < size_a; ++i) low.push_back(static_cast<double>(i));
  // Squares keep all paired differences distinct.
  for (std::size_t i = 0; i < size_b; ++i) {
    high.push_back(static_cast<double>(size_a + 1 + i) * static_cast<double>(size_a + 1 + i));
  }
  return is_paired(plan.design) ? stats::wilcoxon_signed_rank(low, high).p
                                : stats::mann_whitney(low, high).p;
}

/// Trials at which the interval of this A/A arm is expected to be as narrow as the effect.
std::size_t trials_for_gate(const Plan& plan, const stats::TestResult& test) {
  const double error_of_one =
      std::sqrt(static_cast<double>(plan.trials) / (is_paired(plan.design) ? 1 : 2));
  return stats::trials_for_width(log_margin(plan.effect_percent),
                                 test.standard_error * error_of_one, plan.alpha,
                                 is_paired(plan.design));
}

/// The effect that an A/A interval of this width would pass, unless it is beyond all reason.
std::string wider_effect(double log_width) {
  const double percent = std::ceil(std::expm1(log_width) * 100.0);
  return percent > 1000.0 ? std::string() : fmt::format(", or effect_percent = {:.0f}", percent);
}

std::string sentence_of(const Plan& plan, const json& comparison) {
  const std::string verdict = comparison["verdict"].get<std::string>();
  const double adjusted = comparison["p_adjusted"].get<double>();
  const bool same = comparison["p"].get<double>() == adjusted;  // a family of one, or its largest
  const std::string tail =
      fmt::format("{}{}, n = {}", same ? "" : "adjusted ", stats::p_phrase(adjusted),
                  comparison["n"].get<std::uint64_t>());
  const std::string what = plan.metric.latency ? "'s " + plan.metric.name() : "";
  const std::string possessive = plan.metric.latency ? "'s" : "";
  const Shown s = shown(comparison, true);
  if (verdict == "equivalent") {
    return fmt::format("{} and {} are equal within {:g} %: {}x ({} to {}), {}", s.first, s.second,
                       comparison["margin_percent"].get<double>(), s.ratio, s.low, s.high, tail);
  }
  if (verdict == "inconclusive") {
    return fmt::format("no {} of {} and {} was shown: {}x ({} to {}), {}",
                       comparison["kind"] == "equivalence" ? "equality" : "difference", s.first,
                       s.second, s.ratio, s.low, s.high, tail);
  }
  return fmt::format("{}{} is {}x {}{} ({} to {}), {}", s.first, what, s.ratio, s.second,
                     possessive, s.low, s.high, tail);
}

}  // namespace

std::string ratio_text(double ratio, double low, double high) {
  const double width = high - low;
  if (ratio >= 100.0) return fmt::format("{:.0f}", ratio);
  if (ratio >= 10.0) return fmt::format("{:.1f}", ratio);
  return width < 0.02 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.2f}", ratio);
}

stats::TestResult log_test(const Plan& plan, const std::vector<double>& a,
                           const std::vector<double>& b) {
  const double confidence = 1.0 - plan.alpha;
  return is_paired(plan.design) ? stats::paired(logs(a), logs(b), confidence)
                                : stats::welch(logs(a), logs(b), confidence);
}

json compare_arms(const Plan& plan, const Hypothesis& hypothesis, const ArmSample& a,
                  const ArmSample& b) {
  const stats::TestResult test = log_test(plan, a.values, b.values);
  const auto log_a = logs(a.values);
  const auto log_b = logs(b.values);
  const double rank_p = is_paired(plan.design) ? stats::wilcoxon_signed_rank(log_a, log_b).p
                                               : stats::mann_whitney(log_a, log_b).p;
  // A rank test that cannot get below alpha says nothing against a t-test that does.
  const double smallest = smallest_rank_p(plan, a.values.size(), b.values.size());
  const bool disagree = smallest < plan.alpha && (test.p < plan.alpha) != (rank_p < plan.alpha);
  const bool equivalence = hypothesis.kind == HypothesisKind::equivalence;
  json comparison = {
      {"a", hypothesis.a},
      {"b", hypothesis.b},
      {"kind", to_string(hypothesis.kind)},
      {"declared", hypothesis.declared},
      {"n", a.values.size()},
      {"ratio", std::exp(test.difference)},
      {"interval", {std::exp(test.low), std::exp(test.high)}},
      {"p", equivalence ? stats::tost_p(test, log_margin(hypothesis.margin_percent)) : test.p},
      {"test", is_paired(plan.design) ? "paired" : "welch"},
      {"degrees_of_freedom", test.degrees_of_freedom},
      {"rank_test", is_paired(plan.design) ? "wilcoxon" : "mann-whitney"},
      {"mann_whitney_p", rank_p},
      {"rank_p_smallest", smallest},
      {"disagreement", disagree}};
  if (equivalence) comparison["margin_percent"] = hypothesis.margin_percent;
  if (is_paired(plan.design)) {
    comparison["welch_p"] = stats::welch(log_a, log_b, 1.0 - plan.alpha).p;
  }
  return comparison;
}

void judge_comparison(const Plan& plan, double p_adjusted, json& comparison) {
  comparison["p_adjusted"] = p_adjusted;
  const bool more = comparison["ratio"].get<double>() > 1.0;
  std::string verdict = "inconclusive";
  if (p_adjusted < plan.alpha) {
    if (comparison["kind"] == "equivalence") {
      verdict = "equivalent";
    } else {
      verdict = more != plan.metric.latency ? "superior" : "inferior";
    }
  }
  comparison["verdict"] = verdict;
  comparison["sentence"] = sentence_of(plan, comparison);
}

void withhold_verdict(json& comparison) {
  const Shown s = shown(comparison, true);
  comparison["verdict"] = "void";
  comparison["sentence"] =
      fmt::format("not judged, the A/A gate was not passed: {} / {} = {} ({} to {}), n = {}",
                  s.first, s.second, s.ratio, s.low, s.high, comparison["n"].get<std::uint64_t>());
}

json void_comparison(const Hypothesis& hypothesis, const std::string& why) {
  return {
      {"a", hypothesis.a},
      {"b", hypothesis.b},
      {"kind", to_string(hypothesis.kind)},
      {"declared", hypothesis.declared},
      {"ratio", unknown(why)},
      {"interval", unknown(why)},
      {"p", unknown(why)},
      {"p_adjusted", unknown(why)},
      {"verdict", "void"},
      {"disagreement", false},
      {"sentence", fmt::format("{} and {} are not compared: {}", hypothesis.a, hypothesis.b, why)}};
}

json judge_a_a(const Plan& plan, const ArmSample& original, const ArmSample& twin) {
  const stats::TestResult test = log_test(plan, original.values, twin.values);
  const double effect = log_margin(plan.effect_percent);
  const bool too_wide = test.high - test.low > effect;
  const bool outside = test.low > effect || test.high < -effect;
  const double ratio = std::exp(test.difference);
  const double low = std::exp(test.low);
  const double high = std::exp(test.high);
  std::string sentence =
      fmt::format("the same arm twice: {} is {}x {} ({} to {}), {}", original.arm->name,
                  ratio_text(ratio, low, high), twin.arm->name, ratio_text(low, low, high),
                  ratio_text(high, low, high), stats::p_phrase(test.p));
  if (outside) {
    sentence += fmt::format(
        "; wholly outside the {:g} % that the plan wants to see: something favours one "
        "of two equal arms here",
        plan.effect_percent);
  } else if (too_wide) {
    sentence += fmt::format(
        "; wider than the {:g} % that the plan wants to see: at this scatter that takes about {} "
        "{} instead of {}{}",
        plan.effect_percent, trials_for_gate(plan, test), unit_of_trials(plan.design), plan.trials,
        wider_effect(test.high - test.low));
  }
  return {
      {"a", original.arm->name},     {"b", twin.arm->name}, {"ratio", ratio},
      {"interval", {low, high}},     {"p", test.p},         {"effect_percent", plan.effect_percent},
      {"ok", !too_wide && !outside}, {"sentence", sentence}};
}

}  // namespace assay
