// A report as one self-contained HTML page: no network, no script, pictures inline.
#pragma once

#include <string>
#include <vector>

#include "harness/report/content.h"
#include "harness/report/picture.h"

namespace assay::report {

[[nodiscard]] std::string html_report(const ReportModel& model,
                                      const std::vector<Picture>& pictures,
                                      const std::vector<std::string>& notes);

/// A list of sentences, each with the mark and colour of its tone and all of one size.
[[nodiscard]] std::string statements_html(const std::vector<Statement>& statements);

/// Text that is safe as content and in a quoted attribute.
[[nodiscard]] std::string html_escaped(const std::string& text);

/// The <svg> element of a gnuplot file without prologue, its ids and references prefixed with
/// `prefix`, so that several fit into one page.
[[nodiscard]] std::string inline_svg(const std::string& svg, const std::string& prefix,
                                     const std::string& label);

}  // namespace assay::report
