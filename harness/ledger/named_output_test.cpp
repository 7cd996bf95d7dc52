#include "harness/ledger/named_output.h"
#include "adapters/temporary_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

class NamedOutputs : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return own_.path() + "/" + name; }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(own_.path()), fs::directory_iterator());
  }
  const TemporaryDirectory own_;
};

TEST_F(NamedOutputs, replace_a_regular_file) {
  ASSERT_TRUE(write_named_output(path("a"), "first"));
  ASSERT_TRUE(check_named_output(path("a")));
  ASSERT_TRUE(write_named_output(path("a"), "second"));
  EXPECT_EQ(read_whole_file(path("a")).value(), "second");
  EXPECT_EQ(entries(), 1);
}

TEST_F(NamedOutputs, follow_a_link_and_keep_it_also_where_its_target_is_not_there_yet) {
  fs::create_directory(path("d"));
  fs::create_symlink("d/file", path("link"));
  fs::create_symlink("link", path("link of a link"));
  for (const char* contents : {"new", "newer"}) {
    ASSERT_TRUE(check_named_output(path("link of a link")));
    ASSERT_TRUE(write_named_output(path("link of a link"), contents));
    EXPECT_EQ(read_whole_file(path("d/file")).value(), contents);
  }
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("link of a link")));
  fs::create_symlink("circle", path("circle"));
  EXPECT_FALSE(write_named_output(path("circle"), "x"));
  EXPECT_TRUE(fs::is_symlink(path("circle")));
}

TEST_F(NamedOutputs, write_through_devices_and_pipes_and_leave_them) {
  // Links to the devices: their place in /dev must not be put at risk by a test.
  fs::create_symlink("/dev/full", path("full"));
  fs::create_symlink("/dev/null", path("null"));
  EXPECT_TRUE(check_named_output(path("null")));
  EXPECT_TRUE(write_named_output(path("null"), "x"));
  const Status full = write_named_output(path("full"), "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind(), ErrorKind::environment);
  EXPECT_TRUE(fs::is_character_file(path("full")));
  EXPECT_TRUE(fs::is_symlink(path("full")));

  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(check_named_output(path("pipe")));
  EXPECT_TRUE(write_named_output(path("pipe"), "hello"));
  std::array<char, 16> got{};
  EXPECT_EQ(::read(reader, got.data(), got.size()), 5);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(NamedOutputs, are_never_a_directory_or_a_ledger) {
  fs::create_directory(path("d"));
  ASSERT_TRUE(write_file_durably(path("ledger.jsonl"), "anything"));
  ASSERT_TRUE(write_file_durably(path("other"), "{\"body\":{\"damaged"));
  fs::create_symlink("ledger.jsonl", path("link"));
  fs::copy_file(ASSAY_LEDGER_TESTDATA "/v1-first.jsonl", path("past"));
  for (const char* name : {"d", "ledger.jsonl", "other", "link", "past"}) {
    for (const Status& status :
         {write_named_output(path(name), "x"), check_named_output(path(name))}) {
      ASSERT_FALSE(status) << name;
      EXPECT_EQ(status.error().kind(), ErrorKind::bad_input) << name;
      EXPECT_EQ(status.error().where(), path(name));
    }
  }
  EXPECT_EQ(read_whole_file(path("ledger.jsonl")).value(), "anything");
  EXPECT_EQ(entries(), 5);
}

TEST_F(NamedOutputs, a_directory_that_is_wanted_is_not_made_of_something_else) {
  ASSERT_TRUE(write_file_durably(path("f"), "x"));
  fs::create_symlink("nowhere", path("dangling"));
  fs::create_directory(path("d"));
  fs::create_symlink("d", path("link"));
  EXPECT_FALSE(check_named_directory(path("f")));
  EXPECT_FALSE(check_named_directory(path("f/")));
  EXPECT_FALSE(check_named_directory(path("dangling")));
  EXPECT_TRUE(check_named_directory(path("d")));
  EXPECT_TRUE(check_named_directory(path("link/")));
  EXPECT_TRUE(check_named_directory(path("new")));
}

}  // namespace
}  // namespace assay
