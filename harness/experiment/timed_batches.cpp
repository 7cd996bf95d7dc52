#include "harness/experiment/timed_batches.h"

#include <nlohmann/json.hpp>

namespace assay {

nlohmann::json to_json(const std::vector<TimedBatchChoice>& choices) {
  nlohmann::json list = nlohmann::json::array();
  for (const TimedBatchChoice& choice : choices) {
    nlohmann::json measured = nlohmann::json::array();
    for (const auto& [operations, ns] : choice.null_ns) measured.push_back({operations, ns});
    list.push_back({{"phase", choice.phase},
                    {"operations", choice.operations},
                    {"null_ns", std::move(measured)}});
  }
  return list;
}

std::vector<TimedBatchChoice> timed_batches_from_json(const nlohmann::json& body,
                                                      const std::string& cell) {
  std::vector<TimedBatchChoice> choices;
  for (const nlohmann::json& one : body.value("timed_batches", nlohmann::json::array())) {
    if (one.value("cell", "") != cell) continue;
    TimedBatchChoice choice;
    choice.phase = one.value("phase", "");
    choice.operations = one.value("operations", 1U);
    for (const nlohmann::json& measured : one.value("null_ns", nlohmann::json::array()))
      choice.null_ns.emplace_back(measured.at(0).get<std::uint32_t>(),
                                  measured.at(1).get<double>());
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace assay
