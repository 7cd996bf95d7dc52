// What a failed sync drops and what a later write brings back.
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/qualify/error/disk_below.h"

namespace assay::qualify::error {
namespace {

class DiskBelowTest : public ::testing::Test {
 protected:
  DiskBelowTest() {
    store_ = directory_.file("store");
    ::mkdir(store_.c_str(), 0755);
    file_ = store_ + "/log";
  }

  void put(char first, char second) const {
    std::ofstream(file_, std::ios::binary) << std::string(4096, first) << std::string(4096, second);
  }
  FileId id() const {
    struct stat info{};
    EXPECT_EQ(::stat(file_.c_str(), &info), 0);
    return {info.st_dev, info.st_ino};
  }
  /// The first bytes of the two pages after a power loss.
  std::string left() {
    const std::string to = directory_.file("cut" + std::to_string(++cuts_));
    const auto dropped = disk_.write_out(store_, to);
    EXPECT_TRUE(dropped);
    std::ifstream in(to + "/log", std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str().size(), 8192U) << "sizes are taken as they are";
    return {text.str()[0], text.str()[4096]};
  }

  TemporaryDirectory directory_;
  std::string store_;
  std::string file_;
  DiskBelow disk_;
  int cuts_ = 0;
};

TEST_F(DiskBelowTest, what_a_sync_has_covered_stays) {
  ASSERT_TRUE(disk_.begin(store_));
  put('a', 'a');
  disk_.synced(id(), file_, {});
  EXPECT_EQ(left(), "aa");
}

TEST_F(DiskBelowTest, what_only_a_failed_sync_has_covered_is_as_before_even_after_another_sync) {
  put('a', 'a');
  ASSERT_TRUE(disk_.begin(store_));
  put('a', 'b');
  EXPECT_EQ(left(), "ab") << "unsynced data are taken to have reached the disk";
  disk_.sync_failed(id(), file_, {});
  EXPECT_EQ(left(), "aa");
  disk_.synced(id(), file_, {});
  EXPECT_EQ(left(), "aa") << "the page is clean: no sync writes it again";
}

TEST_F(DiskBelowTest, a_page_that_is_written_again_goes_to_the_disk_even_with_the_same_bytes) {
  put('a', 'a');
  ASSERT_TRUE(disk_.begin(store_));
  put('b', 'b');
  disk_.sync_failed(id(), file_, {});
  disk_.writes(id(), file_, {.offset = 4096, .bytes = 10}, false);
  EXPECT_EQ(left(), "ab");
  disk_.synced(id(), file_, {});
  EXPECT_EQ(left(), "ab");
}

TEST_F(DiskBelowTest, a_write_through_is_on_the_disk_before_any_sync_fails) {
  put('a', 'a');
  ASSERT_TRUE(disk_.begin(store_));
  disk_.writes(id(), file_, {.offset = 0, .bytes = 4096}, true);
  put('b', 'c');
  disk_.sync_failed(id(), file_, {});
  EXPECT_EQ(left(), "ba");
}

TEST_F(DiskBelowTest, a_sync_of_a_range_concerns_the_range) {
  put('a', 'a');
  ASSERT_TRUE(disk_.begin(store_));
  put('b', 'b');
  disk_.sync_failed(id(), file_, {.offset = 0, .bytes = 4096});
  EXPECT_EQ(left(), "ab");
}

TEST_F(DiskBelowTest, a_new_file_that_was_never_synced_is_zeros) {
  ASSERT_TRUE(disk_.begin(store_));
  put('a', 'a');
  disk_.sync_failed(id(), file_, {});
  EXPECT_EQ(left(), std::string(2, '\0'));
}

}  // namespace
}  // namespace assay::qualify::error
