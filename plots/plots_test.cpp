#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "plots/figure.h"
#include "plots/style.h"

namespace assay::plots {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

FigureSet two_arms() {
  FigureSet set;
  set.stamp = {"demo", "durable-put", "registered", "2026-01-02", std::string(64, 'a'),
               3,      0.95,          false};
  set.metric = "throughput";
  set.unit = "operations/s";
  Arm sqlite;
  sqlite.name = sqlite.store = "sqlite";
  sqlite.durability = "power (declared)";
  sqlite.centre = 1000;
  sqlite.low = 950;
  sqlite.high = 1050;
  sqlite.values = {960, 1000, 1040};
  sqlite.barriers_per_operation = 1;
  Arm null = sqlite;
  null.name = null.store = "null";
  null.reference = true;
  null.centre = null.low = null.high = 2e7;
  null.values = {2e7};
  set.arms = {sqlite, null};
  return set;
}

class Figures : public ::testing::Test {
 protected:
  const TemporaryDirectory own_;
  const fs::path directory_{own_.path()};
};

TEST_F(Figures, leave_source_data_and_both_pictures_and_nothing_else) {
  const Result<Drawn> drawn = draw_figures(two_arms(), directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"barriers.dat", "barriers.gp", "barriers.png",
                                          "barriers.svg", "throughput.dat", "throughput.gp",
                                          "throughput.png", "throughput.svg"}));
  EXPECT_EQ(drawn->notes.size(), 5U);  // latency, series, space, amplification, processor time
}

TEST_F(Figures, come_out_the_same_when_plain_gnuplot_runs_their_source) {
  ASSERT_TRUE(draw_figures(two_arms(), directory_.string()));
  const std::string svg = bytes_of(directory_ / "throughput.svg");
  fs::remove(directory_ / "throughput.svg");
  ASSERT_EQ(std::system(("cd '" + directory_.string() + "' && gnuplot -d throughput.gp").c_str()),
            0);
  EXPECT_EQ(bytes_of(directory_ / "throughput.svg"), svg);
}

TEST_F(Figures, name_record_status_and_n) {
  ASSERT_TRUE(draw_figures(two_arms(), directory_.string()));
  const std::string svg = bytes_of(directory_ / "throughput.svg");
  EXPECT_NE(svg.find("registered"), std::string::npos);
  EXPECT_NE(svg.find("n = 3"), std::string::npos);
  EXPECT_NE(svg.find("record aaaaaaaaaaaa"), std::string::npos);
  EXPECT_NE(svg.find("power (declared)"), std::string::npos);
}

