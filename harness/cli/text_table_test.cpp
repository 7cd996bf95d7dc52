#include "harness/cli/text_table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "harness/report/terminal.h"

namespace assay::cli {
namespace {

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, report::display_width(line));
  }
  return widest;
}

TEST(TextTable, is_one_line_a_row_where_it_fits) {
  EXPECT_EQ(table_text({{"STORE", "CAN"}, {"lmdb", "scans, batches"}}, {}),
            "STORE  CAN\nlmdb   scans, batches\n");
  EXPECT_EQ(table_text({{"A", "B"}, {"1", "2"}}, {.width = 4, .bold = true}),
            "\033[1mA  B\033[0m\n1  2\n");
}

TEST(TextTable, wraps_the_widest_column_at_blanks_and_loses_nothing) {
  EXPECT_EQ(table_text({{"STORE", "CAN"}, {"lmdb", "scans, batches, rollback"}}, {.width = 24}),
            "STORE  CAN\nlmdb   scans, batches,\n       rollback\n");
  const std::string text = table_text({{"STORE", "VERSION", "CAN", "CANNOT"},
                                       {"sqlite", "3.40.1", std::string(30, 'a') + " bb cc", "dd"}},
                                      {.width = 40});
  EXPECT_LE(widest_line(text), 40U);
  EXPECT_NE(text.find("bb cc"), std::string::npos) << text;
}

TEST(TextTable, becomes_blocks_where_its_words_do_not_fit_side_by_side) {
  const std::string text = table_text(
      {{"RESULT", "STATUS", "VERDICTS"}, {"20261130T1900", "exploratory", "1 inconclusive"}},
      {.width = 30});
  EXPECT_EQ(text, "RESULT    20261130T1900\nSTATUS    exploratory\nVERDICTS  1 inconclusive\n");
  EXPECT_LE(widest_line(text), 30U);
}

TEST(TextTable, without_a_heading_never_becomes_blocks) {
  const std::string text = table_text({{"ycsb-a", "half reads, half updates, zipfian"}},
                                      {.width = 24, .heading = false});
  EXPECT_EQ(text, "ycsb-a  half reads, half\n        updates, zipfian\n");
}

TEST(TextTable, counts_characters_and_shows_control_characters) {
  EXPECT_EQ(wrapped_lines("\xc3\xa4\xc3\xa4\xc3\xa4", 2),
            (std::vector<std::string>{"\xc3\xa4\xc3\xa4", "\xc3\xa4"}));
  EXPECT_EQ(wrapped_lines("a\033b", 80), std::vector<std::string>{"a\\x1bb"});
  EXPECT_EQ(wrapped_lines("", 10), std::vector<std::string>{""});
}

TEST(TextTable, hangs_later_lines_under_an_indent) {
  EXPECT_EQ(hanging_text("one two three four five six seven", 10, 4, 30),
            "one two three four\n    five six seven");
  EXPECT_EQ(hanging_text("as it is", 10, 4, kAnyWidth), "as it is");
}

}  // namespace
}  // namespace assay::cli
