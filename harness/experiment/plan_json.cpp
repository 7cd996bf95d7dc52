// The canonical form of a plan and what two of them differ in.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/experiment/plan.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

std::string arm_role(const Plan& plan, const Arm& arm) {
  if (arm.reference) return "reference";
  return arm.name == plan.a_a_twin ? "a_a" : "arm";
}

/// Keys of a phase that came with schema 2, by what was done before: every operation was timed by
/// itself, a restart was a clean close, and no bytes were exempt from the limit of residency.
void migrate_phase(nlohmann::json& phase) {
  if (!phase.is_object()) return;
  const auto add = [&phase](const char* key, nlohmann::json value) {
    if (!phase.contains(key)) phase[key] = std::move(value);
  };
  if (phase.value("kind", "") == "run") add("timed_batch", 1);
  if (phase.value("kind", "") == "restart") add("how", "close");
  if (phase.contains("max_resident")) add("max_resident_bytes", 0);
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json arms = nlohmann::json::array();
  for (const Arm& arm : plan.arms) {
    arms.push_back({{"name", arm.name},
                    {"store", arm.store},
                    {"durability", to_string(arm.durability)},
                    {"settings", arm.settings},
                    {"role", arm_role(plan, arm)}});
  }
  nlohmann::json hypotheses = nlohmann::json::array();
  for (const Hypothesis& hypothesis : plan.hypotheses) {
    hypotheses.push_back({{"a", hypothesis.a},
                          {"b", hypothesis.b},
                          {"kind", to_string(hypothesis.kind)},
                          {"margin_percent", hypothesis.margin_percent},
                          {"declared", hypothesis.declared}});
  }
  return {{"schema", 2},
          {"name", plan.name},
          {"question", plan.question},
          {"workload", to_json(plan.workload)},
          {"arms", std::move(arms)},
          {"a_a", plan.a_a},
          {"design", to_string(plan.design)},
          {"trials", plan.trials},
          {"seed", plan.seed},
          {"alpha", plan.alpha},
          {"metric",
           {{"kind", plan.metric.latency ? "latency" : "throughput"},
            {"class", plan.metric.operation_class},
            {"percentile", plan.metric.percentile}}},
          {"hypotheses", std::move(hypotheses)},
          {"family_adjustment", "holm"},
          {"mixed_durability", plan.mixed_durability},
          {"root", plan.root},
          {"trial_timeout_ms", plan.trial_timeout_ms},
          {"void_trials_max", plan.void_trials_max},
          {"foreign_cpus_max", plan.foreign_cpus_max},
          {"frequency_change_max", plan.frequency_change_max},
          {"steal_share_max", plan.steal_share_max},
          {"effect_percent", plan.effect_percent},
          {"cv_percent", plan.cv_percent},
          {"windows",
           {{"operations", plan.windows.operations},
            {"windows", plan.windows.windows},
            {"idle_cpu_fraction_max", plan.windows.max_idle_cpu_fraction},
            {"value_of_a_set", "geometric mean"}}}};
}

nlohmann::json migrated_plan(nlohmann::json canonical) {
  if (!canonical.is_object() || canonical.value("schema", 0) != 1) return canonical;
  // Frequency and steal were judged with these limits when foreign load had one, else not at all.
  const bool judged = canonical.value("foreign_cpus_max", 0.0) > 0.0;
  canonical["frequency_change_max"] = judged ? 0.2 : 0.0;
  canonical["steal_share_max"] = judged ? 0.1 : 0.0;
  canonical["cv_percent"] = 0.0;
  if (canonical.contains("workload") && canonical["workload"].contains("phases")) {
    for (nlohmann::json& phase : canonical["workload"]["phases"]) migrate_phase(phase);
  }
  canonical["schema"] = 2;
  return canonical;
}

std::string plan_digest(const nlohmann::json& canonical) {
  return sha256_hex(canonical.dump());
}

std::string first_difference(const nlohmann::json& there, const nlohmann::json& here) {
  if (there == here) return {};
  const auto below = [](const std::string& key, const std::string& rest) {
    return rest.starts_with(':') ? key + rest : key + "." + rest;
  };
  if (there.is_object() && here.is_object()) {
    for (const auto& [key, value] : there.items()) {
      if (!here.contains(key)) return fmt::format("{}: only there", key);
      const std::string rest = first_difference(value, here[key]);
      if (!rest.empty()) return below(key, rest);
    }
    for (const auto& [key, value] : here.items()) {
      if (!there.contains(key)) return fmt::format("{}: only here", key);
    }
  }
  if (there.is_array() && here.is_array()) {
    for (std::size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
      const std::string rest = first_difference(there[i], here[i]);
      if (!rest.empty()) return below(fmt::format("{}", i), rest);
    }
    return fmt::format(": {} entries there, {} here", there.size(), here.size());
  }
  return fmt::format(": {} there, {} here", there.dump(), here.dump());
}

}  // namespace assay
