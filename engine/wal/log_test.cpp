#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/coding.h"
#include "engine/file/sim_disk.h"
#include "engine/wal/log_recovery.h"
#include "engine/wal/log_writer.h"

namespace lode {
namespace {

constexpr std::uint64_t store_id = 0x1234567890ABCDEFU;
constexpr std::uint64_t small_capacity = 8192;

bool keep_all(std::size_t /*unit*/) {
  return true;
}
bool keep_none(std::size_t /*unit*/) {
  return false;
}

// One log on a simulated disk, written a frame at a time; commit n carries text(n).
struct Log {
  explicit Log(std::shared_ptr<SimDisk> on, LogMethod with = LogMethod::fdatasync,
               std::uint64_t capacity = small_capacity)
      : disk(std::move(on)), method(with), writer(*disk, store_id, with, capacity) {}

  Status write(std::uint64_t sequence, const std::string& text, bool sync) {
    FrameBuffer buffer;
    std::memcpy(buffer.extend(text.size()), text.data(), text.size());
    buffer.count_commit(Sequence(sequence));
    return writer.write(buffer, sync);
  }

  std::shared_ptr<SimDisk> disk;
  LogMethod method;
  LogWriter writer;
};

struct Found {
  LogRecovery recovery;
  std::vector<std::string> texts;
};

Result<Found> recover(Disk& disk, LogStart start = {}) {
  Found found;
  auto result = recover_log(disk, store_id, start, false,
                            [&](Sequence, std::uint32_t, ConstBytes payload) -> Status {
                              found.texts.emplace_back(as_text(payload));
                              return {};
                            });
  if (!result) return std::unexpected(std::move(result).error());
  found.recovery = std::move(*result);
  return found;
}

std::string text_of(std::uint64_t n, std::size_t bytes = 100) {
  std::string text = "commit " + std::to_string(n) + " ";
  while (text.size() < bytes) text += static_cast<char>('a' + (n + text.size()) % 26);
  return text;
}

// Counts what is read of a simulated disk.
class CountedFile final : public File {
 public:
  CountedFile(std::unique_ptr<File> file, std::uint64_t& read_bytes)
      : file_(std::move(file)), read_bytes_(read_bytes) {}
  Result<std::size_t> read_at(Bytes out, std::uint64_t offset) override {
    read_bytes_ += out.size();
    return file_->read_at(out, offset);
  }
  Status write_at(ConstBytes data, std::uint64_t offset) override {
    return file_->write_at(data, offset);
  }
  Status sync() override { return file_->sync(); }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status resize(std::uint64_t bytes) override { return file_->resize(bytes); }

 private:
  std::unique_ptr<File> file_;
  std::uint64_t& read_bytes_;
};

class CountedDisk final : public Disk {
 public:
  explicit CountedDisk(std::shared_ptr<SimDisk> disk) : disk_(std::move(disk)) {}
  Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) override {
    LODE_ASSIGN(auto file, disk_->open(name, mode));
    return std::make_unique<CountedFile>(std::move(file), read_bytes);
  }
  Result<std::vector<std::string>> list() override { return disk_->list(); }
  Status remove(std::string_view name) override { return disk_->remove(name); }
  Status rename(std::string_view from, std::string_view to) override {
    return disk_->rename(from, to);
  }
  Status sync_directory() override { return disk_->sync_directory(); }
  Status lock(bool exclusive) override { return disk_->lock(exclusive); }
  [[nodiscard]] std::string name() const override { return disk_->name(); }

  std::uint64_t read_bytes = 0;

 private:
  std::shared_ptr<SimDisk> disk_;
};

class LogMethods : public testing::TestWithParam<LogMethod> {};

TEST_P(LogMethods, brings_back_every_synced_frame_after_a_power_cut_across_segments) {
  const auto disk = SimDisk::make();
  Log log(disk, GetParam());
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  std::vector<std::string> expected;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    // 3,000 bytes make two frames a segment; 20,000 need a segment of their own.
    expected.push_back(text_of(n, n == 30 ? 20000 : n % 7 == 0 ? 3000 : 90));
    ASSERT_TRUE(log.write(n, expected.back(), true));
  }
  const auto after = disk->crashed(keep_none);
  const auto found = recover(*after);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->texts, expected);
  EXPECT_EQ(found->recovery.end_lsn, log.writer.end_lsn());
  EXPECT_EQ(found->recovery.chain, log.writer.chain());
  EXPECT_GE(found->recovery.live.size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Each, LogMethods,
                         testing::Values(LogMethod::fdatasync, LogMethod::dsync,
                                         LogMethod::direct_dsync));

