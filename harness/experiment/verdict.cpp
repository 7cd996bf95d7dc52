#include "harness/experiment/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/experiment/arm_figures.h"
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
  // The first rounds may be declared to warm up: recorded, never counted.
  for (std::uint64_t round = input.plan.aggregation.warm_up_trials; round < input.plan.rounds();
       ++round) {
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

/// The reference row of that store; null where it was not run.
const ArmSample* reference_row(const Samples& samples, const std::string& store) {
  const auto found = std::find_if(samples.begin(), samples.end(), [&](const auto& one) {
    return one.second.arm->reference && one.second.arm->store == store;
  });
  return found == samples.end() ? nullptr : &found->second;
}

/// Share of a reference's throughput; unknown where one of the two is missing.
json share_of(const Samples& samples, const std::string& reference, const ArmSample& sample) {
  const ArmSample* found = reference_row(samples, reference);
  if (found == nullptr) return unknown(fmt::format("{} was not run", reference));
  const auto whole = mean_throughput(*found);
  const auto part = mean_throughput(sample);
  if (!whole || !part) return unknown("no throughput was recorded");
  return *part / *whole;
}

/// Store time of an operation beyond a reference's: what is the store's own, the harness's share of
/// the latency taken off.
json store_ns_above(const Samples& samples, const std::string& reference, const ArmSample& sample) {
  const ArmSample* found = reference_row(samples, reference);
  if (found == nullptr) return unknown(fmt::format("{} was not run", reference));
  const auto own = store_ns_per_operation(sample);
  const auto base = store_ns_per_operation(*found);
  if (!own || !base) return unknown("no store time was recorded");
  return *own - *base;
}

json make_rows(const VerdictInput& input, const Samples& samples) {
  json rows = json::array();
  for (const Arm& arm : input.plan.arms) {
    const ArmSample& sample = samples.at(arm.name);
    json row = row_of(input.plan, sample);
    row["void"] = input.state.void_count(arm.name);
    if (input.qualification && !sample.raws.empty() && row["proof"] == "declared") {
      add_proof(input.qualification(arm, sample.raws.front().value("store", json::object())), row);
    }
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

/// The positive control's line of the verdict; null when the plan has none.
json control_of(const VerdictInput& input, const Samples& samples, bool judged) {
  const PositiveControl& control = input.plan.control;
  if (control.delayed.empty()) return nullptr;
  std::string why = judged ? "" : "the experiment is void";
  for (const std::string& arm : {control.arm, control.delayed}) {
    if (why.empty()) why = why_not(input, samples, arm);
  }
  if (why.empty()) {
    return judge_control(input.plan, samples.at(control.arm), samples.at(control.delayed));
  }
  return {{"a", control.delayed},
          {"b", control.arm},
          {"delay_ns", control.delay_ns},
          {"ratio", unknown(why)},
          {"interval", unknown(why)},
          {"p", unknown(why)},
          {"ok", false},
          {"sentence", "the delayed arm cannot be compared: " + why}};
}

/// Values of a reference's rounds, to take shares of. Empty: one of them is missing.
std::vector<double> shares(const std::vector<double>& values, const std::vector<double>* whole) {
  std::vector<double> result;
  if (whole == nullptr || whole->size() != values.size()) return result;
  for (std::size_t i = 0; i < values.size(); ++i) result.push_back(values[i] / (*whole)[i]);
  return result;
}

/// An arm against its accepted baseline, or why it cannot be.
json compare_with_baseline(const VerdictInput& input, const Samples& samples,
                           const Hypothesis& hypothesis) {
  if (!input.baseline) {
    return void_comparison(hypothesis, "no baseline is accepted yet (assay accept)");
  }
  const auto& values = input.baseline->values;
  const auto past = [&](const std::string& arm) -> const std::vector<double>* {
    const auto found = values.find(arm);
    return found == values.end() ? nullptr : &found->second;
  };
  const std::vector<double>* baseline = past(hypothesis.a);
  if (baseline == nullptr || baseline->size() < 2) {
    return void_comparison(hypothesis, fmt::format("the accepted result {} has no values of it",
                                                   input.baseline->result));
  }
  const ArmSample& sample = samples.at(hypothesis.a);
  const std::string work = sample.raws.empty() ? "" : table_work_of(row_of(input.plan, sample));
  if (std::string why = other_table_work(*input.baseline, hypothesis.a, work); !why.empty()) {
    return void_comparison(hypothesis, why);
  }
  std::vector<double> now = sample.values;
  std::vector<double> then = *baseline;
  if (!hypothesis.relative_to.empty()) {
    now = shares(now, &samples.at(hypothesis.relative_to).values);
    then = shares(then, past(hypothesis.relative_to));
    if (now.size() < 2 || then.size() < 2) {
      return void_comparison(hypothesis, fmt::format("{} lacks values in one of the two results",
                                                     hypothesis.relative_to));
    }
  }
  json comparison = compare_values(input.plan, hypothesis, now, then);
  comparison["baseline"] = {
      {"result", input.baseline->result}, {"record", input.baseline->record}, {"n", then.size()}};
  return comparison;
}

json compare(const VerdictInput& input, const Samples& samples, const Hypothesis& hypothesis,
             const std::string& void_reason) {
  std::string why = void_reason;
  if (why.empty()) why = why_not(input, samples, hypothesis.a);
  if (why.empty() && !hypothesis.b.empty()) why = why_not(input, samples, hypothesis.b);
  if (!why.empty()) return void_comparison(hypothesis, why);
  if (hypothesis.kind == HypothesisKind::regression) {
    return compare_with_baseline(input, samples, hypothesis);
  }
  return compare_values(input.plan, hypothesis, samples.at(hypothesis.a).values,
                        samples.at(hypothesis.b).values);
}

/// One cell, or the whole plan where nothing is swept: its samples and what its gates say.
struct Part {
  const Plan* plan = nullptr;
  std::string cell;
  Samples samples;
  json a_a;
  json control;
  json rows;
  std::string gate;                  ///< why nothing of it is judged though ratios are given
  std::vector<std::string> reasons;  ///< the same, at length
};

/// A twin without a value shows nothing: a gate that was asked for and cannot be looked at is shut.
/// So is a control.
void look_at_gates(bool is_void, Part& part) {
  if (part.control.is_object() && part.control["ok"] != true) {
    part.gate = "the positive control was not seen";
    if (!is_void) {
      part.reasons.push_back("positive control: " + part.control["sentence"].get<std::string>());
    }
  }
  if (part.a_a.is_object() && part.a_a["ok"] != true) {
    part.gate = "the A/A gate was not passed";
    if (!is_void) part.reasons.push_back("A/A gate: " + part.a_a["sentence"].get<std::string>());
  }
}

VerdictInput with_plan(const VerdictInput& input, const Plan& plan) {
  return {plan,
          input.state,
          input.status,
          input.stream_digest,
          input.warnings,
          input.void_reasons,
          input.load_raw,
          input.baseline,
          input.qualification,
          input.stream_digests};
}

Result<Part> part_of(const VerdictInput& input) {
  Part part;
  part.plan = &input.plan;
  part.cell = input.plan.arms.front().cell;
  for (const Arm& arm : input.plan.arms) {
    auto sample = sample_of(input, arm);
    if (!sample) return fail(sample.error());
    part.samples.emplace(arm.name, std::move(*sample));
  }
  const bool is_void = !input.void_reasons.empty();
  part.a_a = a_a_of(input, part.samples, !is_void);
  part.control = control_of(input, part.samples, !is_void);
  look_at_gates(is_void, part);
  part.rows = make_rows(input, part.samples);
  return part;
}

json make_comparisons(const VerdictInput& input, const std::vector<Part>& parts,
                      const std::string& void_reason) {
  json comparisons = json::array();
  // The family is the declared one, whatever became of its arms: a comparison that cannot be made
  // counts with p = 1, else a drop-out would make every other claim easier.
  std::vector<double> p;
  std::vector<double> refuted;
  std::vector<const Part*> owners;
  for (const Part& part : parts) {
    const VerdictInput own = with_plan(input, *part.plan);
    for (const Hypothesis& hypothesis : part.plan->hypotheses) {
      comparisons.push_back(compare(own, part.samples, hypothesis, void_reason));
      json& one = comparisons.back();
      if (!part.cell.empty()) one["cell"] = part.cell;
      p.push_back(one["p"].is_number() ? one["p"].get<double>() : 1.0);
      refuted.push_back(one["p_refuted"].is_number() ? one["p_refuted"].get<double>() : 1.0);
      owners.push_back(&part);
    }
  }
  const std::vector<double> adjusted = stats::holm(p);
  const std::vector<double> refuted_adjusted = stats::holm(refuted);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    if (!comparisons[i]["p"].is_number()) continue;
    judge_comparison(*owners[i]->plan, adjusted[i], refuted_adjusted[i], comparisons[i]);
    if (!owners[i]->gate.empty()) withhold_verdict(comparisons[i], owners[i]->gate);
  }
  return comparisons;
}

std::string outcome_of(const VerdictInput& input, const json& comparisons, bool is_void) {
  if (!input.state.disqualified().empty()) return "disqualified";
  if (is_void) return "void";
  if (input.status != "registered") return "judged";
  const auto refuted = [&](bool regression) {
    return std::any_of(comparisons.begin(), comparisons.end(), [&](const json& one) {
      return one["declared"] == true && one["claim"] == "refuted" &&
             (one["kind"] == "regression") == regression;
    });
  };
  if (refuted(true)) return "regression";
  return refuted(false) ? "rejected" : "judged";
}

/// `shut`: cells that are not judged, where others are.
std::vector<std::string> collect_warnings(const VerdictInput& input, const std::vector<Part>& parts,
                                          const json& rows, const json& comparisons,
                                          const std::vector<std::string>& shut) {
  std::vector<std::string> warnings = input.warnings;
  warnings.insert(warnings.end(), input.plan.notes.begin(), input.plan.notes.end());
  warnings.insert(warnings.end(), shut.begin(), shut.end());
  warn_about_null(rows, warnings);
  note_batches(rows, warnings);
  for (const Part& part : parts) {
    const std::size_t before = warnings.size();
    warn_about_memory(part.samples, warnings);
    if (warnings.size() > before) break;  // the same machine refuses the same in every cell
  }
  for (const Part& part : parts) {
    for (const Arm& arm : part.plan->arms) {
      for (std::string& one : arm_warnings(*part.plan, part.samples.at(arm.name))) {
        warnings.push_back(std::move(one));
      }
    }
  }
  for (const json& one : comparisons) {
    if (one["disagreement"] != true) continue;
    warnings.push_back(fmt::format("{} and {}: the t-test and the rank test disagree",
                                   one["a"].get<std::string>(), one["b"].get<std::string>()));
  }
  return warnings;
}

/// The cells of a sweep as the verdict holds them, and its axes.
void add_cells(const VerdictInput& input, const std::vector<Part>& parts, json& verdict) {
  const json canonical = to_json(input.plan);
  verdict["sweep"] = canonical["sweep"];
  verdict["cells"] = json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const auto digest = input.stream_digests.find(part.cell);
    verdict["cells"].push_back(
        {{"name", part.cell},
         {"values", canonical["cells"][i]["values"]},
         {"stream_digest", digest == input.stream_digests.end() ? "" : digest->second},
         {"a_a", part.a_a},
         {"positive_control", part.control},
         {"void_reasons", part.reasons}});
  }
}

}  // namespace

