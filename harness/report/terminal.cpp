#include "harness/report/terminal.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/report/content.h"

namespace assay::report {
namespace {

constexpr unsigned kBarCells = 10;

class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string bold(const std::string& text) const { return wrap("1", text); }
  [[nodiscard]] std::string faint(const std::string& text) const { return wrap("2", text); }
  [[nodiscard]] std::string tone(Tone tone, const std::string& text) const {
    static constexpr const char* kCodes[] = {"1;32", "1;31", "1;36", "1;33", "1;35"};
    return wrap(kCodes[static_cast<std::size_t>(tone)], text);
  }

 private:
  [[nodiscard]] std::string wrap(const char* code, const std::string& text) const {
    return colour_ ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }
  bool colour_;
};

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + text : text + space;
}

std::string repeated(const std::string& cell, std::size_t times) {
  std::string line;
  for (std::size_t i = 0; i < times; ++i) line += cell;
  return line;
}

/// Words of `text` in lines of at most `width`, later lines indented by `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t used = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, end - begin);
    const std::size_t size = display_width(word);
    if (used > indent && used + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      out += ' ';
      ++used;
    }
    out += word;
    used += size;
    begin = end + 1;
  }
  return out;
}

struct SetTable {
  const Table& table;
  std::vector<std::size_t> widths;
};

SetTable measure(const Table& table) {
  SetTable set{table, {}};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].heading);
    for (const TableLine& line : table.lines) {
      width = std::max(width, display_width(printable(line.cells[c])));
    }
    set.widths.push_back(table.columns[c].bar ? kBarCells : width);
  }
  return set;
}

void add_line(const SetTable& set, const std::vector<std::size_t>& columns, const TableLine* line,
              std::string& out) {
  std::string text;
  for (const std::size_t c : columns) {
    const Column& column = set.table.columns[c];
    std::string cell = line == nullptr ? column.heading : printable(line->cells[c]);
    if (line != nullptr && column.bar) cell = text_bar(line->bar, kBarCells);
    if (!text.empty()) text += "  ";
    text += padded(cell, set.widths[c], column.right_aligned);
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  out += text;
}

/// Columns that fit side by side; every group begins with the first column.
std::vector<std::vector<std::size_t>> groups_of(const SetTable& set, std::size_t width) {
  std::vector<std::vector<std::size_t>> groups{{0}};
  std::size_t used = set.widths[0];
  for (std::size_t c = 1; c < set.widths.size(); ++c) {
    if (used + 2 + set.widths[c] > width && groups.back().size() > 1) {
      groups.push_back({0});
      used = set.widths[0];
    }
    groups.back().push_back(c);
    used += 2 + set.widths[c];
  }
  return groups;
}

std::string render_table(const Table& table, const Paint& paint, unsigned width) {
  const SetTable set = measure(table);
  std::string out;
  for (const std::vector<std::size_t>& columns : groups_of(set, width)) {
    std::size_t total = 0;
    for (const std::size_t c : columns) total += set.widths[c] + (total == 0 ? 0 : 2);
    std::string heading;
    add_line(set, columns, nullptr, heading);
    out += paint.bold(heading) + "\n" + repeated("\u2500", total) + "\n";
    bool references = false;
    for (const TableLine& line : table.lines) {
      if (!line.group.empty()) {
        const std::string title = "\u2504\u2504 " + printable(line.group) + " ";
        const std::size_t used = display_width(title);
        out += paint.bold(title) +
               paint.faint(repeated("\u2504", total > used ? total - used : 0)) + "\n";
        references = true;  // told by their names and their place at each group's end
      }
      if (line.reference && !references) {
        out += paint.faint(padded("\u2504\u2504 references, no arms ", 0, false) +
                           repeated("\u2504", total > 24 ? total - 24 : 0)) +
               "\n";
        references = true;
      }
      add_line(set, columns, &line, out);
      out += "\n";
    }
    out += "\n";
  }
  return out;
}

void add_statements(const std::vector<Statement>& statements, const Paint& paint, unsigned width,
                    std::string& out) {
  for (const Statement& statement : statements) {
    out += "  " + paint.tone(statement.tone, statement.mark) + " " +
           paint.bold(wrapped(printable(statement.sentence), width, 4)) + "\n";
    if (statement.detail.empty()) continue;
    out += "    " + paint.faint(wrapped(printable(statement.detail), width, 4)) + "\n";
  }
}

}  // namespace

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // continuation bytes take no cell
  }));
}

std::string text_bar(double share, unsigned width) {
  static constexpr const char* kEighths[] = {"",       "\u258f", "\u258e", "\u258d",
                                             "\u258c", "\u258b", "\u258a", "\u2589"};
  if (share > 1.0) return repeated("\u2588", width - 1) + "\u25b6";
  const double clamped = std::max(share, 0.0);
  const auto eighths = static_cast<std::size_t>(std::lround(clamped * width * 8));
  return repeated("\u2588", eighths / 8) + kEighths[eighths % 8];
}

std::string terminal_report(const ReportModel& model, bool colour, unsigned columns) {
  const Content content = make_content(model);
  const Paint paint(colour);
  const unsigned width = std::max(columns, 40U);
  std::string out;
  const Tone stamp = model.status == "registered" ? Tone::same : Tone::open;
  out += paint.bold(printable(content.title)) + "  " + paint.tone(stamp, content.stamp) + "\n";
  out += wrapped(printable(content.question), width, 0) + "\n\n";
  out += paint.bold(wrapped(printable(content.headline), width, 0)) + "\n\n";
  out += render_table(content.table, paint, width);
  if (!content.comparisons.empty()) out += "Comparisons\n";
  add_statements(content.comparisons, paint, width, out);
  out += "Checks\n";
  add_statements(content.checks, paint, width, out);
  if (!content.warnings.empty()) out += "Warnings\n";
  for (const std::string& warning : content.warnings) {
    out += "  " + paint.tone(Tone::bad, "!") + " " + wrapped(printable(warning), width, 4) + "\n";
  }
  if (!content.unknowns.empty()) out += "Not known\n";
  for (const std::string& unknown : content.unknowns) {
    out += "  ? " + paint.faint(wrapped(printable(unknown), width, 4)) + "\n";
  }
  out += "\n";
  std::size_t longest = 0;
  for (const auto& [name, value] : content.facts) longest = std::max(longest, name.size());
  for (const auto& [name, value] : content.facts) {
    out += paint.faint(padded(name, longest, false)) + "  " + printable(value) + "\n";
  }
  return out;
}

}  // namespace assay::report
