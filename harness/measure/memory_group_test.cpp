#include "harness/measure/memory_group.h"
#include "adapters/temporary_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(MemoryGroupPlace, is_found_with_the_first_interface) {
  EXPECT_EQ(
      *find_memory_group("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                         "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n"
                         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                         "5:cpu:/a\n4:memory:/service/one\n0::/\n"),
      (MemoryGroupPlace{"/sys/fs/cgroup/memory/service/one", 1, "/sys/fs/cgroup/memory"}));
}

TEST(MemoryGroupPlace, is_found_with_the_second_interface) {
  const char* const mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
  EXPECT_EQ(*find_memory_group(mounts, "0::/user.slice/x.scope\n"),
            (MemoryGroupPlace{"/sys/fs/cgroup/user.slice/x.scope", 2, "/sys/fs/cgroup"}));
  EXPECT_EQ(*find_memory_group(mounts, "0::/\n"),
            (MemoryGroupPlace{"/sys/fs/cgroup", 2, "/sys/fs/cgroup"}));
}

TEST(MemoryGroupPlace, in_a_container_is_below_the_part_that_is_mounted) {
  EXPECT_EQ(*find_memory_group(
                "35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
                "4:memory:/docker/ab\n"),
            (MemoryGroupPlace{"/sys/fs/cgroup/memory", 1, "/sys/fs/cgroup/memory"}));
}

TEST(MemoryGroupPlace, that_is_not_there_is_said) {
  const Result<MemoryGroupPlace> none = find_memory_group(
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "5:cpu:/a\n");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::environment);
}

// The second interface allows no groups beside processes: under systemd a session's own group hands
// nothing on, the user's slice above it does.
TEST(MemoryGroupPlace, for_new_groups_is_the_nearest_above_that_hands_the_controller_on) {
  const TemporaryDirectory top;
  std::filesystem::create_directories(top.file("user/session"));
  const auto hands_on = [&](const std::string& group, const std::string& controllers) {
    std::ofstream(top.path() + group + "/cgroup.subtree_control") << controllers << "\n";
  };
  hands_on("", "cpuset cpu io memory pids");
  hands_on("/user", "memory pids");
  hands_on("/user/session", "");
  const MemoryGroupPlace own{top.file("user/session"), 2, top.path()};
  EXPECT_EQ(place_for_new_groups(own)->directory, top.file("user"));
  hands_on("/user", "memory_like pids");
  EXPECT_EQ(place_for_new_groups(own)->directory, top.path());
  hands_on("", "cpu");
  const Result<MemoryGroupPlace> none = place_for_new_groups(own);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("systemd-run"), std::string::npos);
  EXPECT_EQ(place_for_new_groups({"/x", 1, "/"})->directory, "/x");
}

/// The status of a child that joins the group and then does `what`.
int status_of_child_in(const MemoryGroup& group, const std::function<void()>& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!join_memory_group(group.directory())) ::_exit(3);
    what();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

void touch(std::uint64_t bytes) {
  volatile char* const memory = static_cast<volatile char*>(std::malloc(bytes));
  for (std::uint64_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}

void write_file(const std::string& path, std::uint64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  const std::string block(kMiB, 'x');
  for (std::uint64_t at = 0; at < bytes; at += kMiB) file << block;
}

TEST(MemoryGroup, kills_what_wants_more_than_its_budget_and_says_so) {
  Result<MemoryGroup> group = MemoryGroup::make(32 * kMiB);
  if (!group) GTEST_SKIP() << group.error().message();
  EXPECT_EQ(group->figures()->limit_bytes, 32 * kMiB);
  EXPECT_EQ(status_of_child_in(*group, [] { touch(kMiB); }), 0);
  EXPECT_EQ(group->figures()->killed, 0U);
  const int status = status_of_child_in(*group, [] { touch(128 * kMiB); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_GE(group->figures()->killed, 1U);
  EXPECT_GT(group->figures()->reclaims, 0U);
}

TEST(MemoryGroup, counts_the_page_cache_and_lets_a_process_write_more_than_its_budget) {
  Result<MemoryGroup> group = MemoryGroup::make(16 * kMiB);
  if (!group) GTEST_SKIP() << group.error().message();
  const TemporaryDirectory directory;
  EXPECT_EQ(status_of_child_in(*group, [&] { write_file(directory.file("a"), 64 * kMiB); }), 0);
  EXPECT_EQ(group->figures()->killed, 0U);
  EXPECT_LE(group->figures()->peak_bytes, 16 * kMiB);
  EXPECT_GT(group->figures()->peak_bytes, 8 * kMiB);
}

TEST(MemoryGroup, is_gone_with_its_object_and_a_stale_one_with_the_next) {
  std::string directory;
  std::string stale;
  {
    Result<MemoryGroup> group = MemoryGroup::make(32 * kMiB);
    if (!group) GTEST_SKIP() << group.error().message();
    directory = group->directory();
    EXPECT_TRUE(std::filesystem::exists(directory));
    // A process that has been waited for is gone; its number is not given out again at once.
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    const std::filesystem::path made(directory);
    const std::string name = made.filename();
    const std::string mark = name.substr(0, name.find('-', name.find('-') + 1) + 1);
    stale = made.parent_path() / (mark + std::to_string(child) + "-0");
    std::filesystem::create_directory(stale);
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  const Result<MemoryGroup> next = MemoryGroup::make(32 * kMiB);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST(MemoryGroup, below_a_directory_that_is_no_group_is_an_error_with_its_path) {
  const TemporaryDirectory directory;
  for (const int version : {1, 2}) {
    const Result<MemoryGroup> group =
        MemoryGroup::make({directory.path(), version, directory.path()}, kMiB);
    ASSERT_FALSE(group);
    EXPECT_NE(group.error().message().find(directory.path()), std::string::npos);
  }
}

}  // namespace
}  // namespace assay
