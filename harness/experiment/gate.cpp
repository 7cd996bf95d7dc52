#include "harness/experiment/gate.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/stats/stats.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr double kCorridor = 1.2;

std::vector<double> values_of(const json& verdict, const std::string& arm) {
  std::vector<double> values;
  for (const json& row : verdict.value("rows", json::array())) {
    if (row.value("arm", "") != arm) continue;
    for (const json& value : row.value("values", json::array())) {
      if (value.is_number() && value.get<double>() > 0.0) values.push_back(value.get<double>());
    }
  }
  return values;
}

std::vector<double> past_values(const Baseline& baseline, const std::string& arm) {
  const auto found = baseline.values.find(arm);
  return found == baseline.values.end() ? std::vector<double>() : found->second;
}

/// Values of one round each, as shares of the reference's; empty where rounds are missing.
std::vector<double> shares(const std::vector<double>& values, const std::vector<double>& whole) {
  std::vector<double> result;
  if (values.size() != whole.size()) return result;
  for (std::size_t i = 0; i < values.size(); ++i) result.push_back(values[i] / whole[i]);
  return result;
}

/// One claim an arm: the plan's own where it has one.
std::vector<Hypothesis> claims_of(const Plan& plan, const GateRequest& request) {
  std::vector<Hypothesis> claims;
  for (const Arm& arm : plan.arms) {
    if (!plan.is_subject(arm)) continue;
    Hypothesis claim;
    claim.a = arm.name;
    claim.kind = HypothesisKind::regression;
    claim.declared = true;
    claim.corridor = kCorridor;
    for (const Hypothesis& planned : plan.hypotheses) {
      if (planned.kind != HypothesisKind::regression || planned.a != arm.name) continue;
      claim.corridor = planned.corridor;
      claim.relative_to = planned.relative_to;
    }
    if (request.corridor > 0.0) claim.corridor = request.corridor;
    if (!request.relative_to.empty()) {
      const Arm* reference = plan.find_arm_beside(arm, request.relative_to);
      claim.relative_to = reference == nullptr ? request.relative_to : reference->name;
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

/// Why the arm's values are not of the work that the baseline's are of; empty where they are.
std::string other_work_of(const std::string& arm, const json& verdict, const Baseline& baseline) {
  for (const json& row : verdict.value("rows", json::array())) {
    if (row.value("arm", "") == arm) return other_table_work(baseline, arm, table_work_of(row));
  }
  return {};
}

json compare(const Plan& plan, const Hypothesis& claim, const json& verdict,
             const Baseline& baseline) {
  std::vector<double> now = values_of(verdict, claim.a);
  std::vector<double> then = past_values(baseline, claim.a);
  if (!claim.relative_to.empty()) {
    now = shares(now, values_of(verdict, claim.relative_to));
    then = shares(then, past_values(baseline, claim.relative_to));
  }
  if (now.size() < 2 || then.size() < 2) {
    return void_comparison(
        claim, fmt::format("{} lacks values{}",
                           now.size() < 2 ? std::string("the newer result")
                                          : "the baseline " + baseline.result,
                           claim.relative_to.empty() ? "" : " of it or of " + claim.relative_to));
  }
  json made = compare_values(plan, claim, now, then);
  made["baseline"] = {{"result", baseline.result}, {"record", baseline.record}, {"n", then.size()}};
  return made;
}

}  // namespace

Result<GateVerdict> judge_gate(const Plan& plan, const json& verdict, const Baseline& baseline,
                               const GateRequest& request) {
  if (!request.relative_to.empty()) {
    const Arm* reference = plan.find_arm_beside(plan.arms.front(), request.relative_to);
    if (reference == nullptr || !reference->reference) {
      std::vector<std::string> names;
      for (const Arm& arm : plan.arms) {
        if (arm.reference) names.push_back(name_without_cell(arm));
      }
      const std::string near = nearest_name(request.relative_to, names);
      Error error(ErrorKind::bad_input,
                  fmt::format("'{}' is no reference row of this experiment", request.relative_to));
      if (!near.empty()) error.hint(fmt::format("did you mean '{}'?", near));
      return fail(error);
    }
  }
  GateVerdict gate;
  gate.comparisons = json::array();
  std::vector<double> p;
  std::vector<double> refuted;
  bool other_work = false;
  for (const Hypothesis& claim : claims_of(plan, request)) {
    if (std::string why = other_work_of(claim.a, verdict, baseline); !why.empty()) {
      gate.comparisons.push_back(void_comparison(claim, why));
      other_work = true;
      continue;
    }
    json one = compare(plan, claim, verdict, baseline);
    // A new arm has no past, and must not make the others' claims harder.
    if (one["p"].is_number()) {
      p.push_back(one["p"].get<double>());
      refuted.push_back(one["p_refuted"].get<double>());
    }
    gate.comparisons.push_back(std::move(one));
  }
  if (other_work) {
    gate.end = GateEnd::regression;
  } else if (p.empty()) {
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("no arm has values in both the newer result and {}", baseline.result))
            .hint("the baseline must be a result of the same experiment"));
  }
  const auto adjusted = stats::holm(p);
  const auto refuted_adjusted = stats::holm(refuted);
  std::size_t next = 0;
  bool all_shown = true;
  bool any_refuted = false;
  for (json& one : gate.comparisons) {
    if (!one["p"].is_number()) continue;
    judge_comparison(plan, adjusted[next], refuted_adjusted[next], one);
    ++next;
    all_shown = all_shown && one["claim"] == "shown";
    any_refuted = any_refuted || one["claim"] == "refuted";
  }
  if (any_refuted || other_work) {
    gate.end = GateEnd::regression;
  } else {
    gate.end = all_shown ? GateEnd::within : GateEnd::undecided;
  }
  return gate;
}

}  // namespace assay
