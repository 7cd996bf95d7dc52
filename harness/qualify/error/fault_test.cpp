// Where faults are put.
#include "harness/qualify/error/fault.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <fcntl.h>

#include <set>

#include <gtest/gtest.h>

namespace assay::qualify::error {
namespace {

TEST(Fault, every_call_of_a_life_gets_its_turn_once) {
  for (std::uint64_t count = 1; count < 300; ++count) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t turn = 0; turn < count; ++turn) seen.insert(spread(turn, count));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.begin(), 1U);
    EXPECT_EQ(*seen.rbegin(), count);
  }
}

TEST(Fault, the_first_turns_see_every_third_of_a_life) {
  std::set<std::uint64_t> thirds;
  for (std::uint64_t turn = 0; turn < 6; ++turn) thirds.insert((spread(turn, 300) - 1) / 100);
  EXPECT_EQ(thirds.size(), 3U);
}

TEST(Fault, a_call_that_only_asks_whether_it_is_there_does_not_fail) {
  seccomp_data call{};
  call.nr = SYS_sync_file_range;
  EXPECT_TRUE(cannot_fail(call));
  call.args[3] = SYNC_FILE_RANGE_WRITE;
  EXPECT_FALSE(cannot_fail(call));
  call.nr = SYS_fdatasync;
  call.args[3] = 0;
  EXPECT_FALSE(cannot_fail(call));
}

}  // namespace
}  // namespace assay::qualify::error
