#include "harness/report/markdown.h"

#include <fmt/format.h>

#include "harness/report/content.h"
#include "harness/report/terminal.h"

namespace assay::report {
namespace {

std::string table_markdown(const Table& table) {
  std::string out = "|";
  for (const Column& column : table.columns) out += " " + markdown_escaped(column.heading) + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += column.right_aligned ? " ---: |" : " :--- |";
  out += "\n";
  bool references = false;
  for (const TableLine& line : table.lines) {
    if (!line.group.empty()) {
      references = true;  // told by their names and their place at each group's end
      out += "| **" + markdown_escaped(line.group) + "** |";
      for (std::size_t c = 1; c < table.columns.size(); ++c) out += " |";
      out += "\n";
    }
    if (line.reference && !references) {
      references = true;
      out += "| *references, no arms* |";
      for (std::size_t c = 1; c < table.columns.size(); ++c) out += " |";
      out += "\n";
    }
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      out += " ";
      out += table.columns[c].bar ? text_bar(line.bar, 10) : markdown_escaped(line.cells[c]);
      out += " |";
    }
    out += "\n";
  }
  return out + "\n";
}

std::string list(const std::vector<Statement>& statements) {
  std::string out;
  for (const Statement& statement : statements) {
    out += fmt::format("- **{}** `{}`", markdown_escaped(statement.sentence), statement.mark);
    if (!statement.detail.empty()) out += "<br>" + markdown_escaped(statement.detail);
    out += "\n";
  }
  return out + "\n";
}

std::string pairs(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string out = "| | |\n| :--- | :--- |\n";
  for (const auto& [name, value] : rows) {
    out += fmt::format("| {} | {} |\n", markdown_escaped(name), markdown_escaped(value));
  }
  return out + "\n";
}

std::string folded(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n\n{}</details>\n\n", summary, content);
}

}  // namespace

std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\n':
        out += ' ';
        break;
      case '|':
      case '*':
      case '_':
      case '`':
      case '[':
      case ']':
      case '\\':
      case '#':
      case '~':
        out += '\\';
        out += c;
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string markdown_report(const ReportModel& model, const std::vector<Picture>& pictures,
                            const std::vector<std::string>& notes) {
  const Content content = make_content(model);
  std::string out =
      fmt::format("# {}\n\n**{}** {}\n\n> {}\n\n", markdown_escaped(content.title), content.stamp,
                  markdown_escaped(content.question), markdown_escaped(content.headline));
  out +=
      table_markdown(part_of(content.table, false)) + table_markdown(part_of(content.table, true));
  if (!content.comparisons.empty()) out += "## Comparisons\n\n" + list(content.comparisons);
  out += "## Checks\n\n" + list(content.checks);
  if (!content.warnings.empty()) out += "## Warnings\n\n";
  for (const std::string& warning : content.warnings) {
    out += "- " + markdown_escaped(warning) + "\n";
  }
  if (!content.warnings.empty()) out += "\n";
  if (!pictures.empty() || !notes.empty()) out += "## Pictures\n\n";
  for (const Picture& picture : pictures) {
    out += fmt::format("![{}](plots/{}.svg)\n\n", markdown_escaped(picture.title), picture.name);
  }
  for (const std::string& note : notes) {
    out += "- not drawn: " + markdown_escaped(note) + "\n";
  }
  if (!notes.empty()) out += "\n";
  out += "## Record\n\n" + pairs(content.facts);
  out += "To repeat and to check:\n\n```\n";
  for (const std::string& command : content.commands) out += command + "\n";
  out += "```\n\n";
  std::string unknowns;
  for (const std::string& unknown : content.unknowns) {
    unknowns += "- " + markdown_escaped(unknown) + "\n";
  }
  if (!unknowns.empty()) out += folded("What is not known, and why", unknowns + "\n");
  std::string meanings;
  for (const Column& column : content.table.columns) {
    if (column.bar) continue;
    meanings += fmt::format("- **{}**: {}\n", markdown_escaped(column.heading),
                            markdown_escaped(column.meaning));
  }
  out += folded("What the columns mean", meanings + "\n");
  out += folded("All trials", table_markdown(content.trials));
  if (!model.plan.empty()) out += folded("Plan", pairs(model.plan));
  if (!model.provenance.empty()) out += folded("Environment", pairs(model.provenance));
  return out;
}

}  // namespace assay::report
