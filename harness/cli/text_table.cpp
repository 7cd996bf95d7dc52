#include "harness/cli/text_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "adapters/result.h"
#include "harness/report/terminal.h"

namespace assay::cli {
namespace {

using report::display_width;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kGap = 2;
constexpr std::size_t kLongestWordKept = 24;  ///< a longer one (a hash, a path) may be broken
constexpr std::size_t kLeastColumn = 8;

bool continues_a_letter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// Bytes of the first `cells` characters.
std::size_t bytes_of(std::string_view text, std::size_t cells) {
  std::size_t at = 0;
  while (at < text.size() && (cells > 0 || continues_a_letter(text[at]))) {
    if (!continues_a_letter(text[at])) --cells;
    ++at;
  }
  return at;
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, display_width(std::string(text.substr(0, end))));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return longest;
}

std::size_t sum(const std::vector<std::size_t>& widths) {
  std::size_t total = widths.empty() ? 0 : kGap * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  return total;
}

/// Widths of the columns within `limit`, no column below what `least` says; the widest give first.
bool fit(std::vector<std::size_t>& widths, const std::vector<std::size_t>& least,
         std::size_t limit) {
  for (std::size_t total = sum(widths); total > limit; --total) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= least[i]) continue;
      if (widest == widths.size() || widths[i] >= widths[widest]) widest = i;
    }
    if (widest == widths.size()) return false;
    --widths[widest];
  }
  return true;
}

void add_row(const std::vector<std::string>& row, const std::vector<std::size_t>& widths, bool bold,
             std::string& out) {
  std::vector<std::vector<std::string>> cells;
  std::size_t lines = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells.push_back(wrapped_lines(row[i], widths[i]));
    lines = std::max(lines, cells.back().size());
  }
  for (std::size_t l = 0; l < lines; ++l) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = l < cells[i].size() ? cells[i][l] : "";
      line += cell;
      if (i + 1 == cells.size()) break;
      line += std::string(widths[i] - std::min(widths[i], display_width(cell)) + kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += bold ? fmt::format("\033[1m{}\033[0m\n", line) : line + "\n";
  }
}

std::string as_blocks(const Rows& rows, const TableStyle& style) {
  std::size_t names = 0;
  for (const std::string& name : rows[0]) names = std::max(names, display_width(name));
  std::string out;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (r > 1) out += "\n";
    for (std::size_t i = 0; i < rows[r].size() && i < rows[0].size(); ++i) {
      std::string name = printable(rows[0][i]);
      name += std::string(names - std::min(names, display_width(name)) + kGap, ' ');
      out += style.bold ? fmt::format("\033[1m{}\033[0m", name) : name;
      out += hanging_text(rows[r][i], names + kGap, names + kGap, style.width) + "\n";
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width) {
  std::string left = printable(text);
  std::vector<std::string> lines;
  width = std::max<std::size_t>(width, 1);
  while (display_width(left) > width) {
    const std::size_t room = bytes_of(left, width);
    // The blank may stand just behind the last cell.
    const std::size_t blank = left.rfind(' ', room);
    const bool at_blank = blank != std::string::npos && blank > 0;
    std::string line = left.substr(0, at_blank ? blank : room);
    left.erase(0, at_blank ? blank + 1 : room);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  lines.push_back(std::move(left));
  return lines;
}

std::string hanging_text(std::string_view text, std::size_t used, std::size_t indent,
                         std::size_t width) {
  constexpr std::size_t kLeastRoom = 20;  // beside whatever stands before it
  const auto room = [width](std::size_t before) {
    return width == kAnyWidth ? width : std::max(width, before + kLeastRoom) - before;
  };
  const std::string shown = printable(text);
  std::string out = wrapped_lines(shown, room(used)).front();
  const std::size_t next = shown.find_first_not_of(' ', out.size());
  if (next == std::string::npos) return out;
  for (const std::string& line : wrapped_lines(shown.substr(next), room(indent))) {
    out += "\n" + std::string(indent, ' ') + line;
  }
  return out;
}

std::string table_text(const Rows& rows, const TableStyle& style) {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> words;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    words.resize(widths.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string shown = printable(row[i]);
      widths[i] = std::max(widths[i], display_width(shown));
      words[i] = std::max(words[i], std::min(longest_word(shown), kLongestWordKept));
    }
  }
  // The first column names the row: that is what gets copied.
  if (!words.empty()) words[0] = std::min(widths[0], std::max(words[0], style.width / 2));
  if (!fit(widths, words, style.width)) {
    if (style.heading && rows.size() > 1) return as_blocks(rows, style);
    (void)fit(widths, std::vector<std::size_t>(widths.size(), kLeastColumn), style.width);
  }
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    add_row(rows[r], widths, style.bold && style.heading && r == 0, out);
  }
  return out;
}

}  // namespace assay::cli
