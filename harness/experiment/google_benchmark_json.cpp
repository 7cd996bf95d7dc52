#include "harness/experiment/google_benchmark_json.h"

#include <nlohmann/json.hpp>

#include "harness/ledger/ledger.h"

namespace assay {
namespace {

using nlohmann::json;

json at(const json& from, const char* pointer, json otherwise) {
  const json::json_pointer where(pointer);
  if (!from.contains(where)) return otherwise;
  const json& found = from.at(where);
  const bool is_unknown = found.is_object() && found.contains("unknown");
  return is_unknown ? otherwise : found;
}

json context_of(const json& provenance) {
  return {{"date", at(provenance, "/collected", utc_now())},
          {"host_name", at(provenance, "/fingerprint", "unknown")},
          {"executable", at(provenance, "/binary/path", "assay")},
          {"num_cpus", at(provenance, "/cpu/logical", 0)},
          {"mhz_per_cpu", 0},
          {"cpu_scaling_enabled", at(provenance, "/cpu/governor", "") == "powersave"},
          {"caches", json::array()},
          {"load_avg", json::array()},
          {"library_build_type",
           at(provenance, "/build/assertions", "off") == "on" ? "debug" : "release"}};
}

}  // namespace

json google_benchmark_json(const json& verdict, const json& provenance) {
  const bool latency = verdict.value("unit", "") == "ns";
  json benchmarks = json::array();
  int family = 0;
  for (const json& row : verdict.at("rows")) {
    const std::string name =
        verdict.value("experiment", "") + "/" + row.at("arm").get<std::string>();
    const json& values = row.at("values");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i].get<double>();
      const double time_ns = latency ? value : 1e9 / value;
      json entry = {{"name", name},
                    {"run_name", name},
                    {"run_type", "iteration"},
                    {"family_index", family},
                    {"per_family_instance_index", 0},
                    {"repetitions", values.size()},
                    {"repetition_index", i},
                    {"threads", 1},
                    {"iterations", 1},
                    {"real_time", time_ns},
                    {"cpu_time", at(row, "/cpu_ns_per_operation", time_ns)},
                    {"time_unit", "ns"}};
      if (!latency) entry["items_per_second"] = value;
      benchmarks.push_back(std::move(entry));
    }
    ++family;
  }
  return {{"context", context_of(provenance)}, {"benchmarks", std::move(benchmarks)}};
}

}  // namespace assay
