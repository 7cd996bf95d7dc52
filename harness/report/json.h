// A report for programs.
#pragma once

#include <string>

#include "harness/report/model.h"

namespace assay::report {

/// One object: schema, ledger, head and record hashes, the plan's and verdict's bodies as recorded,
/// and what was read of each trial. Keys sorted, two spaces of indentation.
[[nodiscard]] std::string json_report(const ReportModel& model);

}  // namespace assay::report
