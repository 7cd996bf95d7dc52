#include "harness/experiment/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  const auto end = [&](std::size_t which, double otherwise) {
    const json& bound = comparison["interval"][which];
    return bound.is_number() ? bound.get<double>() : otherwise;
  };
  double ratio = comparison["ratio"].get<double>();
  double low = end(0, 0.0);
  double high = end(1, std::numeric_limits<double>::infinity());
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

/// "p = 0.01, n = 5", with "adjusted" where the family made it larger.
std::string tail_of(const json& comparison, double p, double adjusted) {
  return fmt::format("{}{}, n = {}", p == adjusted ? "" : "adjusted ", stats::p_phrase(adjusted),
                     comparison["n"].get<std::uint64_t>());
}

/// What the claim is about, for "it was not shown that ...": margins and corridors are in it.
std::string claim_text(const Plan& plan, const json& comparison, const Shown& s) {
  const std::string kind = comparison["kind"].get<std::string>();
  const std::string what = plan.metric.latency ? "'s " + plan.metric.name() : "";
  if (kind == "equivalence") {
    return fmt::format("{}{} and {} are equal within {:g} %", s.first, what, s.second,
                       comparison["margin_percent"].get<double>());
  }
  if (kind == "non-inferiority") {
    return fmt::format("{}{} is no worse than {} by more than {:g} %", s.first, what, s.second,
                       comparison["margin_percent"].get<double>());
  }
  return fmt::format("{}{} is within {:g}x of its accepted baseline {}{}", s.first, what,
                     comparison["corridor"].get<double>(),
                     comparison["baseline"]["result"].get<std::string>(),
                     comparison["relative_to"].get<std::string>().empty()
                         ? ""
                         : ", as a share of " + comparison["relative_to"].get<std::string>());
}

/// Claims with a margin: always told from `a`, whose claim it is.
std::string bounded_sentence(const Plan& plan, const json& comparison, double p_refuted) {
  const Shown s = shown(comparison, false);
  const std::string claim = comparison["claim"].get<std::string>();
  const bool shown_true = claim == "shown";
  const double p = comparison[claim == "refuted" ? "p_refuted" : "p"].get<double>();
  const double adjusted = claim == "refuted" ? p_refuted : comparison["p_adjusted"].get<double>();
  const char* before = shown_true           ? ""
                       : claim == "refuted" ? "it is not so that "
                                            : "it was not shown that ";
  return fmt::format("{}{}: {}x ({} to {}), {}", before, claim_text(plan, comparison, s), s.ratio,
                     s.low, s.high, tail_of(comparison, p, adjusted));
}

std::string sentence_of(const Plan& plan, const json& comparison) {
  const Shown s = shown(comparison, true);
  const std::string tail =
      tail_of(comparison, comparison["p"].get<double>(), comparison["p_adjusted"].get<double>());
  if (comparison["verdict"] == "inconclusive") {
    return fmt::format("no difference of {} and {} was shown: {}x ({} to {}), {}", s.first,
                       s.second, s.ratio, s.low, s.high, tail);
  }
  const std::string what = plan.metric.latency ? "'s " + plan.metric.name() : "";
  const std::string possessive = plan.metric.latency ? "'s" : "";
  return fmt::format("{}{} is {}x {}{} ({} to {}), {}", s.first, what, s.ratio, s.second,
                     possessive, s.low, s.high, tail);
}

/// p of the claim and p of its opposite. `sign` is 1 where more is better, else -1.
struct ClaimP {
  double claim = 1.0;
  double refuted = 1.0;
};

ClaimP p_of_claim(const Hypothesis& hypothesis, const LogComparison& values, bool less_is_better) {
  if (hypothesis.kind == HypothesisKind::superiority) {
    return {values.test().p, values.test().p};
  }
  if (hypothesis.kind == HypothesisKind::equivalence) {
    const double margin = log_margin(hypothesis.margin_percent);
    const double apart = std::min(values.p_above(margin), values.p_below(-margin));
    return {std::max(values.p_above(-margin), values.p_below(margin)), std::min(1.0, 2.0 * apart)};
  }
  const double bound = hypothesis.kind == HypothesisKind::regression
                           ? std::log(hypothesis.corridor)
                           : log_margin(hypothesis.margin_percent);
  if (less_is_better) return {values.p_below(bound), values.p_above(bound)};
  return {values.p_above(-bound), values.p_below(-bound)};
}