TEST(Log, keeps_a_prefix_no_shorter_than_what_was_synced_at_every_power_cut) {
  // Every call of a history with rotation is the one at which the power goes, with several
  // choices of what survives. Every second frame is synced.
  for (const LogMethod method : {LogMethod::fdatasync, LogMethod::direct_dsync}) {
    for (std::uint64_t call = 1;; ++call) {
      const auto disk = SimDisk::make();
      Log log(disk, method);
      disk->fail_at(call, Fault::power_cut);
      std::uint64_t synced = 0;
      std::uint64_t written = 0;
      bool done = false;
      bool started = false;
      if (log.writer.start(Epoch(1), Lsn(0), 0)) {
        started = true;
        for (std::uint64_t n = 1; n <= 12; ++n) {
          written = n;
          if (!log.write(n, text_of(n, 1500), n % 2 == 0)) break;
          if (n % 2 == 0) synced = n;
          done = n == 12;
        }
      }
      for (std::uint64_t seed = 0; started && seed < 12; ++seed) {
        const auto after = seed == 0   ? disk->crashed(keep_none)
                           : seed == 1 ? disk->crashed(keep_all)
                                       : disk->crashed(keep_some(seed, seed < 7 ? 50 : 85));
        const auto found = recover(*after);
        ASSERT_TRUE(found) << "call " << call << " seed " << seed << ": " << found.error().what;
        ASSERT_GE(found->texts.size(), synced) << "call " << call << " seed " << seed;
        ASSERT_LE(found->texts.size(), written);
        for (std::size_t i = 0; i < found->texts.size(); ++i) {
          ASSERT_EQ(found->texts[i], text_of(i + 1, 1500));
        }
      }
      if (done) break;
    }
  }
}

