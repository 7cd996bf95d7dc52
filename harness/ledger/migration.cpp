#include "harness/ledger/migration.h"

#include <array>

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using nlohmann::json;

json not_recorded() {
  return {{"unknown", "written by an assay that did not record it"}};
}

void fill(json& object, std::initializer_list<const char*> members) {
  if (!object.is_object()) return;
  for (const char* member : members) {
    if (!object.contains(member)) object[member] = not_recorded();
  }
}

/// Every element of an array member that is an object; nothing where there is no such array.
template <class Function>
void each(json& object, const char* member, Function function) {
  const auto found = object.find(member);
  if (found == object.end() || !found->is_array()) return;
  for (json& element : *found) {
    if (element.is_object()) function(element);
  }
}

/// Before there were timed batches every operation was timed by itself: that is known.
void fill_operations_per_sample(json& object) {
  if (!object.contains("operations_per_sample")) object["operations_per_sample"] = 1;
}

void fill_phase(json& phase) {
  fill(phase, {"store_ns", "store_rate_per_s", "clock_steps_back"});
  fill_operations_per_sample(phase);
  if (!phase.contains("streams")) phase["streams"] = json::array();
  if (const auto cpu = phase.find("cpu"); cpu != phase.end()) fill(*cpu, {"foreign_user_ns"});
}

}  // namespace

void migrate_body_1_to_2(std::string_view kind, json& body) {
  if (kind == "plan") {
    fill(body, {"power"});
    if (!body.contains("timed_batches")) body["timed_batches"] = json::array();
  } else if (kind == "trial") {
    fill(body, {"memory", "timeout_ms"});
    each(body, "phases", fill_phase);
  } else if (kind == "verdict") {
    fill(body, {"power"});
    each(body, "rows", [](json& row) {
      fill(row, {"store_ns_per_operation", "store_rate_per_s", "store_ns_above_null"});
      fill_operations_per_sample(row);
    });
    each(body, "comparisons", [](json& comparison) { fill(comparison, {"rank_p_smallest"}); });
  }
}

void migrate(LedgerRecord& record) {
  using Step = void (*)(std::string_view, json&);
  static constexpr std::array<Step, kLedgerSchema - 1> kSteps = {migrate_body_1_to_2};
  int schema = record.schema;
  for (const json* level = &record.source; !level->is_null(); level = &level->at("source")) {
    schema = level->at("schema").get<int>();
  }
  for (; schema < kLedgerSchema; ++schema) {
    kSteps[static_cast<std::size_t>(schema) - 1](record.kind, record.body);
  }
}

}  // namespace assay
