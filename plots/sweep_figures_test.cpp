// Figures of sweeps and of histories: what is marked, what is the same bytes, what names a record.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "plots/figure.h"

namespace assay::plots {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

SweepCurve curve(const std::string& store, double first) {
  SweepCurve made{store, store, false, {}};
  for (const double x : {16.0, 128.0, 1024.0}) {
    const double y = first / (1.0 + x / 512.0);
    made.points.push_back({x, y, y * 0.95, y * 1.05, {y * 0.97, y * 1.03}});
  }
  return made;
}

FigureSet sweep() {
  FigureSet set;
  set.stamp = {"sizes", "durable-put", "registered", "2026-01-02", std::string(64, 'b'),
               6,       0.95,          false,        "a point"};
  set.metric = "throughput";
  set.unit = "operations/s";
  set.swept = true;
  set.curves = {{"bytes", "", {}, {curve("sqlite", 1000), curve("lmdb", 1500)}}};
  Tradeoff group{"bytes=16", {}};
  group.points = {{"sqlite", "sqlite", "", 150, 1000, 950, 1050},
                  {"lmdb", "lmdb", "", 260, 1500, 1400, 1600},
                  {"rocksdb", "rocksdb", "", 300, 900, {}, {}}};
  set.tradeoffs = {{"space", "bytes on disk an entry", {group}}};
  return set;
}

FigureSet history() {
  FigureSet set = sweep();
  set.swept = false;
  History made{"lode", "lode", "throughput", 1.1, {}};
  const double values[] = {1000, 1010, 700, 705};
  for (std::size_t i = 0; i < 4; ++i) {
    made.points.push_back({"r" + std::to_string(i), "c0ffee" + std::to_string(i), "2026-01-02",
                           std::string(64, static_cast<char>('0' + i)), 5, values[i],
                           values[i] * 0.98, values[i] * 1.02, i == 2, i == 1});
  }
  set.histories = {made};
  return set;
}

class SweepFigures : public ::testing::Test {
 protected:
  /// Source, data and both pictures; the source alone gives the same picture again.
  void expect_complete(const std::string& name, const std::string& hash) {
    for (const char* suffix : {".gp", ".dat", ".png", ".svg"}) {
      EXPECT_TRUE(fs::exists(directory_ / (name + suffix))) << name << suffix;
    }
    const std::string svg = bytes_of(directory_ / (name + ".svg"));
    EXPECT_NE(svg.find("record " + hash.substr(0, 12)), std::string::npos) << name;
    fs::remove(directory_ / (name + ".svg"));
    const std::string again = "cd '" + directory_.string() + "' && gnuplot -d " + name + ".gp";
    EXPECT_EQ(std::system(again.c_str()), 0);
    EXPECT_EQ(bytes_of(directory_ / (name + ".svg")), svg) << name;
  }
  const TemporaryDirectory own_;
  const fs::path directory_{own_.path()};
};

TEST_F(SweepFigures, of_a_sweep_are_its_curves_and_its_tradeoffs_and_name_the_record) {
  const auto drawn = draw_figures(sweep(), directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  ASSERT_EQ(drawn->figures.size(), 2U);
  EXPECT_TRUE(drawn->notes.empty()) << drawn->notes.front();
  expect_complete("throughput-over-bytes", std::string(64, 'b'));
  expect_complete("pareto-space", std::string(64, 'b'));
}

TEST_F(SweepFigures, have_a_logarithmic_axis_where_values_span_more_than_a_decade) {
  FigureSet set = sweep();
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  const fs::path source = directory_ / "throughput-over-bytes.gp";
  EXPECT_NE(bytes_of(source).find("set logscale x"), std::string::npos);
  for (SweepCurve& one : set.curves[0].curves) one.points.pop_back();  // 16 and 128
  for (SweepCurve& one : set.curves[0].curves) one.points[1].x = 100;
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  EXPECT_EQ(bytes_of(source).find("set logscale x"), std::string::npos);
}

TEST_F(SweepFigures, mark_where_nothing_was_judged) {
  FigureSet set = sweep();
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  const fs::path picture = directory_ / "throughput-over-bytes.svg";
  EXPECT_EQ(bytes_of(picture).find("not judged"), std::string::npos);
  set.curves[0].not_judged = {128};
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  EXPECT_NE(bytes_of(picture).find("Grey line: not judged."), std::string::npos);
  EXPECT_NE(bytes_of(directory_ / "throughput-over-bytes.gp").find("d5d8dc"), std::string::npos);
}

TEST_F(SweepFigures, are_drawn_where_nothing_cost_anything) {
  FigureSet set = sweep();
  for (Tradeoff& group : set.tradeoffs[0].groups) {
    for (Tradeoff::Point& point : group.points) point.cost = 0;  // stores that write nothing
  }
  const auto drawn = draw_figures(set, directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  EXPECT_TRUE(drawn->notes.empty()) << drawn->notes.front();
}

TEST_F(SweepFigures, mark_what_nothing_beats_in_both) {
  ASSERT_TRUE(draw_figures(sweep(), directory_.string()));
  const std::string data = bytes_of(directory_ / "pareto-space.dat");
  EXPECT_NE(data.find("150 1000 950 1050 1 'sqlite'"), std::string::npos) << data;
  EXPECT_NE(data.find("260 1500 1400 1600 1 'lmdb'"), std::string::npos) << data;
  EXPECT_NE(data.find("300 900 900 900 0 'rocksdb'"), std::string::npos) << data;
}

TEST_F(SweepFigures, of_a_latency_take_less_for_better) {
  FigureSet set = sweep();
  set.less_is_better = true;
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  const std::string data = bytes_of(directory_ / "pareto-space.dat");
  EXPECT_NE(data.find("260 1500 1400 1600 0 'lmdb'"), std::string::npos) << data;
}

TEST_F(SweepFigures, of_words_draw_no_line_between_them) {
  FigureSet set = sweep();
  set.curves[0].words = {"off", "normal", "full"};
  for (SweepCurve& one : set.curves[0].curves) {
    for (std::size_t i = 0; i < 3; ++i) one.points[i].x = static_cast<double>(i);
  }
  const auto drawn = draw_figures(set, directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  const std::string source = bytes_of(directory_ / "throughput-over-bytes.gp");
  EXPECT_EQ(source.find("with lines"), std::string::npos);
  EXPECT_NE(source.find("'normal' 1"), std::string::npos);
}

TEST_F(SweepFigures, of_many_groups_go_on_to_another_picture) {
  FigureSet set = sweep();
  set.tradeoffs[0].groups.resize(7, set.tradeoffs[0].groups[0]);
  const auto drawn = draw_figures(set, directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  expect_complete("pareto-space", std::string(64, 'b'));
  expect_complete("pareto-space-2", std::string(64, 'b'));
}

TEST_F(SweepFigures, of_a_history_mark_the_change_and_name_every_record) {
  const auto drawn = draw_figures(history(), directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  ASSERT_EQ(drawn->figures.size(), 1U);
  expect_complete("history-lode", std::string(64, 'b'));
  EXPECT_NE(bytes_of(directory_ / "history-lode.svg").find("c0ffee2 changed it: 0.697x"),
            std::string::npos);
  const std::string data = bytes_of(directory_ / "history-lode.dat");
  for (char digit = '0'; digit < '4'; ++digit) {
    EXPECT_NE(data.find(std::string(64, digit)), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::plots
