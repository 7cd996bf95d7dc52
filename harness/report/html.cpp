#include "harness/report/html.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "harness/report/content.h"
#include "harness/report/page_style.h"

namespace assay::report {
namespace {

std::string cell(const Column& column, const TableLine& line, std::size_t c) {
  if (column.bar) {
    return fmt::format("<td><span class=\"bar{}\"><i style=\"width:{:.1f}%\"></i></span></td>",
                       line.bar > 1.0 ? " beyond" : "", std::min(line.bar, 1.0) * 100.0);
  }
  const char* kind = c == 0 && !column.right_aligned ? "name" : column.right_aligned ? "right" : "";
  return fmt::format("<td class=\"{}\">{}</td>", kind, html_escaped(line.cells[c]));
}

std::string table_html(const Table& table) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th class=\"{}\" title=\"{}\">{}</th>",
                       column.right_aligned && !column.bar ? "right" : "",
                       html_escaped(column.meaning), html_escaped(column.heading));
  }
  out += "</tr></thead><tbody>\n";
  bool references = false;
  for (const TableLine& line : table.lines) {
    if (!line.group.empty()) {
      references = true;  // told by their look and their place at each group's end
      out += fmt::format("<tr class=\"rule\"><td colspan=\"{}\"><b>{}</b></td></tr>\n",
                         table.columns.size(), html_escaped(line.group));
    }
    if (line.reference && !references) {
      references = true;
      out += fmt::format("<tr class=\"rule\"><td colspan=\"{}\">references, no arms</td></tr>\n",
                         table.columns.size());
    }
    out += line.reference ? "<tr class=\"reference\">" : "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) out += cell(table.columns[c], line, c);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string pairs(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string out = "<div class=\"scroll\"><table class=\"pairs\"><tbody>\n";
  for (const auto& [name, value] : rows) {
    out +=
        fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_escaped(name), html_escaped(value));
  }
  return out + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_escaped(summary),
                     content);
}

std::string pictures_html(const ReportModel& model, const std::vector<Picture>& pictures,
                          const std::vector<std::string>& notes) {
  if (pictures.empty() && notes.empty()) return {};
  std::string out = "<h2>Pictures</h2>\n<div class=\"pictures\">\n";
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    out += fmt::format(
        "<figure><div class=\"scroll\">{}</div><figcaption>{} &middot; record "
        "<code>{:.16}</code> &middot; source and data: plots/{}.gp, plots/{}.dat"
        "</figcaption></figure>\n",
        inline_svg(picture.svg, fmt::format("p{}-", i), picture.title), html_escaped(picture.title),
        html_escaped(model.verdict_hash), html_escaped(picture.name), html_escaped(picture.name));
  }
  out += "</div>\n";
  for (const std::string& note : notes) {
    out += fmt::format("<p class=\"question\">Not drawn: {}.</p>\n", html_escaped(note));
  }
  return out;
}

std::string details_html(const ReportModel& model, const Content& content) {
  std::string meanings = "<ul>\n";
  for (const Column& column : content.table.columns) {
    if (column.bar) continue;
    meanings += fmt::format("<li><b>{}</b>: {}</li>\n", html_escaped(column.heading),
                            html_escaped(column.meaning));
  }
  std::string out = folded("What the columns mean", meanings + "</ul>\n");
  std::string unknowns;
  for (const std::string& unknown : content.unknowns) {
    unknowns += fmt::format("<li>{}</li>\n", html_escaped(unknown));
  }
  if (!unknowns.empty()) {
    out += folded("What is not known, and why", "<ul>\n" + unknowns + "</ul>\n");
  }
  out += folded(fmt::format("All {} trials", model.trials.size()), table_html(content.trials));
  std::string settings;
  for (const Row& row : model.rows) {
    for (const Trial& trial : model.trials) {
      if (trial.arm != row.arm || trial.settings.empty()) continue;
      settings +=
          fmt::format("<p><b>{}</b></p>\n{}", html_escaped(row_title(row)), pairs(trial.settings));
      break;
    }
  }
  if (!settings.empty()) out += folded("Settings of the stores, read back", settings);
  if (!model.plan.empty()) out += folded("Plan", pairs(model.plan));
  if (!model.provenance.empty()) out += folded("Environment", pairs(model.provenance));
  return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string html_escaped(const std::string& text) {
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
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string statements_html(const std::vector<Statement>& statements) {
  static constexpr const char* kClasses[] = {"better", "worse", "same", "open", "bad"};
  std::string out = "<ul class=\"statements\">\n";
  for (const Statement& statement : statements) {
    out += fmt::format("<li class=\"{}\"><span class=\"mark\">{}</span><b>{}</b>",
                       kClasses[static_cast<std::size_t>(statement.tone)],
                       html_escaped(statement.mark), html_escaped(statement.sentence));
    if (!statement.detail.empty()) {
      out += fmt::format("<small>{}</small>", html_escaped(statement.detail));
    }
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

std::string inline_svg(const std::string& svg, const std::string& prefix,
                       const std::string& label) {
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos) return {};
  std::string out = svg.substr(begin);
  while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back())) != 0) out.pop_back();
  for (const char* quote : {"'", "\""}) {
    const std::string mark(quote);
    replace_all(out, " id=" + mark, " id=" + mark + prefix);
    replace_all(out, "href=" + mark + "#", "href=" + mark + "#" + prefix);
  }
  replace_all(out, "url(#", "url(#" + prefix);
  out.insert(4, fmt::format(" role=\"img\" aria-label=\"{}\"", html_escaped(label)));
  return out;
}

std::string html_report(const ReportModel& model, const std::vector<Picture>& pictures,
                        const std::vector<std::string>& notes) {
  const Content content = make_content(model);
  const bool registered = model.status == "registered";
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}: {}</title>\n<style>{}</style></head>\n<body>\n",
      html_escaped(content.title), html_escaped(content.headline), kPageStyle);
  out += fmt::format(
      "<header><span class=\"stamp{}\">{}</span><h1>{}</h1>"
      "<p class=\"question\">{}</p></header>\n<p class=\"headline\">{}</p>\n",
      registered ? " registered" : "", html_escaped(content.stamp), html_escaped(content.title),
      html_escaped(content.question), html_escaped(content.headline));
  out += table_html(part_of(content.table, false)) + table_html(part_of(content.table, true));
  if (!content.comparisons.empty())
    out += "<h2>Comparisons</h2>\n" + statements_html(content.comparisons);
  out += "<h2>Checks</h2>\n" + statements_html(content.checks);
  if (!content.warnings.empty()) {
    std::vector<Statement> warnings;
    for (const std::string& warning : content.warnings) {
      warnings.push_back({Tone::bad, "!", warning, ""});
    }
    out += "<h2>Warnings</h2>\n" + statements_html(warnings);
  }
  out += pictures_html(model, pictures, notes);
  out += "<h2>Record</h2>\n" + pairs(content.facts);
  out += "<h2>Repeat and check</h2>\n<pre>";
  for (const std::string& command : content.commands) out += html_escaped(command) + "\n";
  out += "</pre>\n" + details_html(model, content);
  return out + "</body></html>\n";
}

}  // namespace assay::report
