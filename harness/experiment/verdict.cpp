#include "harness/experiment/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/experiment/arm_figures.h"
#include "harness/experiment/comparison.h"
#include "harness/experiment/power_forecast.h"
#include "harness/stats/stats.h"

namespace assay {
namespace {

using nlohmann::json;
using Samples = std::map<std::string, ArmSample>;

/// Own cost of the harness above this share of an operation deserves a warning.
constexpr double kNullShareMax = 0.10;

Result<ArmSample> sample_of(const VerdictInput& input, const Arm& arm) {
  ArmSample sample;
  sample.arm = &arm;
  for (std::uint64_t round = 0; round < input.plan.trials; ++round) {
    const TrialEntry* trial = input.state.counted(arm.name, round);
    if (trial == nullptr) continue;
    auto raw = input.load_raw(*trial);
    if (!raw) return fail(raw.error());
    const auto value = metric_of(input.plan, *raw);
    if (value && *value > 0.0) {
      sample.values.push_back(*value);
    } else {
      sample.missing.push_back(fmt::format("trial {} of {} has no figure for {}", trial->index,
                                           arm.name, input.plan.metric.name()));
    }
    if (const auto rate = throughput_of(input.plan, *raw); rate && *rate > 0.0) {
      sample.throughputs.push_back(*rate);
    }
    add_record(input.plan, std::move(*raw), sample);
  }
  return sample;
}

std::optional<double> mean_throughput(const ArmSample& sample) {
  if (sample.throughputs.empty()) return std::nullopt;
  double sum = 0.0;
  for (const double value : sample.throughputs) sum += std::log(value);
  return std::exp(sum / static_cast<double>(sample.throughputs.size()));
}

/// Share of a reference's throughput; unknown where one of the two is missing.
json share_of(const Samples& samples, const std::string& reference, const ArmSample& sample) {
  const auto found = samples.find(reference);
  if (found == samples.end() || !found->second.arm->reference) {
    return unknown(fmt::format("{} was not run", reference));
  }
  const auto whole = mean_throughput(found->second);
  const auto part = mean_throughput(sample);
  if (!whole || !part) return unknown("no throughput was recorded");
  return *part / *whole;
}

/// Store time of an operation beyond a reference's: what is the store's own, the harness's share of
/// the latency taken off.
json store_ns_above(const Samples& samples, const std::string& reference, const ArmSample& sample) {
  const auto found = samples.find(reference);
  if (found == samples.end() || !found->second.arm->reference) {
    return unknown(fmt::format("{} was not run", reference));
  }
  const auto own = store_ns_per_operation(sample);
  const auto base = store_ns_per_operation(found->second);
  if (!own || !base) return unknown("no store time was recorded");
  return *own - *base;
}

json make_rows(const VerdictInput& input, const Samples& samples) {
  json rows = json::array();
  for (const Arm& arm : input.plan.arms) {
    const ArmSample& sample = samples.at(arm.name);
    json row = row_of(input.plan, sample);
    row["void"] = input.state.void_count(arm.name);
    const auto wrong = input.state.disqualified().find(arm.name);
    row["disqualified"] = wrong != input.state.disqualified().end();
    row["reason"] = wrong != input.state.disqualified().end() ? wrong->second : "";
    row["share_of_raw"] = share_of(samples, "raw-file", sample);
    row["null_share"] = share_of(samples, "null", sample);
    row["store_ns_above_null"] = store_ns_above(samples, "null", sample);
    rows.push_back(std::move(row));
  }
  return rows;
}

void warn_about_null(const json& rows, std::vector<std::string>& warnings) {
  for (const json& row : rows) {
    if (row["reference"] == true || !row["null_share"].is_number()) continue;
    const double share = row["null_share"].get<double>();
    if (share <= kNullShareMax) continue;
    warnings.push_back(fmt::format(
        "{}: the harness's own cost is {:.0f} % of an operation; ratios are understated "
        "(store_ns_above_null leaves it out; timed_batch = \"auto\" takes the clock out of "
        "latencies)",
        row["arm"].get<std::string>(), share * 100.0));
  }
}

/// Means of batches say nothing about the slowest operation.
void note_batches(const json& rows, std::vector<std::string>& warnings) {
  for (const json& row : rows) {
    const json& operations = row["operations_per_sample"];
    if (!operations.is_number() || operations.get<double>() <= 1.0) continue;
    warnings.push_back(
        fmt::format("latencies are means of batches of {} operations (timed_batch): their "
                    "percentiles and maxima are of batches, not of single operations",
                    operations.get<std::uint64_t>()));
    return;
  }
}

/// Arms that could not be held to one budget may differ in what the page cache gave them.
void warn_about_memory(const Samples& samples, std::vector<std::string>& warnings) {
  for (const auto& [arm, sample] : samples) {
    for (const json& raw : sample.raws) {
      const json memory = raw.value("memory", json::object());
      const json why = memory.value("unknown", json());
      if (!why.is_string()) continue;
      warnings.push_back(fmt::format("the page cache was not part of the memory budget ({})",
                                     why.get<std::string>()));
      return;
    }
  }
}

std::string why_not(const VerdictInput& input, const Samples& samples, const std::string& arm) {
  const auto wrong = input.state.disqualified().find(arm);
  if (wrong != input.state.disqualified().end()) {
    return fmt::format("{} is disqualified ({})", arm, wrong->second);
  }
  const ArmSample& sample = samples.at(arm);
  if (!sample.missing.empty()) return sample.missing.front();
  return "";
}

/// The gate's line of the verdict; null when the plan has no A/A arm.
json a_a_of(const VerdictInput& input, const Samples& samples, bool judged) {
  const Plan& plan = input.plan;
  if (plan.a_a.empty()) return nullptr;
  std::string why = judged ? "" : "the experiment is void";
  for (const std::string& arm : {plan.a_a, plan.a_a_twin}) {
    if (why.empty()) why = why_not(input, samples, arm);
  }
  if (why.empty()) return judge_a_a(plan, samples.at(plan.a_a), samples.at(plan.a_a_twin));
  return {{"a", plan.a_a},
          {"b", plan.a_a_twin},
          {"ratio", unknown(why)},
          {"interval", unknown(why)},
          {"p", unknown(why)},
          {"ok", false},
          {"sentence", "the same arm twice cannot be compared: " + why}};
}

/// `gate_passed` false: ratios are given, but nothing is judged from them.
json make_comparisons(const VerdictInput& input, const Samples& samples,
                      const std::string& void_reason, bool gate_passed) {
  json comparisons = json::array();
  // The family is the declared one, whatever became of its arms: a comparison that cannot be made
  // counts with p = 1, else a drop-out would make every other claim easier.
  std::vector<double> p;
  std::vector<bool> judged;
  for (const Hypothesis& hypothesis : input.plan.hypotheses) {
    std::string why = void_reason;
    if (why.empty()) why = why_not(input, samples, hypothesis.a);
    if (why.empty()) why = why_not(input, samples, hypothesis.b);
    judged.push_back(why.empty());
    if (!why.empty()) {
      comparisons.push_back(void_comparison(hypothesis, why));
      p.push_back(1.0);
      continue;
    }
    comparisons.push_back(
        compare_arms(input.plan, hypothesis, samples.at(hypothesis.a), samples.at(hypothesis.b)));
    p.push_back(comparisons.back()["p"].get<double>());
  }
  const std::vector<double> adjusted = stats::holm(p);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (!judged[i]) continue;
    judge_comparison(input.plan, adjusted[i], comparisons[i]);
    if (!gate_passed) withhold_verdict(comparisons[i]);
  }
  return comparisons;
}

std::string outcome_of(const VerdictInput& input, const json& comparisons, bool is_void) {
  if (!input.state.disqualified().empty()) return "disqualified";
  if (is_void) return "void";
  const bool refuted = std::any_of(comparisons.begin(), comparisons.end(), [](const json& one) {
    return one["declared"] == true && one["verdict"] == "inferior";
  });
  return refuted && input.status == "registered" ? "rejected" : "judged";
}

std::vector<std::string> collect_warnings(const VerdictInput& input, const Samples& samples,
                                          const json& rows, const json& comparisons) {
  std::vector<std::string> warnings = input.warnings;
  warnings.insert(warnings.end(), input.plan.notes.begin(), input.plan.notes.end());
  warn_about_null(rows, warnings);
  note_batches(rows, warnings);
  warn_about_memory(samples, warnings);
  for (const Arm& arm : input.plan.arms) {
    for (std::string& one : arm_warnings(input.plan, samples.at(arm.name))) {
      warnings.push_back(std::move(one));
    }
  }
  for (const json& one : comparisons) {
    if (one["disagreement"] != true) continue;
    warnings.push_back(fmt::format("{} and {}: the t-test and the rank test disagree",
                                   one["a"].get<std::string>(), one["b"].get<std::string>()));
  }
  return warnings;
}

}  // namespace

