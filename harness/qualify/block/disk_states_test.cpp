// Which states a log allows, and what they look like on the disk.
#include "harness/qualify/block/disk_states.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/qualify/block/overlay_image.h"

namespace assay::qualify::block {
namespace {

constexpr std::uint64_t kImage = 64 * 1024;

class DiskStates : public ::testing::Test {
 protected:
  void write(std::uint64_t block, char fill, std::uint64_t bytes = 4096) {
    const std::string data(bytes, fill);
    ASSERT_TRUE(disk_.append(LogEntry::Kind::write, block * 4096, bytes, data.data()));
  }
  void flush() { ASSERT_TRUE(disk_.append(LogEntry::Kind::flush, 0, 0, nullptr)); }

  /// First byte of each block of the image.
  std::string look(const DiskState& state) {
    OverlayImage image(disk_);
    image.become(state);
    std::string firsts;
    for (std::uint64_t block = 0; block < 4; ++block) {
      char byte = 0;
      image.read(block * 4096, 1, &byte);
      firsts += byte == '\0' ? '.' : byte;
    }
    return firsts;
  }

  SharedDisk disk_ =
      std::move(*SharedDisk::make({.image_bytes = kImage, .log_bytes = 1 << 20, .entries = 64}));
};

TEST_F(DiskStates, a_flush_begins_an_interval_and_what_came_before_it_is_kept_in_every_state) {
  write(0, 'a');
  write(1, 'b');
  flush();
  write(2, 'c');
  write(3, 'd');
  flush();
  const auto intervals = intervals_of(disk_.entries());
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_EQ(intervals[1].begin, 3U);
  EXPECT_EQ(intervals[1].end, 5U);
  EXPECT_EQ(intervals[1].writes, (std::vector<std::uint32_t>{3, 4}));
  StatePicker picker(disk_.entries(), 1);
  DiskState state;
  std::set<std::string> seen;
  while (picker.next(state)) {
    const std::string image = look(state);
    if (state.interval == 0) {
      EXPECT_EQ(image.substr(2), "..");
    } else {
      EXPECT_EQ(image.substr(0, 2), "ab");
    }
    if (state.interval == 2) {
      EXPECT_EQ(image, "abcd");
    }
    seen.insert(image);
  }
  for (const char* const image : {"....", "a...", ".b..", "ab..", "abc.", "ab.d", "abcd"})
    EXPECT_TRUE(seen.contains(image)) << image;
}

TEST_F(DiskStates, every_subset_of_three_writes_is_reached) {
  for (std::uint64_t block = 0; block < 3; ++block) write(block, static_cast<char>('a' + block));
  StatePicker picker(disk_.entries(), 1);
  DiskState state;
  std::set<std::string> seen;
  while (picker.next(state)) seen.insert(look(state).substr(0, 3));
  for (const char* const image : {"...", "a..", ".b.", "..c", "ab.", "a.c", ".bc", "abc"})
    EXPECT_TRUE(seen.contains(image)) << image;
}

TEST_F(DiskStates, the_later_of_two_writes_to_a_block_wins_unless_it_is_lost) {
  write(0, 'a');
  write(0, 'b');
  StatePicker picker(disk_.entries(), 1);
  DiskState state;
  std::set<std::string> seen;
  while (picker.next(state)) seen.insert(look(state).substr(0, 1));
  EXPECT_EQ(seen, (std::set<std::string>{".", "a", "b"}));
}

TEST_F(DiskStates, a_write_is_torn_between_sectors_and_nowhere_else) {
  write(0, 'a');
  StatePicker picker(disk_.entries(), 5);
  DiskState state;
  std::uint64_t torn = 0;
  while (picker.next(state)) {
    OverlayImage image(disk_);
    image.become(state);
    std::string block(4096, '?');
    image.read(0, block.size(), block.data());
    const auto kept = static_cast<std::uint64_t>(std::ranges::count(block, 'a'));
    EXPECT_EQ(kept % kSectorBytes, 0U);
    if (state.kind != StateClass::torn) continue;
    ++torn;
    EXPECT_GT(kept, 0U);
    EXPECT_LT(kept, 4096U);
  }
  EXPECT_EQ(torn, picker.count(StateClass::torn).legal);
  EXPECT_GT(torn, 2U);
}

TEST_F(DiskStates, a_discard_reads_as_zeros_and_may_be_lost_like_a_write) {
  write(0, 'a');
  flush();
  ASSERT_TRUE(disk_.append(LogEntry::Kind::zero, 0, 4096, nullptr));
  StatePicker picker(disk_.entries(), 1);
  DiskState state;
  std::set<std::string> seen;
  while (picker.next(state))
    if (state.interval == 1) seen.insert(look(state).substr(0, 1));
  EXPECT_EQ(seen, (std::set<std::string>{".", "a"}));
}

TEST_F(DiskStates, the_same_seed_picks_the_same_states_and_another_one_another_order) {
  for (std::uint64_t block = 0; block < 4; ++block) write(block, static_cast<char>('a' + block));
  const auto all = [&](std::uint64_t seed) {
    StatePicker picker(disk_.entries(), seed);
    std::vector<std::vector<Piece>> states;
    DiskState state;
    while (picker.next(state)) states.push_back(state.kept);
    return states;
  };
  EXPECT_EQ(all(3), all(3));
  EXPECT_NE(all(3), all(4));
}

TEST_F(DiskStates, a_state_is_judged_by_what_was_acknowledged_until_the_flush_that_ends_it) {
  write(0, 'a');
  flush();
  write(1, 'b');
  flush();
  StatePicker picker(disk_.entries(), 1);
  DiskState state;
  while (picker.next(state)) {
    EXPECT_EQ(state.cut, picker.intervals()[state.interval].end);
    EXPECT_EQ(state.durable_end, picker.intervals()[state.interval].begin);
  }
}

TEST_F(DiskStates, equal_images_have_equal_hashes_however_they_came_about) {
  write(0, 'a');
  write(1, 'b');
  write(0, '\0');
  OverlayImage image(disk_);
  DiskState only_b;
  only_b.kept = {{1, 0, 8}};
  image.become(only_b);
  const std::uint64_t hash = image.hash();
  DiskState all;
  all.durable_end = 3;
  OverlayImage other(disk_);
  other.become(all);
  EXPECT_EQ(other.hash(), hash);
  EXPECT_TRUE(other.same_as(image));
  DiskState none;
  image.become(none);
  EXPECT_NE(image.hash(), hash);
  EXPECT_FALSE(other.same_as(image));
}

TEST_F(DiskStates, writes_that_are_not_whole_blocks_keep_the_rest_of_the_base) {
  disk_.base()[4096] = 'x';
  disk_.base()[4096 + 4095] = 'y';
  OverlayImage image(disk_);
  const std::string data(1000, 'z');
  image.write(4096 + 500, data.size(), data.data());
  std::string block(4096, '?');
  image.read(4096, block.size(), block.data());
  EXPECT_EQ(block.front(), 'x');
  EXPECT_EQ(block.back(), 'y');
  EXPECT_EQ(block.substr(500, 1000), data);
  EXPECT_EQ(disk_.base()[4096 + 500], '\0');
}

TEST_F(DiskStates, a_full_log_refuses_and_says_so_until_it_is_wiped) {
  for (int entry = 0; entry < 64; ++entry) flush();
  EXPECT_FALSE(disk_.full());
  EXPECT_FALSE(disk_.append(LogEntry::Kind::flush, 0, 0, nullptr));
  EXPECT_TRUE(disk_.full());
  disk_.base()[7] = 'x';
  disk_.wipe();
  EXPECT_FALSE(disk_.full());
  EXPECT_EQ(disk_.length(), 0U);
  EXPECT_EQ(disk_.base()[7], '\0');
}

TEST(SharedDiskSpill,
     what_does_not_fit_into_memory_lies_in_a_file_without_a_name_and_reads_the_same) {
  const TemporaryDirectory home;
  constexpr std::uint64_t kWrite =
      6000;  // no divisor of a page: one of them lies across the border
  Result<SharedDisk> disk = SharedDisk::make({.image_bytes = 1 << 20,
                                              .log_bytes = 16 << 10,
                                              .entries = 64,
                                              .spill_bytes = 32 << 10,
                                              .spill_directory = home.path()});
  ASSERT_TRUE(disk) << disk.error().message();
  EXPECT_TRUE(std::filesystem::is_empty(home.path()));
  for (int round = 0; round < 2; ++round) {
    std::string data;
    for (std::uint32_t at = 0; at < 8; ++at) {
      data.assign(kWrite, static_cast<char>('a' + at + static_cast<std::uint32_t>(round)));
      ASSERT_TRUE(disk->append(LogEntry::Kind::write, at * kWrite, kWrite, data.data())) << at;
    }
    EXPECT_FALSE(disk->append(LogEntry::Kind::write, 0, kWrite, data.data())) << "48 KiB are all";
    EXPECT_TRUE(disk->full());
    for (std::uint32_t at = 0; at < 8; ++at)
      EXPECT_EQ(
          disk->data(disk->entries()[at]),
          std::string(kWrite, static_cast<char>('a' + at + static_cast<std::uint32_t>(round))));
    disk->wipe();
  }
}

}  // namespace
}  // namespace assay::qualify::block
