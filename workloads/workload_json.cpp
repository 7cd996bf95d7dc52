// Workload to its canonical form. Every key that has an effect is there, defaults filled in; keys
// without an effect (theta of a uniform distribution) are left out, as in a declaration.
#include <nlohmann/json.hpp>

#include "workloads/spellings.h"
#include "workloads/workload.h"

namespace assay {
namespace {

nlohmann::json keys_json(const KeySpec& keys) {
  nlohmann::json json{{"count", keys.count},
                      {"kind", spelling_of(kKeyKinds, keys.kind)},
                      {"bytes", keys.bytes},
                      {"order", spelling_of(kKeyOrders, keys.hashed)}};
  if (keys.kind == KeyKind::bytes) json["prefix"] = keys.prefix;
  return json;
}

nlohmann::json values_json(const ValueSpec& values) {
  nlohmann::json json{{"sizes", spelling_of(kValueSizes, values.sizes)},
                      {"compressible", values.compressible}};
  if (values.sizes != ValueSizes::uniform) json["bytes"] = values.bytes;
  if (values.sizes != ValueSizes::fixed) {
    json["min_bytes"] = values.min_bytes;
    json["max_bytes"] = values.max_bytes;
  }
  if (values.sizes == ValueSizes::lognormal) json["sigma"] = values.sigma;
  return json;
}

nlohmann::json distribution_json(const Distribution& distribution) {
  using enum DistributionKind;
  nlohmann::json json{{"kind", spelling_of(kDistributions, distribution.kind)}};
  const auto kind = distribution.kind;
  if (kind == zipfian || kind == latest) json["theta"] = distribution.theta;
  if (kind == zipfian || kind == hot_set) json["scrambled"] = distribution.scrambled;
  if (kind == hot_prefix || kind == hot_set) {
    json["hot_fraction"] = distribution.hot_fraction;
    json["hot_probability"] = distribution.hot_probability;
  }
  return json;
}

nlohmann::json role_json(const Role& role) {
  nlohmann::json mix = nlohmann::json::object();
  for (const auto& [name, kind] : kOpKindNames) {
    const double weight = role.mix[static_cast<std::size_t>(kind)];
    if (weight > 0.0) mix[std::string(name)] = weight;
  }
  const bool scans = mix.contains("scan") || mix.contains("reverse_scan");
  const bool batches = mix.contains("batch") || mix.contains("rollback");
  nlohmann::json json{{"name", role.name},
                      {"threads", role.threads},
                      {"mix", std::move(mix)},
                      {"distribution", distribution_json(role.distribution)},
                      {"rate_per_s", role.arrival.rate_per_s},
                      {"cpus", role.cpus},
                      {"background", role.background}};
  if (scans) {
    json["scan_entries_min"] = role.scan_entries_min;
    json["scan_entries_max"] = role.scan_entries_max;
  }
  if (batches) json["batch_keys"] = role.batch_keys;
  if (role.arrival.rate_per_s > 0.0) json["poisson"] = role.arrival.poisson;
  return json;
}

nlohmann::json warm_up_json(const WarmUp& warm_up) {
  nlohmann::json json{{"policy", spelling_of(kWarmUpPolicies, warm_up.policy)}};
  if (warm_up.policy == WarmUpPolicy::fixed) {
    if (warm_up.operations > 0) json["operations"] = warm_up.operations;
    if (warm_up.ms > 0) json["ms"] = warm_up.ms;
  }
  if (warm_up.policy == WarmUpPolicy::steady) {
    json["window_ms"] = warm_up.window_ms;
    json["max_slope_per_s"] = warm_up.max_slope_per_s;
    json["max_ms"] = warm_up.max_ms;
  }
  return json;
}

/// Of a trace only what was declared is written; mix, length and rate are read from the file again.
nlohmann::json trace_json(const Phase& phase, nlohmann::json json) {
  json["trace"] = phase.trace;
  json["trace_speed"] = phase.trace_speed;
  json["trace_digest"] = phase.trace_digest;
  const Role& role = phase.roles.front();
  json["roles"] = nlohmann::json::array();
  json["roles"].push_back({{"name", role.name}, {"threads", role.threads}, {"cpus", role.cpus}});
  return json;
}

void add_cache(const Phase& phase, nlohmann::json& json) {
  json["cache"] = spelling_of(kCachePolicies, phase.cache);
  if (phase.cache != CachePolicy::cold && phase.cache != CachePolicy::cold_files) return;
  json["max_resident"] = phase.max_resident;
  json["max_resident_bytes"] = phase.max_resident_bytes;
}

nlohmann::json phase_json(const Phase& phase) {
  nlohmann::json json{
      {"kind", spelling_of(kPhaseKinds, phase.kind)}, {"name", phase.name}, {"timed", phase.timed}};
  if (phase.kind == PhaseKind::load) {
    json["load_order"] = spelling_of(kLoadOrders, phase.random_order);
    json["load_batch"] = phase.load_batch;
    json["load_threads"] = phase.load_threads;
  }
  if (phase.kind == PhaseKind::restart) json["how"] = spelling_of(kRestartHows, phase.how);
  if (phase.kind == PhaseKind::load_tables) {
    json["load_batch"] = phase.load_batch;
    json["data_seed"] = phase.data_seed;
  }
  if (phase.kind == PhaseKind::table) {
    json["operation"] = spelling_of(kTableOperations, phase.operation);
    json["rows"] = phase.rows;
    json["operations"] = phase.operations;
    json["warm_up"] = warm_up_json(phase.warm_up);
    add_cache(phase, json);
  }
  if (phase.kind != PhaseKind::run) return json;
  if (phase.timed_batch == kTimedBatchAuto) {
    json["timed_batch"] = "auto";
  } else {
    json["timed_batch"] = phase.timed_batch;
  }
  add_cache(phase, json);
  if (!phase.trace.empty()) return trace_json(phase, std::move(json));
  if (phase.operations > 0) json["operations"] = phase.operations;
  if (phase.duration_ms > 0) json["duration_ms"] = phase.duration_ms;
  json["warm_up"] = warm_up_json(phase.warm_up);
  json["roles"] = nlohmann::json::array();
  for (const Role& role : phase.roles) json["roles"].push_back(role_json(role));
  return json;
}

}  // namespace

nlohmann::json to_json(const Workload& workload) {
  nlohmann::json json{{"name", workload.name},
                      {"description", workload.description},
                      {"source", workload.source},
                      {"keys", keys_json(workload.keys)},
                      {"values", values_json(workload.values)},
                      {"measured_phase", workload.measured_phase},
                      {"memory_bytes", workload.memory_bytes},
                      {"best_effort", workload.best_effort},
                      {"phases", nlohmann::json::array()}};
  for (const Phase& phase : workload.phases) json["phases"].push_back(phase_json(phase));
  return json;
}

}  // namespace assay
