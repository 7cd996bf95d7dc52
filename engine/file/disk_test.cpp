#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/file/real_disk.h"
#include "engine/file/sim_disk.h"

namespace lode {
namespace {

std::string read_all(File& file) {
  std::string text(file.size().value(), '\0');
  Bytes out{reinterpret_cast<std::byte*>(text.data()), text.size()};
  EXPECT_EQ(file.read_at(out, 0).value(), text.size());
  return text;
}

bool keep_all(std::size_t /*unit*/) {
  return true;
}
bool keep_none(std::size_t /*unit*/) {
  return false;
}

TEST(SimDisk, loses_unsynced_names_and_data_and_keeps_synced_ones) {
  const auto disk = SimDisk::make();
  auto file = disk->open("a", {.create = true}).value();
  ASSERT_TRUE(file->write_at(as_bytes("hello"), 0));
  ASSERT_TRUE(file->sync());
  EXPECT_FALSE(disk->crashed(keep_none)->contents("a").has_value()) << "no directory sync yet";
  EXPECT_EQ(disk->crashed(keep_all)->contents("a"), "hello");
  ASSERT_TRUE(disk->sync_directory());
  ASSERT_TRUE(file->write_at(as_bytes("HELLO, longer"), 0));
  EXPECT_EQ(disk->crashed(keep_none)->contents("a"), "hello");
  EXPECT_EQ(disk->killed()->contents("a"), "HELLO, longer");
}

TEST(SimDisk, tears_a_write_at_512_bytes_and_drops_data_whose_growth_was_lost) {
  const auto disk = SimDisk::make();
  auto file = disk->open("a", {.create = true}).value();
  ASSERT_TRUE(file->write_at(as_bytes(std::string(1024, 'x')), 0));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk->sync_directory());
  ASSERT_TRUE(file->write_at(as_bytes(std::string(1024, 'y')), 0));
  ASSERT_EQ(disk->pending_units(), 2U);
  const auto torn = disk->crashed([](std::size_t unit) { return unit == 1; });
  EXPECT_EQ(torn->contents("a"), std::string(512, 'x') + std::string(512, 'y'));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write_at(as_bytes("z"), 1024));
  ASSERT_EQ(disk->pending_units(), 2U);  // the size and the piece
  EXPECT_EQ(disk->crashed([](std::size_t unit) { return unit == 1; })->contents("a")->size(),
            1024U);
  EXPECT_EQ(disk->crashed([](std::size_t unit) { return unit == 0; })->contents("a")->back(), '\0');
}

TEST(SimDisk, makes_writes_of_a_dsync_file_durable_at_once) {
  const auto disk = SimDisk::make();
  disk->set_contents("a", std::string(1024, 'x'));
  auto file = disk->open("a", {.dsync = true}).value();
  ASSERT_TRUE(file->write_at(as_bytes("yy"), 100));
  EXPECT_EQ(disk->pending_units(), 0U);
  EXPECT_EQ(disk->crashed(keep_none)->contents("a")->substr(99, 4), "xyyx");
}

TEST(SimDisk, does_not_save_by_a_second_sync_what_the_first_one_lost) {
  const auto disk = SimDisk::make();
  disk->set_contents("a", "old");
  auto file = disk->open("a", {}).value();
  ASSERT_TRUE(file->write_at(as_bytes("new"), 0));
  disk->fail_at(1, Fault::io_error);
  EXPECT_FALSE(file->sync());
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(disk->crashed(keep_all)->contents("a"), "old");
}

TEST(SimDisk, fails_the_chosen_call_and_all_calls_after_a_power_cut) {
  const auto disk = SimDisk::make();
  auto file = disk->open("a", {.create = true}).value();
  disk->fail_at(2, Fault::no_space);
  EXPECT_TRUE(file->write_at(as_bytes("ab"), 0));
  EXPECT_EQ(file->write_at(as_bytes("cdef"), 2).error().kind, ErrorKind::no_space);
  EXPECT_EQ(disk->contents("a"), "abcd") << "a short write leaves half of the data";
  EXPECT_TRUE(file->sync());
  disk->fail_at(1, Fault::power_cut);
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(file->write_at(as_bytes("x"), 0));
  EXPECT_FALSE(disk->list());
}

TEST(SimDisk, renames_atomically_in_any_crash) {
  const auto disk = SimDisk::make();
  disk->set_contents("old", "1");
  disk->set_contents("new", "2");
  ASSERT_TRUE(disk->rename("new", "old"));
  EXPECT_EQ(disk->crashed(keep_none)->contents("old"), "1");
  EXPECT_EQ(disk->crashed(keep_all)->contents("old"), "2");
  EXPECT_FALSE(disk->crashed(keep_all)->contents("new").has_value());
}

class RealDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "lode_disk_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(RealDiskTest, reads_what_was_written_and_lists_renames_and_removes) {
  const auto disk = open_directory(path_ + "/store", true).value();
  auto file = disk->open("a", {.create = true}).value();
  ASSERT_TRUE(file->write_at(as_bytes("hello"), 3));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(read_all(*file), std::string("\0\0\0hello", 8));
  EXPECT_FALSE(disk->open("a", {.create = true})) << "create does not take over a file";
  ASSERT_TRUE(disk->rename("a", "b"));
  ASSERT_TRUE(disk->sync_directory());
  EXPECT_EQ(disk->list().value(), std::vector<std::string>{"b"});
  ASSERT_TRUE(file->resize(4));
  EXPECT_EQ(file->size().value(), 4U);
  ASSERT_TRUE(disk->remove("b"));
  EXPECT_EQ(disk->open("b", {}).error().kind, ErrorKind::not_found);
}

TEST_F(RealDiskTest, refuses_a_second_lock_and_a_missing_directory) {
  const auto disk = open_directory(path_, false).value();
  const auto second = open_directory(path_, false).value();
  ASSERT_TRUE(disk->lock(true));
  EXPECT_EQ(second->lock(true).error().kind, ErrorKind::locked);
  EXPECT_EQ(second->lock(false).error().kind, ErrorKind::locked);
  EXPECT_EQ(open_directory(path_ + "/none", false).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace lode