Result<json> make_verdict(const VerdictInput& input) {
  const Plan& plan = input.plan;
  Samples samples;
  for (const Arm& arm : plan.arms) {
    auto sample = sample_of(input, arm);
    if (!sample) return fail(sample.error());
    samples.emplace(arm.name, std::move(*sample));
  }
  std::vector<std::string> void_reasons = input.void_reasons;
  const json a_a = a_a_of(input, samples, void_reasons.empty());
  const std::string void_reason = void_reasons.empty() ? "" : void_reasons.front();
  // A twin without a value shows nothing: a gate that was asked for and cannot be looked at is
  // shut.
  const bool gate_passed = a_a.is_null() || a_a["ok"] == true;
  if (!gate_passed && void_reasons.empty()) {
    void_reasons.push_back("A/A gate: " + a_a["sentence"].get<std::string>());
  }
  const json rows = make_rows(input, samples);
  const json comparisons = make_comparisons(input, samples, void_reason, gate_passed);
  const auto scatter = scatter_of_rows(plan, rows, 2, "");
  const json power = scatter ? power_of(plan, *scatter)
                             : unknown("no arm has the values that a scatter is taken from");
  return json{{"result", input.state.result()},
              {"experiment", plan.name},
              {"question", plan.question},
              {"status", input.status},
              {"outcome", outcome_of(input, comparisons, !void_reasons.empty())},
              {"void_reasons", void_reasons},
              {"design", to_string(plan.design)},
              {"alpha", plan.alpha},
              {"metric", plan.metric.name()},
              {"unit", plan.metric.unit()},
              {"n", plan.trials},
              {"workload", plan.workload.name},
              {"mixed_durability", plan.mixed_durability},
              {"rows", rows},
              {"comparisons", comparisons},
              {"a_a", a_a},
              {"smallest_detectable_ratio", scatter ? power["smallest_detectable_ratio"] : power},
              {"power", power},
              {"warnings", collect_warnings(input, samples, rows, comparisons)},
              {"stream_digest", input.stream_digest}};
}

RunEnd end_of(const json& verdict) {
  const std::string outcome = verdict.value("outcome", "");
  if (outcome == "void") return RunEnd::void_experiment;
  if (outcome == "disqualified") return RunEnd::disqualified;
  return outcome == "rejected" ? RunEnd::rejected : RunEnd::judged;
}

}  // namespace assay
