#include "harness/experiment/progress.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

/// Standard error of a run, kept in memory.
class Screen {
 public:
  Screen() : file_(::open_memstream(&text_, &size_)) {}
  ~Screen() {
    std::fclose(file_);
    std::free(text_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  [[nodiscard]] std::FILE* file() const { return file_; }
  [[nodiscard]] std::string text() const {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

void run(ProgressLine& line) {
  line.run_begins("demo", 0, 2);
  line.trial_begins("sqlite");
  line.trial_progress({"run", 0.5});
  line.trial_ends("sqlite", 1, "ok", "");
  line.trial_begins("lmdb");
  line.trial_ends("lmdb", 1, "void", "killed");
  line.run_ends();
}

TEST(Progress, is_a_plain_line_a_trial_where_there_is_no_terminal) {
  const Screen screen;
  ProgressLine line(screen.file(), false);
  run(line);
  const std::string text = screen.text();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_NE(text.find("[1/2] sqlite"), std::string::npos) << text;
  EXPECT_NE(text.find("void (killed)"), std::string::npos) << text;
}

TEST(Progress, rewrites_one_line_on_a_terminal_and_leaves_it_empty) {
  const Screen screen;
  ProgressLine line(screen.file(), true, 40);
  run(line);
  const std::string text = screen.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;  // title, void trial
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(Progress, counts_only_trials_that_need_no_repetition) {
  const Screen screen;
  ProgressLine line(screen.file(), false);
  line.run_begins("demo", 3, 10);
  line.trial_begins("a");
  line.trial_ends("a", 1, "void", "x");
  EXPECT_TRUE(line.line().starts_with("[3/10]")) << line.line();
  line.trial_ends("a", 5, "ok", "");
  EXPECT_TRUE(line.line().starts_with("[8/10]")) << line.line();
  EXPECT_NE(line.line().find("left"), std::string::npos);
}

TEST(Progress, of_a_long_trial_shows_without_a_terminal_too) {
  const Screen screen;
  ProgressLine line(screen.file(), false, 80, std::chrono::milliseconds(0));
  line.run_begins("demo", 0, 2);
  line.trial_begins("sqlite");
  line.trial_progress({"load", 0.25});
  EXPECT_NE(screen.text().find("[0/2] sqlite load 25 %"), std::string::npos) << screen.text();
  const Screen calm;
  ProgressLine patient(calm.file(), false, 80, std::chrono::hours(1));
  patient.run_begins("demo", 0, 2);
  patient.trial_begins("sqlite");
  patient.trial_progress({"load", 0.25});
  EXPECT_EQ(calm.text(), "demo: 2 trials\n");
}

/// A line whose clock the test sets.
struct TimedLine {
  explicit TimedLine(std::FILE* out)
      : line(out, true, 80, std::chrono::seconds(5), [this] { return now; }) {}
  void pass(int seconds) { now += std::chrono::seconds(seconds); }
  ProgressLine::Clock::time_point now;
  ProgressLine line;
};

TEST(Progress, estimates_from_how_far_the_running_trial_is) {
  const Screen screen;
  TimedLine timed(screen.file());
  timed.line.run_begins("demo", 0, 10);
  timed.line.trial_begins("null");
  timed.pass(2);
  timed.line.trial_ends("null", 1, "ok", "");
  EXPECT_NE(timed.line.line().find("about 18 s left"), std::string::npos) << timed.line.line();
  timed.line.trial_begins("slow");
  timed.pass(10);
  timed.line.trial_progress({"load", 0.1});
  // 90 s for this one; (2 + 100) / 2 = 51 s for each of the 8 after it.
  EXPECT_NE(timed.line.line().find("about 8 min 18 s left"), std::string::npos)
      << timed.line.line();
  timed.pass(40);
  timed.line.trial_progress({"run", 0.5});
  EXPECT_NE(timed.line.line().find("about 7 min 38 s left"), std::string::npos)
      << timed.line.line();
}

TEST(Progress, estimates_during_the_first_trial_and_counts_a_set_as_its_trials) {
  const Screen screen;
  TimedLine timed(screen.file());
  timed.line.run_begins("demo", 0, 8);
  timed.line.trial_begins("set 1", 4);
  timed.pass(1);
  timed.line.trial_progress({"load", 0.001});
  EXPECT_EQ(timed.line.line().find("left"), std::string::npos) << timed.line.line();
  timed.pass(9);
  timed.line.trial_progress({"load", 0.5});
  EXPECT_NE(timed.line.line().find("about 30 s left"), std::string::npos) << timed.line.line();
}

TEST(Progress, tells_of_void_trials_and_lets_the_estimate_grow_with_them) {
  const Screen screen;
  TimedLine timed(screen.file());
  const std::string reason = "other processes used 0.83 CPUs during phase \"run\" (limit 0.25)";
  timed.line.run_begins("demo", 0, 10);
  timed.line.trial_begins("null");
  timed.pass(2);
  timed.line.trial_ends("null", 1, "ok", "");
  EXPECT_EQ(timed.line.line().find("void"), std::string::npos);
  for (int i = 0; i < 4; ++i) {
    timed.line.trial_begins("null");
    timed.pass(2);
    timed.line.trial_ends("null", 1, "void", reason);
  }
  // 2 s each for 9 more, of which (5 + 1) / (1 + 1) = 3 runs give one that counts.
  EXPECT_NE(timed.line.line().find("about 54 s left, 4 void and repeated"), std::string::npos)
      << timed.line.line();
  const std::string text = screen.text();
  const std::size_t advice = text.find("note: 4 of 5 trials were void, because other processes");
  ASSERT_NE(advice, std::string::npos) << text;
  EXPECT_EQ(text.find("trials were void", advice + 40), std::string::npos) << "told once: " << text;
}

TEST(Progress, advises_where_more_than_a_third_of_the_trials_are_void) {
  const std::string load = "other processes used 0.83 CPUs during phase \"run\" (limit 0.25)";
  EXPECT_EQ(void_advice(3, 3, load), "");
  EXPECT_EQ(void_advice(4, 12, load), "");
  EXPECT_EQ(void_advice(4, 11, load),
            "4 of 11 trials were void, because other processes use the CPUs: wait until they are "
            "idle, or raise foreign_cpus_max in the plan (--foreign-cpus-max of assay compare; 0 "
            "only records it)");
  EXPECT_NE(void_advice(9, 9, "killed by signal 9").find("the newest: killed by signal 9"),
            std::string::npos);
}

TEST(Progress, that_cannot_be_written_is_lost_without_an_error) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  ProgressLine line(full, false);
  EXPECT_NO_THROW(run(line));
  std::fclose(full);
}

TEST(Progress, does_not_let_a_name_drive_the_terminal) {
  const Screen screen;
  ProgressLine line(screen.file(), false);
  line.note(
      "store \x1b[2J says \xc2\x9b"
      "2J");
  EXPECT_EQ(screen.text(), "note: store \\x1b[2J says \\u009b2J\n");
}

TEST(Progress, writes_durations_as_people_do) {
  EXPECT_EQ(duration_text(7), "7 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
}

}  // namespace
}  // namespace assay