/// An end of an interval that no value closes is no number of JSON.
json bound_of(double log_bound) {
  return std::isfinite(log_bound) ? json(std::exp(log_bound))
                                  : unknown("so few values give no bound");
}

}  // namespace

std::string ratio_text(double ratio, double low, double high) {
  const double width = high - low;
  if (ratio >= 100.0) return fmt::format("{:.0f}", ratio);
  if (ratio >= 10.0) return fmt::format("{:.1f}", ratio);
  return width < 0.02 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.2f}", ratio);
}

LogComparison::LogComparison(const Plan& plan, const std::vector<double>& a,
                             const std::vector<double>& b, bool paired)
    : a_(logs(a)), b_(logs(b)), paired_(paired), ranks_(plan.aggregation.median_of_trials) {
  const double confidence = 1.0 - plan.alpha;
  if (ranks_) {
    test_ = stats::rank_shift(a_, b_, confidence, paired_);
  } else {
    test_ = paired_ ? stats::paired(a_, b_, confidence) : stats::welch(a_, b_, confidence);
  }
}

std::string_view LogComparison::name() const {
  if (ranks_) return paired_ ? "wilcoxon" : "mann-whitney";
  return paired_ ? "paired" : "welch";
}

double LogComparison::p_above(double bound) const {
  return ranks_ ? stats::rank_non_inferiority_p(a_, b_, -bound, paired_)
                : stats::above_p(test_, bound);
}

double LogComparison::p_below(double bound) const {
  return ranks_ ? stats::rank_non_inferiority_p(b_, a_, bound, paired_)
                : stats::below_p(test_, bound);
}

stats::TestResult log_test(const Plan& plan, const std::vector<double>& a,
                           const std::vector<double>& b) {
  return LogComparison(plan, a, b, is_paired(plan.design)).test();
}

std::string table_work_of(const json& row) {
  for (const char* key : {"access_path_digest", "checksum"}) {
    const auto found = row.find(key);
    if (found != row.end() && found->is_string()) return found->get<std::string>();
  }
  return {};
}

std::string other_table_work(const Baseline& baseline, const std::string& arm,
                             const std::string& now) {
  const auto then = baseline.table_work.find(arm);
  if (then == baseline.table_work.end() || then->second == now) return {};
  return fmt::format("{} did other work than in {}: access path or checksum {:.12} -> {:.12}", arm,
                     baseline.result, then->second, now.empty() ? "(none)" : now);
}

json compare_values(const Plan& plan, const Hypothesis& hypothesis, const std::vector<double>& a,
                    const std::vector<double>& b) {
  const bool regression = hypothesis.kind == HypothesisKind::regression;
  // A baseline is of another time: its rounds have nothing in common with ours.
  const bool paired = is_paired(plan.design) && !regression;
  const LogComparison values(plan, a, b, paired);
  const stats::TestResult& test = values.test();
  const auto log_a = logs(a);
  const auto log_b = logs(b);
  const double rank_p =
      paired ? stats::wilcoxon_signed_rank(log_a, log_b).p : stats::mann_whitney(log_a, log_b).p;
  const double t_p = paired ? stats::paired(log_a, log_b, 1.0 - plan.alpha).p
                            : stats::welch(log_a, log_b, 1.0 - plan.alpha).p;
  // A rank test that cannot get below alpha says nothing against a t-test that does.
  const double smallest = stats::smallest_rank_p(a.size(), b.size(), paired);
  const bool disagree = smallest < plan.alpha && (t_p < plan.alpha) != (rank_p < plan.alpha);
  const ClaimP p = p_of_claim(hypothesis, values, plan.metric.latency);
  json comparison = {
      {"a", hypothesis.a},
      {"b", regression ? "baseline" : hypothesis.b},
      {"kind", to_string(hypothesis.kind)},
      {"declared", hypothesis.declared},
      {"n", a.size()},
      {"ratio", std::exp(test.difference)},
      {"interval", {bound_of(test.low), bound_of(test.high)}},
      {"p", p.claim},
      {"p_refuted", p.refuted},
      {"test", values.name()},
      {"degrees_of_freedom", test.degrees_of_freedom > 0 ? json(test.degrees_of_freedom)
                                                         : unknown("a rank test has none")},
      {"rank_test", paired ? "wilcoxon" : "mann-whitney"},
      {"mann_whitney_p", rank_p},
      {"rank_p_smallest", smallest},
      {"disagreement", disagree}};
  if (hypothesis.margin_percent > 0.0) comparison["margin_percent"] = hypothesis.margin_percent;
  if (regression) {
    comparison["corridor"] = hypothesis.corridor;
    comparison["relative_to"] = hypothesis.relative_to;
  }
  if (paired) comparison["welch_p"] = stats::welch(log_a, log_b, 1.0 - plan.alpha).p;
  if (plan.aggregation.median_of_trials) comparison["t_test_p"] = t_p;
  return comparison;
}

