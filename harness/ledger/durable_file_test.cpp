#include "harness/ledger/durable_file.h"
#include "adapters/temporary_directory.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

class DurableFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }

  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
};

TEST_F(DurableFile, holds_what_was_written_and_leaves_no_temporary) {
  ASSERT_TRUE(write_file_durably(path("a"), "first"));
  ASSERT_TRUE(write_file_durably(path("a"), "second"));
  EXPECT_EQ(read_whole_file(path("a")).value(), "second");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(DurableFile, is_never_created_over_an_existing_one) {
  ASSERT_TRUE(create_file_durably(path("a"), "first"));
  const Status again = create_file_durably(path("a"), "second");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().where(), path("a"));
  EXPECT_EQ(read_whole_file(path("a")).value(), "first");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(DurableFile, keeps_the_old_contents_when_the_disk_is_full) {
  ASSERT_TRUE(write_file_durably(path("a"), "old"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // the limit must not reach the other tests
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = write_file_durably(path("a"), std::string(5000, 'x'));
    ::_exit(!status && status.error().kind() == ErrorKind::environment ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0) << "the child saw no error";
  EXPECT_EQ(read_whole_file(path("a")).value(), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(DurableFile, that_cannot_be_written_is_named_as_the_user_knows_it) {
  const std::string nowhere = path("nowhere/report.md");
  for (const Status& status : {write_file_durably(nowhere, "x"), check_can_be_written(nowhere)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().where(), nowhere);
    EXPECT_EQ(status.error().message().find(".tmp-"), std::string::npos);
  }
  EXPECT_FALSE(check_can_be_written(folder_));
  EXPECT_TRUE(check_can_be_written(path("a")));
  EXPECT_EQ(entries(), 0U);
}

TEST_F(DurableFile, is_not_read_from_a_pipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto read = read_whole_file(path("pipe"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::bad_input);
}

TEST_F(DurableFile, makes_parents_and_refuses_a_file_in_the_way) {
  ASSERT_TRUE(make_directories_durably(path("x/y/z")));
  EXPECT_TRUE(std::filesystem::is_directory(path("x/y/z")));
  ASSERT_TRUE(write_file_durably(path("f"), ""));
  EXPECT_FALSE(make_directories_durably(path("f")));
  EXPECT_FALSE(make_directories_durably(path("f/below")));
}

}  // namespace
}  // namespace assay
