// The preloaded object: programs that know nothing of the recorder, and what they start.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "adapters/temporary_directory.h"
#include "harness/qualify/power/record.h"

namespace assay::qualify::power {
namespace {

TEST(Preload, RecordsAProgramThatKnowsNothingOfIt) {
  const TemporaryDirectory home;
  RecordPlan plan;
  plan.directory = home.path();
  plan.log_bytes = 16 << 20;
  const auto trace = record_program(plan, ASSAY_RECORDER,
                                    {"dd", "if=/dev/zero", "of=" + home.file("x"), "bs=4096",
                                     "count=3", "conv=fsync", "status=none"});
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(std::ranges::count_if(
                trace->events, [](const Event& event) { return event.kind == RecordKind::write; }),
            3);
  EXPECT_EQ(trace->events.back().kind, RecordKind::sync_returned);
}

TEST(Preload, FollowsTheProgramsThatAProgramStarts) {
  const TemporaryDirectory home;
  RecordPlan plan;
  plan.directory = home.path();
  plan.log_bytes = 16 << 20;
  const auto trace = record_program(
      plan, ASSAY_RECORDER,
      {"sh", "-c", "cd " + home.path() + " && echo a > b && mkdir d && mv b d/c && cp d/c e"});
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_TRUE(std::ranges::any_of(
      trace->events, [](const Event& event) { return describe(event) == "rename b to d/c"; }));
}

TEST(Preload, SaysThatAProgramDidNotLoadIt) {
  const TemporaryDirectory home;
  RecordPlan plan;
  plan.directory = home.path();
  plan.log_bytes = 16 << 20;
  const auto trace = record_program(plan, "/nowhere/recorder.so", {"true"});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("did not load the recorder"), std::string::npos);
}

/// Appends and syncs; seconds.
double commits(const std::string& path, int count) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  const std::string text(128, 'x');
  const auto begin = std::chrono::steady_clock::now();
  for (int commit = 0; commit < count; ++commit) {
    static_cast<void>(!::pwrite(file, text.data(), text.size(), commit * 128L));
    ::fdatasync(file);
  }
  ::close(file);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Preload, TellsWhatRecordingCosts) {
  const TemporaryDirectory home;
  const double native = commits(home.file("native"), 500);
  RecordPlan plan;
  plan.directory = home.path();
  plan.log_bytes = 16 << 20;
  const auto trace = record_call(plan, [&]() -> Status {
    std::printf("recorded %.0f us a commit\n", commits(home.file("recorded"), 500) * 2000);
    std::fflush(stdout);
    return {};
  });
  ASSERT_TRUE(trace) << trace.error().message();
  std::printf("native %.0f us a commit\n", native * 2000);
}

}  // namespace
}  // namespace assay::qualify::power
