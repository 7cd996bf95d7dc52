#include "harness/ledger/machines.h"

namespace assay {

std::string result_of(const LedgerRecord& record) {
  const auto found = record.body.find("result");
  return found != record.body.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Machines::of(const LedgerRecord& record) {
  if (!record.source.is_null()) return record.source.at("machine").get<std::string>();
  const std::string result = result_of(record);
  if (result.empty()) return {};
  if (record.kind == "plan") {
    const nlohmann::json::json_pointer place("/provenance/fingerprint");
    const bool told = record.body.contains(place) && record.body.at(place).is_string();
    return of_result_[result] = told ? record.body.at(place).get<std::string>() : "unknown";
  }
  const auto known = of_result_.find(result);
  return known != of_result_.end() ? known->second : "";
}

}  // namespace assay
