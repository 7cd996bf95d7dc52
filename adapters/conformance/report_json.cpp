// A conformance report as JSON and back: how it leaves a child process, and what --json prints.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "adapters/conformance/conformance.h"

namespace assay {
namespace {

constexpr CheckResult kResults[] = {CheckResult::passed, CheckResult::not_supported,
                                    CheckResult::not_applicable, CheckResult::failed,
                                    CheckResult::wrong_contents};

}  // namespace

nlohmann::json to_json(const ConformanceReport& report) {
  nlohmann::json outcomes = nlohmann::json::array();
  for (const CheckOutcome& outcome : report.outcomes) {
    outcomes.push_back({{"check", outcome.check},
                        {"result", to_string(outcome.result)},
                        {"detail", outcome.detail},
                        {"wall_ms", outcome.wall_ms}});
  }
  nlohmann::json counts = nlohmann::json::object();
  for (const CheckResult result : kResults) {
    counts[std::string(to_string(result))] = report.count(result);
  }
  return {{"schema", 1},
          {"store", report.store},
          {"version", report.version},
          {"durability", to_string(report.durability)},
          {"seed", report.seed},
          {"ok", report.ok()},
          {"counts", counts},
          {"checks", outcomes}};
}

Result<ConformanceReport> conformance_report_from_json(const nlohmann::json& json) {
  try {
    ConformanceReport report;
    report.store = json.at("store").get<std::string>();
    report.version = json.at("version").get<std::string>();
    const auto durability = parse_durability(json.at("durability").get<std::string>());
    if (!durability) return std::unexpected(durability.error());
    report.durability = *durability;
    report.seed = json.at("seed").get<std::uint64_t>();
    for (const nlohmann::json& one : json.at("checks")) {
      CheckOutcome outcome{.check = one.at("check").get<std::string>(),
                           .result = CheckResult::failed,
                           .detail = one.at("detail").get<std::string>(),
                           .wall_ms = one.at("wall_ms").get<double>()};
      const auto name = one.at("result").get<std::string>();
      bool known = false;
      for (const CheckResult result : kResults) {
        if (to_string(result) != name) continue;
        outcome.result = result;
        known = true;
      }
      if (!known) return fail(ErrorKind::bad_input, fmt::format("unknown result \"{}\"", name));
      report.outcomes.push_back(std::move(outcome));
    }
    return report;
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::bad_input, fmt::format("not a conformance report: {}", error.what()));
  }
}

}  // namespace assay
