// A report as Markdown, for a repository or a pull request.
#pragma once

#include <string>
#include <vector>

#include "harness/report/picture.h"

namespace assay::report {

/// The same content as the terminal's. Pictures are linked as plots/NAME.svg.
[[nodiscard]] std::string markdown_report(const ReportModel& model,
                                          const std::vector<Picture>& pictures,
                                          const std::vector<std::string>& notes);

/// Text that Markdown shows as it is, also within a table cell.
[[nodiscard]] std::string markdown_escaped(const std::string& text);

}  // namespace assay::report
