#include "adapters/conformance/isolated.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "adapters/plugin/plugin_loader.h"
#include "adapters/temporary_directory.h"

namespace assay {
namespace {

Isolation isolation(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  Isolation chosen;
  chosen.subject = "toy";
  chosen.silence_limit = limit;
  return chosen;
}

/// Checks the crashing or lying plug-in in a child.
Result<ConformanceReport> check(const std::string& path, const Settings& settings,
                                std::vector<std::string> only,
                                std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const TemporaryDirectory directory;
  ConformanceOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  options.settings = settings;
  options.only = std::move(only);
  return check_isolated(isolation(limit), [&] { return load_plugin(path); }, options);
}

std::string message(const Result<ConformanceReport>& report) {
  return report ? "no error" : report.error().message();
}

TEST(Isolated, brings_back_the_result) {
  const auto text = run_isolated(
      isolation(), [](const OnStep&) -> Result<std::string> { return std::string(200'000, 'x'); });
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(*text, std::string(200'000, 'x'));
}

TEST(Isolated, brings_back_an_error_as_it_was) {
  const auto text = run_isolated(isolation(), [](const OnStep&) -> Result<std::string> {
    return fail(Error(ErrorKind::unsupported, "cannot").at("here").hint("do that"));
  });
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind(), ErrorKind::unsupported);
  EXPECT_EQ(text.error().message(), "here: cannot (do that)");
}

TEST(Isolated, passes_on_the_steps) {
  std::vector<std::string> steps;
  Isolation chosen = isolation();
  chosen.on_step = [&](std::string_view step) { steps.emplace_back(step); };
  const auto text = run_isolated(chosen, [](const OnStep& step) -> Result<std::string> {
    step("one");
    step("two");
    return std::string();
  });
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(steps, (std::vector<std::string>{"one", "two"}));
}

TEST(Isolated, tells_a_crash_without_a_note_by_its_step) {
  const auto text = run_isolated(isolation(), [](const OnStep& step) -> Result<std::string> {
    step("the second step");
    ::kill(::getpid(), SIGKILL);
    return std::string();
  });
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind(), ErrorKind::child);
  EXPECT_EQ(text.error().message(), "store toy crashed (signal 9, Killed) during the second step");
}

TEST(Isolated, names_the_call_that_crashed) {
  const auto report =
      check(ASSAY_CRASHING_STORE, {{"crash_in", "put"}, {"crash_after", "5"}}, {"contents"});
  EXPECT_EQ(message(report),
            "store crashing crashed (signal 11, Segmentation fault) in put during check contents");
}

TEST(Isolated, names_the_call_that_aborted) {
  const auto report =
      check(ASSAY_CRASHING_STORE, {{"crash_in", "close"}, {"crash_how", "abort"}}, {"overwrite"});
  EXPECT_EQ(message(report),
            "store crashing crashed (signal 6, Aborted) in close during check open");
}

TEST(Isolated, names_the_call_that_crashed_in_a_thread) {
  const auto report = check(ASSAY_CRASHING_STORE, {{"crash_in", "scan"}, {"crash_how", "abort"}},
                            {"readers_beside_writer"});
  EXPECT_EQ(
      message(report),
      "store crashing crashed (signal 6, Aborted) in scan during check readers_beside_writer");
}

TEST(Isolated, names_the_call_that_hangs) {
  const auto report = check(ASSAY_CRASHING_STORE, {{"crash_in", "get"}, {"crash_how", "hang"}},
                            {"contents"}, std::chrono::milliseconds(500));
  EXPECT_EQ(message(report),
            "store crashing hung in get during check contents: nothing for 0.5 s (--timeout takes "
            "the seconds to wait)");
}

TEST(Isolated, tells_of_a_store_that_ends_the_process) {
  const auto report =
      check(ASSAY_CRASHING_STORE, {{"crash_in", "put"}, {"crash_how", "exit"}}, {"contents"});
  EXPECT_EQ(message(report), "store toy ended its process with status 3 during check contents");
}

TEST(Isolated, tells_of_a_crash_while_loading) {
  const auto report = check(ASSAY_CRASH_AT_ENTRY_STORE, {}, {"contents"});
  EXPECT_NE(message(report).find("crashed (signal 6, Aborted) in assay_plugin_entry"),
            std::string::npos)
      << message(report);
}

TEST(CrashNoteIn, finds_the_note_among_other_lines) {
  EXPECT_EQ(crash_note_in("loading\nassay: store toy crashed with signal 11 inside put\nmore"),
            "store toy crashed (signal 11, Segmentation fault) in put");
  EXPECT_EQ(crash_note_in("loading\nassay: store toy was still inside get"),
            "store toy was still in get");
  EXPECT_EQ(crash_note_in("loading\n\nnothing\n"), "");
  EXPECT_EQ(crash_note_in(""), "");
}

TEST(Isolated, a_lying_store_is_found_out_and_an_honest_one_is_not) {
  for (const char* lie : {"lose_last", "wrong_value", "lose_key", "ghost_key", "reorder"}) {
    const auto report = check(ASSAY_LYING_STORE, {{"lie", lie}}, {"reopen"});
    ASSERT_TRUE(report) << message(report);
    EXPECT_EQ(report->count(CheckResult::wrong_contents), 1u) << lie;
  }
  const auto honest = check(ASSAY_LYING_STORE, {}, {});
  ASSERT_TRUE(honest) << message(honest);
  for (const CheckOutcome& outcome : honest->outcomes) {
    EXPECT_LT(outcome.result, CheckResult::failed) << outcome.check << ": " << outcome.detail;
  }
}

}  // namespace
}  // namespace assay
