// What a report says, before it is set for a terminal, as Markdown or as HTML: every format
// renders this and adds nothing, so no format can leave a loss out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/report/model.h"

namespace assay::report {

struct Column {
  std::string heading;
  std::string meaning;  ///< one sentence for people who see the heading for the first time
  bool right_aligned = true;
  bool bar = false;   ///< shows TableLine::bar instead of its cells
  bool cost = false;  ///< what the figure cost, for pages that set two tables
};

struct TableLine {
  std::vector<std::string> cells;
  double bar = 0.0;        ///< share of the longest bar, 0 to 1; above 1: beyond the end
  bool reference = false;  ///< belongs below the rule
  std::string group = {};  ///< title of the lines from here on; such tables have no rule
};

struct Table {
  std::vector<Column> columns;
  std::vector<TableLine> lines;  ///< references last
};

/// The first column and those with `cost` as given: a page is not wide enough for all at once.
[[nodiscard]] Table part_of(const Table& table, bool cost);

/// Tone decides the mark and colour, never the size: a loss is as loud as a win.
enum class Tone : std::uint8_t { better, worse, same, open, bad };

struct Statement {
  Tone tone = Tone::open;
  std::string mark;  ///< one character that stands for the tone without colour
  std::string sentence;
  std::string detail;  ///< the test and its numbers
};

struct Content {
  std::string title;
  std::string stamp;  ///< "REGISTERED", "EXPLORATORY", with "MIXED DURABILITY" where it is so
  std::string question;
  std::string headline;  ///< the verdict in a sentence
  Table table;
  std::vector<Statement> comparisons;
  std::vector<Statement> checks;  ///< A/A, smallest effect, disqualified arms, void trials
  std::vector<std::string> warnings;
  std::vector<std::string> unknowns;                       ///< figures that are not known, and why
  std::vector<std::pair<std::string, std::string>> facts;  ///< result, n, unit, where, hashes
  std::vector<std::string> commands;                       ///< to repeat and to check
  Table trials;
};

[[nodiscard]] Content make_content(const ReportModel& model);

}  // namespace assay::report
