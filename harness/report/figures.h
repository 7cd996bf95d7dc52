// From a ReportModel to the plain data that plots/ draws.
#pragma once

#include "harness/report/model.h"
#include "plots/figure.h"

namespace assay::report {

/// Rows in the report's order; latencies of all counting trials merged; the time series as the
/// median and the quartiles over trials, slot by slot (only slots that most trials reached).
[[nodiscard]] plots::FigureSet figure_set(const ReportModel& model);

}  // namespace assay::report
