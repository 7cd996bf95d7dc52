// A report for people at a terminal.
#pragma once

#include <string>

#include "harness/report/model.h"

namespace assay::report {

/// The verdict, the table (broken into several that repeat the first column where `columns`
/// characters do not hold it), the comparisons, the checks and where it is recorded.
[[nodiscard]] std::string terminal_report(const ReportModel& model, bool colour, unsigned columns);

/// Characters that a terminal shows for UTF-8 text, each one cell wide.
[[nodiscard]] std::size_t display_width(const std::string& text);

/// A bar of `width` cells filled to `share` (0 to 1) in eighths of a cell; one that
/// is longer ends in an arrow.
[[nodiscard]] std::string text_bar(double share, unsigned width);

}  // namespace assay::report