void judge_comparison(const Plan& plan, double p_adjusted, double p_refuted_adjusted,
                      json& comparison) {
  comparison["p_adjusted"] = p_adjusted;
  const bool better = (comparison["ratio"].get<double>() > 1.0) != plan.metric.latency;
  const std::string kind = comparison["kind"].get<std::string>();
  std::string verdict = "inconclusive";
  std::string claim = "open";
  if (kind == "superiority") {
    if (p_adjusted < plan.alpha) {
      verdict = better ? "superior" : "inferior";
      claim = better ? "shown" : "refuted";
    }
  } else if (p_adjusted < plan.alpha) {
    verdict = kind == "equivalence" ? "equivalent" : "non-inferior";
    claim = "shown";
  } else if (p_refuted_adjusted < plan.alpha) {
    verdict = better ? "superior" : "inferior";
    claim = "refuted";
  }
  comparison["verdict"] = verdict;
  comparison["claim"] = claim;
  comparison["sentence"] = kind == "superiority"
                               ? sentence_of(plan, comparison)
                               : bounded_sentence(plan, comparison, p_refuted_adjusted);
}

void withhold_verdict(json& comparison, const std::string& why) {
  const Shown s = shown(comparison, true);
  comparison["verdict"] = "void";
  comparison["claim"] = "open";
  comparison["sentence"] =
      fmt::format("not judged, {}: {} / {} = {} ({} to {}), n = {}", why, s.first, s.second,
                  s.ratio, s.low, s.high, comparison["n"].get<std::uint64_t>());
}

json void_comparison(const Hypothesis& hypothesis, const std::string& why) {
  const std::string b = hypothesis.b.empty() ? "baseline" : hypothesis.b;
  return {{"a", hypothesis.a},
          {"b", b},
          {"kind", to_string(hypothesis.kind)},
          {"declared", hypothesis.declared},
          {"ratio", unknown(why)},
          {"interval", unknown(why)},
          {"p", unknown(why)},
          {"p_adjusted", unknown(why)},
          {"p_refuted", unknown(why)},
          {"verdict", "void"},
          {"claim", "open"},
          {"disagreement", false},
          {"sentence", fmt::format("{} and {} are not compared: {}", hypothesis.a,
                                   hypothesis.b.empty() ? "its baseline" : hypothesis.b, why)}};
}

json judge_control(const Plan& plan, const ArmSample& original, const ArmSample& delayed) {
  const stats::TestResult test = log_test(plan, delayed.values, original.values);
  const bool worse = plan.metric.latency ? test.difference > 0 : test.difference < 0;
  const bool seen = worse && test.p < plan.alpha;
  const double ratio = std::exp(test.difference);
  const double low = std::exp(test.low);
  const double high = std::exp(test.high);
  return {{"a", delayed.arm->name},
          {"b", original.arm->name},
          {"delay_ns", delayed.arm->delay_ns},
          {"ratio", ratio},
          {"interval", {bound_of(test.low), bound_of(test.high)}},
          {"p", test.p},
          {"ok", seen},
          {"sentence",
           fmt::format("the injected delay of {} ns a call was {}: {} is {}x {} ({} to {}), {}",
                       delayed.arm->delay_ns, seen ? "seen" : "NOT seen", delayed.arm->name,
                       ratio_text(ratio, low, high), original.arm->name, ratio_text(low, low, high),
                       ratio_text(high, low, high), stats::p_phrase(test.p))}};
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
  return {{"a", original.arm->name},
          {"b", twin.arm->name},
          {"ratio", ratio},
          {"interval", {bound_of(test.low), bound_of(test.high)}},
          {"p", test.p},
          {"effect_percent", plan.effect_percent},
          {"ok", !too_wide && !outside},
          {"sentence", sentence}};
}

}  // namespace assay