TEST_F(Figures, of_latencies_leave_out_a_reference_far_below_every_arm_and_say_so) {
  FigureSet set = two_arms();
  set.arms[0].latencies = {{"update", {{0.5, 200e3}, {0.99, 900e3}}}};
  set.arms[1].latencies = {{"update", {{0.5, 20}, {0.99, 1'500}}}};
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  std::string data = bytes_of(directory_ / "latency-update.dat");
  EXPECT_NE(data.find("'sqlite'"), std::string::npos);
  EXPECT_EQ(data.find("'null'"), std::string::npos) << "the axis would be spent on the gap";
  EXPECT_NE(bytes_of(directory_ / "latency-update.svg").find("null lies below: at most 1.5"),
            std::string::npos);

  set.arms[0].latencies = {{"update", {{0.5, 200}, {0.99, 900e3}}}};
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  data = bytes_of(directory_ / "latency-update.dat");
  EXPECT_NE(data.find("'null'"), std::string::npos) << "they overlap: both are shown";
}

TEST_F(Figures, draw_arms_that_all_have_nothing_of_a_figure) {
  FigureSet set = two_arms();
  for (Arm& arm : set.arms) arm.barriers_per_operation = 0;  // reads, or a class without syncs
  const Result<Drawn> drawn = draw_figures(set, directory_.string());
  ASSERT_TRUE(drawn) << drawn.error().message();
  EXPECT_TRUE(fs::exists(directory_ / "barriers.svg"));
}

TEST_F(Figures, draw_a_name_with_markup_and_shell_signs_as_it_is) {
  FigureSet set = two_arms();
  set.arms[0].name = "a<b>&'\"`touch owned`$(touch owned)";
  ASSERT_TRUE(draw_figures(set, directory_.string()));
  EXPECT_FALSE(fs::exists(directory_ / "owned"));
  EXPECT_FALSE(fs::exists("owned"));
  const std::string svg = bytes_of(directory_ / "throughput.svg");
  EXPECT_NE(svg.find("a&lt;b>&amp;"), std::string::npos);
}

TEST_F(Figures, that_gnuplot_refuses_cost_no_other_figure) {
  const fs::path shim = directory_ / "bin" / "gnuplot";
  fs::create_directories(shim.parent_path());
  fs::create_directories(directory_ / "out");
  const std::string path = std::getenv("PATH");
  std::ofstream(shim)
      << "#!/bin/sh\nsource=$(cat)\ncase \"$source\" in *barriers*)\n"
         "  : >barriers.svg; printf '\\033[2Jplot it\\n^ line 3: no\\n' >&2; exit 1;;\n"
         "esac\nprintf '%s\\n' \"$source\" | PATH='" +
             path + "' gnuplot \"$@\"\n";
  fs::permissions(shim, fs::perms::owner_all);
  ::setenv("PATH", (shim.parent_path().string() + ":" + path).c_str(), 1);
  const Result<Drawn> drawn = draw_figures(two_arms(), (directory_ / "out").string());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(drawn) << drawn.error().message();
  ASSERT_EQ(drawn->figures.size(), 1U);
  EXPECT_EQ(drawn->figures[0].name, "throughput");
  EXPECT_TRUE(fs::exists(directory_ / "out" / "throughput.svg"));
  EXPECT_FALSE(fs::exists(directory_ / "out" / "barriers.svg"));
  EXPECT_TRUE(fs::exists(directory_ / "out" / "barriers.gp"));
  std::string note;
  for (const std::string& one : drawn->notes) {
    if (one.find("gnuplot says") != std::string::npos) note = one;
  }
  EXPECT_NE(note.find("line 3: no"), std::string::npos) << note;
  EXPECT_EQ(note.find('\n'), std::string::npos) << note;
  EXPECT_EQ(note.find('\033'), std::string::npos) << note;
}

TEST_F(Figures, are_an_error_when_gnuplot_draws_none_of_them) {
  const fs::path shim = directory_ / "bin" / "gnuplot";
  fs::create_directories(shim.parent_path());
  const std::string path = std::getenv("PATH");
  struct Case {
    const char* script;
    const char* message;
  };
  for (const Case& one : {Case{"exit 3", "gnuplot failed with status 3"},
                          Case{"sleep 1000", "gnuplot did not end within 1 s"}}) {
    std::ofstream(shim) << "#!/bin/sh\n" << one.script << "\n";
    fs::permissions(shim, fs::perms::owner_all);
    ::setenv("PATH", (shim.parent_path().string() + ":" + path).c_str(), 1);
    const Result<Drawn> drawn =
        draw_figures(two_arms(), directory_.string(), std::chrono::seconds(1));
    ::setenv("PATH", path.c_str(), 1);
    ASSERT_FALSE(drawn) << one.script;
    EXPECT_EQ(drawn.error().kind(), ErrorKind::environment);
    EXPECT_NE(drawn.error().message().find(one.message), std::string::npos)
        << drawn.error().message();
  }
}

TEST_F(Figures, without_gnuplot_say_what_to_install) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const Result<Drawn> drawn = draw_figures(two_arms(), directory_.string());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(drawn);
  EXPECT_EQ(drawn.error().kind(), ErrorKind::environment);
  EXPECT_NE(drawn.error().hint_text().find("gnuplot-nox"), std::string::npos);
}

TEST(Looks, keep_the_colour_of_a_store_whatever_its_company) {
  Arm sqlite;
  sqlite.store = "sqlite";
  Arm mine;
  mine.store = "my-store";
  const std::vector<Look> together = looks_of({mine, sqlite});
  EXPECT_EQ(together[1].colour, looks_of({sqlite})[0].colour);
  EXPECT_EQ(together[0].colour, looks_of({mine})[0].colour);
  EXPECT_NE(together[0].colour, together[1].colour);
}

TEST(Looks, tell_two_arms_of_one_store_apart) {
  Arm arm;
  arm.store = "sqlite";
  const std::vector<Look> looks = looks_of({arm, arm});
  EXPECT_EQ(looks[0].colour, looks[1].colour);
  EXPECT_NE(looks[0].dash, looks[1].dash);
  EXPECT_NE(looks[0].point, looks[1].point);
}

// gnuplot's SVG terminal ignores the dash type of an arrow, which the legend's samples are.
TEST(Looks, of_two_arms_of_one_store_differ_in_the_legend_too) {
  Arm arm;
  arm.store = "sqlite";
  const std::string text = legend({arm, arm}, looks_of({arm, arm}), {0, 1});
  const auto count = [&text](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("screen 0.8450 nohead"), 1U);  // solid: in one piece
  EXPECT_EQ(count("screen 0.8000 nohead"), 3U);  // broken
}

TEST(Axis, ends_at_a_round_number_above_the_data) {
  const Axis axis = linear_axis(1790, short_count);
  EXPECT_EQ(axis.high, 2000);
  EXPECT_EQ(axis.ticks.front().second, "0");
  EXPECT_EQ(axis.ticks.back().second, "2 k");
  EXPECT_LE(axis.ticks.size(), 7U);
}

TEST(Axis, covers_whole_decades) {
  const Axis axis = decade_axis(340, 2.1e6, short_time);
  EXPECT_EQ(axis.low, 100);
  EXPECT_EQ(axis.high, 1e7);
  EXPECT_EQ(axis.ticks.size(), 6U);
  EXPECT_EQ(axis.ticks[1].second, "1 \u00b5s");
}

TEST(Quoted, doubles_quotes_and_drops_control_characters) {
  EXPECT_EQ(gnuplot_quoted("it's\n`x`"), "'it''s `x`'");
}

TEST(FileName, cannot_leave_the_directory) {
  EXPECT_EQ(file_name("../P99 of read"), "---p99-of-read");
  EXPECT_EQ(file_name(""), "figure");
}

TEST(Shortened, cuts_between_characters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab\u2026");
  EXPECT_EQ(shortened("\u00b5\u00b5\u00b5\u00b5", 3), "\u00b5\u00b5\u2026");
}

}  // namespace
}  // namespace assay::plots
