#include "harness/report/json.h"

#include <nlohmann/json.hpp>

namespace assay::report {

using nlohmann::json;

namespace {

json number(const Quantity& quantity) {
  if (quantity.value) return *quantity.value;
  return {{"unknown", quantity.why.empty() ? "not recorded" : quantity.why}};
}

}  // namespace

std::string json_report(const ReportModel& model) {
  json trials = json::array();
  for (const Trial& trial : model.trials) {
    trials.push_back(
        {{"arm", trial.arm},
         {"index", trial.index},
         {"seed", trial.seed},
         {"status", trial.status},
         {"reason", trial.reason},
         {"started", trial.started},
         {"raw",
          {{"path", trial.raw_path}, {"sha256", trial.raw_sha256}, {"missing", trial.raw_missing}}},
         {"wall_ns", number(trial.wall_ns)},
         {"throughput_per_s", number(trial.throughput_per_s)}});
  }
  const json report{{"schema", 1},
                    {"ledger", model.ledger_path},
                    {"head", model.head_hash},
                    {"record", model.verdict_hash},
                    {"time", model.verdict_time},
                    {"plan", model.plan_json.empty() ? json() : json::parse(model.plan_json)},
                    {"verdict", json::parse(model.verdict_json)},
                    {"trials", std::move(trials)}};
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace assay::report