Result<json> make_verdict(const VerdictInput& input) {
  const Plan& plan = input.plan;
  const bool swept = !plan.cells.empty();
  std::vector<Part> parts;
  json rows = json::array();
  for (const Plan* cell : plan.parts()) {
    auto part = part_of(with_plan(input, *cell));
    if (!part) return fail(part.error());
    rows.insert(rows.end(), part->rows.begin(), part->rows.end());
    parts.push_back(std::move(*part));
  }
  // A shut gate voids its cell; where all are shut nothing was judged.
  const auto shut_gates = std::count_if(parts.begin(), parts.end(),
                                        [](const Part& part) { return !part.gate.empty(); });
  const bool all_shut = static_cast<std::size_t>(shut_gates) == parts.size();
  std::vector<std::string> void_reasons = input.void_reasons;
  const std::string void_reason = void_reasons.empty() ? "" : void_reasons.front();
  std::vector<std::string> shut;
  for (const Part& part : parts) {
    for (const std::string& reason : part.reasons) {
      const std::string told =
          swept ? fmt::format("cell {} is not judged: {}", part.cell, reason) : reason;
      (all_shut ? void_reasons : shut).push_back(told);
    }
  }
  const json comparisons = make_comparisons(input, parts, void_reason);
  const auto scatter = scatter_of_rows(plan, rows, 2, "");
  const json power = scatter ? power_of(plan, *scatter)
                             : unknown("no arm has the values that a scatter is taken from");
  json verdict = {
      {"result", input.state.result()},
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
      {"a_a", swept ? json() : parts.front().a_a},
      {"positive_control", swept ? json() : parts.front().control},
      {"aggregation", to_json(plan)["aggregation"]},
      {"smallest_detectable_ratio", scatter ? power["smallest_detectable_ratio"] : power},
      {"power", power},
      {"warnings", collect_warnings(input, parts, rows, comparisons, shut)},
      {"stream_digest", input.stream_digest}};
  if (swept) add_cells(input, parts, verdict);
  return verdict;
}

RunEnd end_of(const json& verdict) {
  const std::string outcome = verdict.value("outcome", "");
  if (outcome == "void") return RunEnd::void_experiment;
  if (outcome == "disqualified") return RunEnd::disqualified;
  if (outcome == "regression") return RunEnd::regression;
  return outcome == "rejected" ? RunEnd::rejected : RunEnd::judged;
}

}  // namespace assay
