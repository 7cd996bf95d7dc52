#include "adapters/plugin/crash_note.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace assay {
namespace {

TEST(CrashNote, reads_store_signal_and_call) {
  const auto note = parse_crash_note("assay: store my-store crashed with signal 11 inside put");
  ASSERT_TRUE(note);
  EXPECT_EQ(note->store, "my-store");
  EXPECT_EQ(note->call, "put");
  EXPECT_EQ(note->signal, 11);
}

TEST(CrashNote, reads_where_a_stopped_store_was) {
  const auto note = parse_crash_note("assay: store my-store was still inside get");
  ASSERT_TRUE(note);
  EXPECT_EQ(note->store, "my-store");
  EXPECT_EQ(note->call, "get");
  EXPECT_EQ(note->signal, 0);
}

TEST(CrashNote, leaves_other_lines_alone) {
  for (const char* line : {"", "assay: store", "assay: store x crashed", "store x inside put",
                           "assay: store x crashed with signal eleven inside put"}) {
    EXPECT_FALSE(parse_crash_note(line)) << line;
  }
}

TEST(CrashNote, a_mark_ends_with_its_scope) {
  EXPECT_EQ(CallMark::current.call, nullptr);
  {
    const CallMark outer("store", "scan");
    {
      const CallMark inner(nullptr, nullptr);
      EXPECT_EQ(CallMark::current.call, nullptr);
    }
    EXPECT_STREQ(CallMark::current.call, "scan");
  }
  EXPECT_EQ(CallMark::current.call, nullptr);
}

void crash_inside(int signal) {
  install_crash_notes();
  const CallMark mark("toy", "put");
  ::raise(signal);
}

TEST(CrashNoteDeathTest, names_the_call_and_keeps_the_signal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(crash_inside(SIGABRT), ::testing::KilledBySignal(SIGABRT),
              "assay: store toy crashed with signal 6 inside put");
}

}  // namespace
}  // namespace assay