TEST(Log, does_not_replay_stale_recycled_frames_after_a_cut) {
  // Frames 1 to 6 were written; 4 to 6 are lost in a cut. The next epoch begins in another
  // segment; when the first one is used again, its old frames lie behind the new ones.
  const auto disk = SimDisk::make();
  Log log(disk);
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  for (std::uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(log.write(n, text_of(n), true));
  ASSERT_EQ(disk->pending_units(), 0U);
  for (std::uint64_t n = 4; n <= 6; ++n) ASSERT_TRUE(log.write(n, text_of(n, 600), false));
  const auto crashed = disk->crashed([](std::size_t unit) { return unit > 1; });
  const auto first = recover(*crashed);
  ASSERT_TRUE(first) << first.error().what;
  ASSERT_EQ(first->texts.size(), 3U);
  EXPECT_GT(first->recovery.dropped_frames, 0U) << "frames 5 and 6 are intact behind the hole";

  Log next(crashed);
  next.writer.segments().adopt(first->recovery.live, first->recovery.reusable,
                               first->recovery.free_slots);
  ASSERT_TRUE(next.writer.start(Epoch(2), first->recovery.end_lsn, first->recovery.chain));
  // The same sizes as the lost ones: every new frame ends where a stale one begins.
  ASSERT_TRUE(next.write(4, "new " + text_of(4, 596), true));
  const auto second = recover(*crashed->crashed(keep_none));
  ASSERT_TRUE(second) << second.error().what;
  ASSERT_EQ(second->texts.size(), 4U);
  EXPECT_EQ(second->texts[3].substr(0, 3), "new");

  // Now the first segment is recycled; its stale frames must stay dead.
  LogStart start{next.writer.end_lsn(), next.writer.chain(), Sequence(4)};
  ASSERT_TRUE(next.writer.segments().recycle_below(next.writer.end_lsn(), 4));
  std::uint64_t n = 5;
  std::vector<std::string> expected;
  for (; n <= 40; ++n) {
    expected.push_back(text_of(n, 700));
    ASSERT_TRUE(next.write(n, expected.back(), true));
    if (n == 20) {
      ASSERT_TRUE(next.writer.segments().recycle_below(start.lsn, 4));
    }
  }
  const auto third = recover(*crashed->crashed(keep_none), start);
  ASSERT_TRUE(third) << third.error().what;
  EXPECT_EQ(third->texts, expected);
}

TEST(Log, recycles_segments_without_making_new_files_in_a_steady_state) {
  const auto disk = SimDisk::make();
  Log log(disk);
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  LogStart start;
  for (std::uint64_t n = 1; n <= 400; ++n) {
    ASSERT_TRUE(log.write(n, text_of(n, 1000), true));
    if (n % 10 == 0) {
      start = {log.writer.end_lsn(), log.writer.chain(), Sequence(n)};
      ASSERT_TRUE(log.writer.segments().recycle_below(start.lsn, 4));
      const auto found = recover(*disk->crashed(keep_none), start);
      ASSERT_TRUE(found) << found.error().what;
      EXPECT_EQ(found->recovery.last_sequence, Sequence(n));
    }
  }
  EXPECT_LE(disk->list()->size(), 6U);
}

// A closed log of five synced frames in one segment, for the rows of the decision table.
struct Table : testing::Test {
  void SetUp() override {
    Log log(disk, LogMethod::fdatasync, 65536);
    ASSERT_TRUE(log.writer.start(Epoch(7), Lsn(0), 0));
    for (std::uint64_t n = 1; n <= 5; ++n) {
      starts.push_back(segment_data_offset + log.writer.end_lsn().value);
      ASSERT_TRUE(log.write(n, text_of(n), true));
    }
    end = segment_data_offset + log.writer.end_lsn().value;
    image = *disk->contents("log-000001");
  }
  Result<Found> with(const std::string& changed) {
    const auto copy = disk->killed();
    copy->set_contents("log-000001", changed);
    return recover(*copy);
  }
  // The frame at `offset` written anew with some fields changed and a right checksum.
  std::string rewritten(std::size_t offset, const std::function<void(FrameHeader&)>& change) {
    std::string changed = image;
    auto* at = reinterpret_cast<std::byte*>(changed.data()) + offset;
    FrameHeader header;
    const ConstBytes rest(at, changed.size() - offset);
    EXPECT_EQ(inspect_frame(rest, store_id, header), FrameState::intact);
    change(header);
    encode_frame_header(header, store_id, at);
    return changed;
  }
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  std::vector<std::size_t> starts;
  std::size_t end = 0;
  std::string image;
};

TEST_F(Table, intact_frames_are_replayed_and_unwritten_space_ends_the_log) {
  const auto found = with(image);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->texts.size(), 5U);
  EXPECT_FALSE(found->recovery.cut);
}

TEST_F(Table, any_flipped_bit_of_a_frame_with_durable_successors_is_reported) {
  // Frame 4's synced_lsn covers frames 1 to 3, frame 5's covers frame 4.
  for (std::size_t at = starts[0]; at < starts[4]; at += 3) {
    std::string changed = image;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    const auto found = with(changed);
    ASSERT_FALSE(found) << "a flip at " << at << " went unnoticed";
    EXPECT_EQ(found.error().kind, ErrorKind::corruption);
  }
}

TEST_F(Table, a_flipped_bit_of_the_last_frame_cuts_it_off) {
  for (std::size_t at = starts[4]; at < end - 8; ++at) {
    std::string changed = image;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    const auto found = with(changed);
    ASSERT_TRUE(found) << at << ": " << found.error().what;
    EXPECT_EQ(found->texts.size(), 4U) << at;
  }
}

TEST_F(Table, a_zeroed_durable_frame_is_reported_and_a_zeroed_last_frame_is_the_end) {
  for (std::size_t i = 0; i < 5; ++i) {
    std::string changed = image;
    const std::size_t stop = i + 1 < 5 ? starts[i + 1] : end;
    std::fill(changed.begin() + static_cast<std::ptrdiff_t>(starts[i]),
              changed.begin() + static_cast<std::ptrdiff_t>(stop), '\0');
    const auto found = with(changed);
    EXPECT_EQ(found.has_value(), i == 4) << i;
  }
}

