// What a report says of a sweep.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/report/content.h"
#include "harness/report/figures.h"
#include "harness/report/markdown.h"
#include "harness/report/record_reading.h"
#include "harness/report/sweep.h"
#include "harness/report/terminal.h"

namespace assay::report {
namespace {

using nlohmann::json;

json row(const std::string& arm, const std::string& cell, double value, double bytes,
         bool reference = false) {
  return {{"arm", arm + "@" + cell},
          {"cell", cell},
          {"store", arm},
          {"version", "1"},
          {"durability", "power"},
          {"proof", "declared"},
          {"reference", reference},
          {"n", 3},
          {"values", {value, value * 1.1, value * 0.9}},
          {"value", value},
          {"geometric_mean", value},
          {"interval", {value * 0.8, value * 1.2}},
          {"disk_bytes_per_entry", bytes}};
}

json comparison(const std::string& cell, const std::string& verdict) {
  return {{"a", "lode@" + cell}, {"b", "lmdb@" + cell}, {"kind", "superiority"},
          {"cell", cell},        {"verdict", verdict},  {"declared", false}};
}

/// Two sizes and two budgets: lode leads where values are small.
json verdict() {
  json made = {
      {"result", "r"},
      {"experiment", "sizes"},
      {"status", "registered"},
      {"outcome", "judged"},
      {"design", "windows"},
      {"metric", "throughput"},
      {"unit", "operations/s"},
      {"workload", "durable-put"},
      {"n", 3},
      {"a_a", nullptr},
      {"positive_control", nullptr},
      {"sweep",
       {{{"key", "workload.memory_bytes"}, {"label", "memory_bytes"}, {"values", {64, 128}}},
        {{"key", "workload.values.bytes"}, {"label", "bytes"}, {"values", {16, 4096}}}}}};
  for (const int memory : {64, 128}) {
    for (const int bytes : {16, 4096}) {
      const std::string cell =
          "memory_bytes=" + std::to_string(memory) + ",bytes=" + std::to_string(bytes);
      const bool small = bytes == 16;
      made["cells"].push_back(
          {{"name", cell},
           {"values", {{"workload.memory_bytes", memory}, {"workload.values.bytes", bytes}}},
           {"stream_digest", small ? "small" : "large"},
           {"a_a",
            {{"a", "lode@" + cell},
             {"b", "lode-again@" + cell},
             {"ok", memory == 64},
             {"sentence", "the same arm twice"}}},
           {"positive_control", nullptr}});
      made["rows"].push_back(row("lmdb", cell, small ? 1000 : 900, 260));
      made["rows"].push_back(row("lode", cell, small ? 2000 : 800, 120));
      made["rows"].push_back(row("raw-file", cell, 3000, 100, true));
      made["comparisons"].push_back(comparison(cell, memory == 64 ? "superior" : "void"));
    }
  }
  return made;
}

ReportModel model() {
  ReportModel made;
  read_verdict(verdict(), made);
  made.verdict_hash = std::string(64, 'c');
  made.verdict_time = "2026-01-02T12:00:00Z";
  return made;
}

TEST(SweepReport, orders_rows_by_cell_and_best_first_within_one) {
  const Table table = make_content(model()).table;
  ASSERT_EQ(table.lines.size(), 12U);
  EXPECT_EQ(table.lines[0].group, "memory_bytes=64,bytes=16");
  EXPECT_EQ(table.lines[0].cells[0], "lode 1");
  EXPECT_EQ(table.lines[1].group, "");
  EXPECT_TRUE(table.lines[2].reference);
  EXPECT_EQ(table.lines[3].group, "memory_bytes=64,bytes=4096");
  EXPECT_EQ(table.lines[3].cells[0], "lmdb 1");
}

TEST(SweepReport, says_what_is_best_where_what_was_shown_and_what_is_not_judged) {
  const std::string headline = sweep_headline(model());
  EXPECT_NE(headline.find("lode in 2 of 4 (memory_bytes=64,bytes=16, memory_bytes=128,bytes=16), "
                          "shown ahead of every other arm in 1"),
            std::string::npos)
      << headline;
  EXPECT_NE(headline.find("lmdb in 2 of 4"), std::string::npos) << headline;
  EXPECT_NE(headline.find("Not judged: memory_bytes=128,bytes=16, memory_bytes=128,bytes=4096."),
            std::string::npos)
      << headline;
}

TEST(SweepReport, names_every_cell_in_every_format) {
  for (const std::string& text :
       {terminal_report(model(), false, 200), markdown_report(model(), {}, {})}) {
    EXPECT_NE(text.find("bytes=4096"), std::string::npos);
    EXPECT_EQ(text.find("references, no arms"), std::string::npos);
    EXPECT_NE(text.find("the claims of this cell are NOT judged"), std::string::npos);
  }
}

TEST(SweepReport, draws_a_curve_for_each_value_of_the_other_axis) {
  const plots::FigureSet set = figure_set(model());
  EXPECT_TRUE(set.swept);
  ASSERT_EQ(set.curves.size(), 4U);
  EXPECT_EQ(set.curves[0].key, "memory_bytes");
  EXPECT_EQ(set.curves[0].held, "bytes=16");
  EXPECT_EQ(set.curves[3].held, "memory_bytes=128");
  ASSERT_EQ(set.curves[3].curves.size(), 3U);
  EXPECT_EQ(set.curves[3].curves[0].points[1].x, 4096.0);
}

TEST(SweepReport, holds_only_cells_of_the_same_work_against_each_other) {
  const plots::FigureSet set = figure_set(model());
  ASSERT_EQ(set.tradeoffs.size(), 2U);
  ASSERT_EQ(set.tradeoffs[0].groups.size(), 2U);  // small and large values
  const plots::Tradeoff& small = set.tradeoffs[0].groups[0];
  EXPECT_EQ(small.work, "bytes=16");
  ASSERT_EQ(small.points.size(), 4U);  // two arms under two budgets; the reference is no rival
  EXPECT_EQ(small.points[0].cell, "memory_bytes=64");
  EXPECT_TRUE(set.tradeoffs[1].groups.empty());  // write amplification is not known
}

TEST(SweepReport, marks_cells_in_pictures_that_were_not_judged) {
  const plots::FigureSet set = figure_set(model());
  EXPECT_EQ(set.curves[0].not_judged, std::vector<double>{128.0});  // over memory_bytes
  EXPECT_TRUE(set.curves[2].not_judged.empty());                    // over bytes, at 64
  EXPECT_EQ(set.curves[3].not_judged, (std::vector<double>{16.0, 4096.0}));
  const plots::Tradeoff& small = set.tradeoffs[0].groups[0];
  std::size_t marked = 0;
  for (const auto& point : small.points)
    marked += point.cell == "memory_bytes=128 (not judged)" ? 1 : 0;
  EXPECT_EQ(marked, 2U);
}

}  // namespace
}  // namespace assay::report
