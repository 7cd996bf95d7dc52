#include "harness/cli/matrix_page.h"

#include <map>

#include <fmt/format.h>

#include "harness/report/html.h"
#include "harness/report/page_style.h"

namespace assay::cli {
namespace {

using report::html_escaped;

/// The tone that the style sheet knows for a verdict.
std::string_view tone_of(qualify::Verdict verdict) {
  switch (verdict) {
    case qualify::Verdict::pass:
      return "better";
    case qualify::Verdict::fail:
      return "worse";
    case qualify::Verdict::harness_error:
      return "bad";
    case qualify::Verdict::inconclusive:
    case qualify::Verdict::skipped:
      break;
  }
  return "open";
}

std::string headline(const qualify::Matrix& matrix) {
  std::map<std::string_view, std::size_t> counts;
  for (const qualify::MatrixEntry& entry : matrix.entries) ++counts[to_string(entry.verdict)];
  std::string text;
  for (const auto& [verdict, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, verdict);
  return fmt::format("{}{}", text.empty() ? "nothing was looked at" : text,
                     matrix.interrupted ? " (stopped before the end)" : "");
}

std::string table_of(const qualify::Matrix& matrix) {
  const std::vector<qualify::MatrixLine> lines = matrix_lines(matrix);
  std::string text = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& title : lines.front()) text += "<th>" + html_escaped(title) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (std::size_t at = 1; at < lines.size(); ++at) {
    // Those under the other profiles are for information; their verdict stands in brackets.
    text += lines[at].back().starts_with('(') ? "<tr class=\"reference\">" : "<tr>";
    for (std::size_t column = 0; column < lines[at].size(); ++column)
      text += fmt::format("<td{}>{}</td>", column == 0 ? " class=\"name\"" : "",
                          html_escaped(lines[at][column]));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string statement_of(const qualify::MatrixEntry& entry) {
  std::string small = html_escaped(entry.reason);
  if (entry.control && !entry.control->source.empty())
    small += fmt::format(" Its documentation: {}", html_escaped(entry.control->source));
  for (const std::string& bundle : entry.outcome.bundles)
    small += fmt::format(" <code>assay qualify replay {}</code>", html_escaped(bundle));
  return fmt::format(
      "<li class=\"{}\"><span class=\"mark\">{}</span><b>{}, level {}: {}</b><small>{}</small>"
      "</li>\n",
      tone_of(entry.verdict), entry.verdict == qualify::Verdict::pass ? "&#10003;" : "!",
      html_escaped(entry.row.name), to_string(entry.outcome.level), to_string(entry.verdict),
      small);
}

}  // namespace

std::string matrix_page(const qualify::MatrixPlan& plan, const qualify::Matrix& matrix) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>assay qualify matrix</title>\n<style>{}</style></head><body>\n"
      "<h1>What settings lose, and what they may lose</h1>\n"
      "<p class=\"question\">Every setting whose legal loss is known: is the lossy one seen to "
      "lose, and does the safe one keep everything? Seed {}, budget {} for each level of each "
      "setting.</p>\n<p class=\"headline\">{}</p>\n<h2>Settings</h2>\n{}",
      report::kPageStyle, plan.seed, html_escaped(plan.budget_text), headline(matrix),
      table_of(matrix));
  page += "<h2>What was found of each</h2>\n<ul class=\"statements\">\n";
  for (const qualify::MatrixEntry& entry : matrix.entries) page += statement_of(entry);
  return page + fmt::format(
                    "</ul>\n<p class=\"question\">Records: <code>{}</code></p>\n</body>"
                    "</html>\n",
                    html_escaped(matrix.ledger_path));
}

}  // namespace assay::cli