TEST_F(Table, a_hole_before_frames_that_were_never_synced_is_cut) {
  // Frames 4 and 5 claim only what frame 3's sync made durable.
  const Lsn third_end(starts[3] - segment_data_offset);
  std::string changed = image;
  auto* base = reinterpret_cast<std::byte*>(changed.data());
  std::uint32_t chain = 0;
  for (std::size_t i = 3; i < 5; ++i) {
    FrameHeader header;
    ASSERT_EQ(
        inspect_frame(ConstBytes(base + starts[i], changed.size() - starts[i]), store_id, header),
        FrameState::intact);
    if (i == 4) header.chain = chain;
    header.synced_lsn = third_end;
    encode_frame_header(header, store_id, base + starts[i]);
    chain = header.checksum;
  }
  const auto whole = with(changed);
  ASSERT_TRUE(whole) << whole.error().what;
  EXPECT_EQ(whole->texts.size(), 5U);
  changed[starts[3] + 70] = static_cast<char>(changed[starts[3] + 70] ^ 1);
  const auto found = with(changed);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->texts.size(), 3U);
  EXPECT_EQ(found->recovery.dropped_frames, 1U);
  EXPECT_TRUE(found->recovery.cut);
}

TEST_F(Table, a_frame_of_another_epoch_or_lsn_ends_the_log) {
  for (int row = 0; row < 2; ++row) {
    const auto found = with(rewritten(starts[4], [&](FrameHeader& header) {
      if (row == 0) header.epoch = Epoch(6);
      if (row == 1) header.lsn = header.lsn + 8;
    }));
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(found->texts.size(), 4U);
  }
}

TEST_F(Table, an_intact_frame_that_does_not_chain_or_count_on_is_reported) {
  for (int row = 0; row < 3; ++row) {
    const auto found = with(rewritten(starts[4], [&](FrameHeader& header) {
      if (row == 0) header.chain ^= 1;
      if (row == 1) ++header.first_sequence;
      if (row == 2) header.first_sequence = Sequence(header.first_sequence.value - 1);
    }));
    ASSERT_FALSE(found) << row;
    EXPECT_EQ(found.error().kind, ErrorKind::corruption);
  }
}

TEST_F(Table, a_damaged_segment_header_is_reported_when_frames_are_behind_it) {
  for (std::size_t at = 0; at < segment_header_bytes; ++at) {
    std::string changed = image;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(with(changed)) << at;
  }
}

TEST_F(Table, a_damaged_header_of_the_last_of_two_segments_is_reported) {
  // The first segment ends intact; without the second header its frames would silently vanish.
  const auto two = SimDisk::make();
  Log log(two);
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  for (std::uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(log.write(n, text_of(n, 2000), true));
  ASSERT_EQ(log.writer.segments().live().size(), 2U);
  std::string second = *two->contents("log-000002");
  second[17] = static_cast<char>(second[17] ^ 1);
  two->set_contents("log-000002", second);
  const auto found = recover(*two);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::corruption);
}

TEST_F(Table, damage_of_the_last_frame_before_a_later_segment_is_reported) {
  // Nothing in the first segment proves that its last frame was durable; the next header does.
  const auto two = SimDisk::make();
  Log log(two);
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  for (std::uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(log.write(n, text_of(n, 2000), false));
  const std::size_t last = segment_data_offset + 2 * (log.writer.end_lsn().value / 3);
  ASSERT_TRUE(log.write(4, text_of(4, 5000), true));
  ASSERT_EQ(log.writer.segments().live().size(), 2U);
  std::string first = *two->contents("log-000001");
  first[last + 100] = static_cast<char>(first[last + 100] ^ 1);
  two->set_contents("log-000001", first);
  const auto found = recover(*two);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::corruption);
}

TEST_F(Table, a_missing_or_truncated_segment_is_reported) {
  const auto copy = disk->killed();
  ASSERT_TRUE(copy->remove("log-000001"));
  EXPECT_EQ(recover(*copy).error().kind, ErrorKind::corruption);
  EXPECT_FALSE(with(image.substr(0, 3000)));
  EXPECT_FALSE(with(image.substr(0, 5000)));
}

TEST_F(Table, a_segment_of_another_version_or_store_is_refused) {
  std::string changed = image;
  auto* base = reinterpret_cast<std::byte*>(changed.data());
  SegmentHeader header = **decode_segment_header(ConstBytes(base, 4096));
  header.store_id ^= 1;
  encode_segment_header(header, base);
  EXPECT_EQ(with(changed).error().kind, ErrorKind::corruption);
}

