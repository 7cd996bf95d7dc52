// From the JSON of records to the plain data of a ReportModel. Malformed fields throw
// nlohmann::json::exception, which load_report() turns into an Error that names the file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/report/model.h"

namespace assay::report {

/// A number, or {"unknown": why}; a field that is missing is unknown, too.
[[nodiscard]] Quantity read_quantity(const nlohmann::json& object, const char* key);
[[nodiscard]] Row read_row(const nlohmann::json& row);
[[nodiscard]] Comparison read_comparison(const nlohmann::json& comparison);
/// One phase of a raw record: latencies, series, throughput; and the settings. An empty name means
/// the last timed phase of kind "run".
void read_raw_record(const nlohmann::json& raw, const std::string& measured_phase, Trial& trial);
/// {"a": {"b": 1}} becomes {"a.b", "1"}, in the order of the keys.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> flatten(const nlohmann::json& tree);
/// Verdict fields, rows ordered best first and references after all arms.
void read_verdict(const nlohmann::json& verdict, ReportModel& model);

}  // namespace assay::report
