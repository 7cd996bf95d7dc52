#include "harness/cli/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "harness/cli/text_table.h"
#include "harness/report/terminal.h"

namespace assay::cli {

unsigned terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  if (given > 0) return static_cast<unsigned>(given);
  return ::isatty(STDOUT_FILENO) != 0 ? 80 : 100;
}

bool wants_colour() {
  return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

std::size_t line_width() {
  return ::isatty(STDOUT_FILENO) != 0 ? terminal_columns() : kAnyWidth;
}

void print_table(const std::vector<std::vector<std::string>>& rows, Heading heading) {
  const TableStyle style{
      .width = line_width(), .heading = heading == Heading::first_row, .bold = wants_colour()};
  fmt::print("{}", table_text(rows, style));
}

void print_hanging(std::string_view before, std::string_view text, std::size_t indent) {
  const std::size_t used = report::display_width(std::string(before));
  fmt::print("{}{}\n", before, hanging_text(text, used, indent, line_width()));
}

}  // namespace assay::cli
