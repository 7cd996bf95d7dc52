// What a report of a sweep says that another does not: the cells in the table, the headline over
// all of them, their gates, and the figures against what was swept. Internal to the report.
// Stateless; any thread.
#pragma once

#include <string>

#include "harness/report/content.h"
#include "harness/report/model.h"
#include "plots/figure.h"

namespace assay::report {

/// What became of declared claims, which arm is best in how many cells and shown to be, and which
/// cells are not judged.
[[nodiscard]] std::string sweep_headline(const ReportModel& model);
/// Marks where each cell of the table begins; the lines are those of `model.rows`.
void group_by_cell(const ReportModel& model, Table& table);
/// The A/A line and the positive control of every cell.
void add_cell_checks(const ReportModel& model, Content& content);
/// Curves over every swept key and trade-offs between cells that were given the same work.
void add_sweep_figures(const ReportModel& model, plots::FigureSet& set);

}  // namespace assay::report