// Frames of a synced log in a segment of 1 MiB, more than the first record of its use speaks of.
struct Use : testing::TestWithParam<LogMethod> {
  void SetUp() override {
    Log log(disk, GetParam(), std::uint64_t{1} << 20);
    ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
    for (std::uint64_t n = 1; n <= 200; ++n) {
      starts.push_back(segment_data_offset + log.writer.end_lsn().value);
      ASSERT_TRUE(log.write(n, text_of(n, 1500), true));
    }
    const auto after = disk->crashed(keep_none);
    image = *after->contents("log-000001");
  }
  // Frames from `first` on destroyed, up to the one that begins at or behind `offset`.
  void destroy(std::size_t first, std::size_t offset) {
    std::size_t stop = first;
    while (starts[stop] < offset) ++stop;
    std::fill(image.begin() + static_cast<std::ptrdiff_t>(starts[first]),
              image.begin() + static_cast<std::ptrdiff_t>(starts[stop]), '\0');
  }
  void replace_use(std::uint64_t serial, std::uint64_t used_bytes) {
    encode_segment_use({serial, used_bytes, 0}, store_id,
                       reinterpret_cast<std::byte*>(image.data()));
  }
  Result<Found> found() {
    const auto copy = disk->killed();
    copy->set_contents("log-000001", image);
    return recover(*copy);
  }
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  std::vector<std::size_t> starts;
  std::string image;
};

TEST_P(Use, is_recorded_so_that_proof_behind_a_large_hole_is_found) {
  destroy(30, segment_data_offset + 250'000);
  const auto result = found();
  ASSERT_FALSE(result) << result->texts.size() << " frames were taken for all";
  EXPECT_EQ(result.error().kind, ErrorKind::corruption);
}

TEST_P(Use, of_an_earlier_life_of_the_segment_is_not_believed) {
  destroy(30, segment_data_offset + 250'000);
  replace_use(9, first_used_bytes);
  EXPECT_FALSE(found());
}

TEST_P(Use, that_says_too_little_loses_no_frame_and_hides_no_damage_behind_it) {
  replace_use(1, first_used_bytes);
  auto result = found();
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->texts.size(), 200U);
  destroy(100, starts[150]);
  result = found();
  EXPECT_FALSE(result);
}

INSTANTIATE_TEST_SUITE_P(Each, Use,
                         testing::Values(LogMethod::fdatasync, LogMethod::dsync,
                                         LogMethod::direct_dsync));

TEST(Log, is_not_read_far_beyond_its_end) {
  for (const std::uint64_t frames : {5U, 400U}) {
    const auto disk = SimDisk::make();
    Log log(disk, LogMethod::fdatasync, std::uint64_t{8} << 20);
    ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
    for (std::uint64_t n = 1; n <= frames; ++n) ASSERT_TRUE(log.write(n, text_of(n, 1500), true));
    CountedDisk counted(disk->killed());
    const auto found = recover(counted);
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(found->texts.size(), frames);
    EXPECT_LT(counted.read_bytes, 4 * log.writer.end_lsn().value + (std::uint64_t{256} << 10));
  }
}

TEST(LogWriter, refuses_everything_after_a_failed_sync_and_keeps_what_was_synced) {
  const auto disk = SimDisk::make();
  Log log(disk);
  ASSERT_TRUE(log.writer.start(Epoch(1), Lsn(0), 0));
  ASSERT_TRUE(log.write(1, text_of(1), true));
  disk->fail_at(2, Fault::io_error);
  EXPECT_FALSE(log.write(2, text_of(2), true));
  EXPECT_EQ(log.write(3, text_of(3), true).error().kind, ErrorKind::poisoned);
  EXPECT_EQ(recover(*disk->crashed(keep_none))->texts.size(), 1U);
}

TEST(LogProbe, chooses_a_method_and_leaves_nothing_behind) {
  const auto disk = SimDisk::make();
  EXPECT_TRUE(probe_log_method(*disk));
  EXPECT_TRUE(disk->list()->empty());
}

}  // namespace
}  // namespace lode
