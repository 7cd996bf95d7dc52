// Tables and paragraphs for people: pure functions of their contents and of a width.
//
// A table that fits is one line a row. One that does not has its widest columns wrapped at blanks,
// and where even their longest words do not fit side by side, each row becomes a block of "heading
// value" lines. Nothing is cut. Stateless; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

/// No limit: for a pipe, whose reader wants one line a row.
inline constexpr std::size_t kAnyWidth = static_cast<std::size_t>(-1);

/// `text` in lines of at most `width` cells, broken at blanks; a word that is wider is broken
/// anywhere. Always one line or more. Control characters are shown as such.
[[nodiscard]] std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width);

/// Those lines, the later ones after `indent` blanks; no line is wider than `width`, the first with
/// the `used` cells that stand before it. No line break at the end.
[[nodiscard]] std::string hanging_text(std::string_view text, std::size_t used, std::size_t indent,
                                       std::size_t width);

struct TableStyle {
  std::size_t width = kAnyWidth;
  bool heading = true;  ///< the first row names the columns
  bool bold = false;    ///< the heading, for a terminal
};

/// Each row on lines of its own, the last one ended too.
[[nodiscard]] std::string table_text(const std::vector<std::vector<std::string>>& rows,
                                     const TableStyle& style);

}  // namespace assay::cli
