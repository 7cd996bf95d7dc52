// The terminal behind standard output: its width, and texts and tables that fit it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

/// Of the terminal; without one, or where it does not say, what COLUMNS says; else 80 on a terminal
/// and 100 elsewhere.
[[nodiscard]] unsigned terminal_columns();
/// Standard output is a terminal and the user has not asked for no colour (NO_COLOR).
[[nodiscard]] bool wants_colour();
/// What no line should be wider than: the terminal's columns; kAnyWidth where there is none, so
/// that a pipe gets one line a row.
[[nodiscard]] std::size_t line_width();

enum class Heading : bool { none, first_row };
/// text_table.h's table for standard output, its heading bold on a terminal.
void print_table(const std::vector<std::vector<std::string>>& rows,
                 Heading heading = Heading::first_row);
/// `before` and then `text`, wrapped on a terminal under an indent of `indent` blanks.
void print_hanging(std::string_view before, std::string_view text, std::size_t indent);

}  // namespace assay::cli
