// A report in files.
#pragma once

#include <string>
#include <vector>

#include "harness/report/model.h"
#include "plots/figure.h"

namespace assay::report {

struct WrittenReport {
  std::string markdown;            ///< path of report.md
  std::string html;                ///< path of report.html
  std::vector<std::string> plots;  ///< paths of the SVG files
  std::vector<std::string> notes;  ///< figures that were left out, and why
};

/// Writes report.md, report.html and plots/ below `directory` (made if it is not there). Each is
/// complete or not there: files by temporary + rename, plots/ as a whole folder in one exchange.
/// Where gnuplot is missing or draws nothing, the report is written without pictures, those of
/// before stay, and a note says so.
[[nodiscard]] Result<WrittenReport> write_report(const ReportModel& model,
                                                 const std::string& directory);

/// Draws `set` into `directory`, replacing it as a whole. An error, and the directory as it was, if
/// gnuplot is missing or draws nothing, where something else has the directory's name, or where it
/// holds anything that is no figure.
[[nodiscard]] Result<plots::Drawn> write_figures(const plots::FigureSet& set,
                                                 const std::string& directory);
/// Every figure of the result.
[[nodiscard]] Result<plots::Drawn> write_plots(const ReportModel& model,
                                               const std::string& directory);

}  // namespace assay::report
