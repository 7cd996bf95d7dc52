// One test for each place where the bugs of such engines hide. Further ones: stale recycled frames
// after a cut (wal/log_test.cpp); seek backtracking, keys that are prefixes of others, a sleeping
// cursor (overlay/overlay_test.cpp); growth before its reference, missing directory syncs, crashes
// during recovery (store/crash_test.cpp).
#include <cstring>
#include "engine/store/root.h"
#include "engine/store/store_fixture.h"
#include "engine/wal/log_recovery.h"
#include "engine/wal/log_writer.h"

namespace lode {
namespace {

Model put_some(Store& store, Model model, int round) {
  for (int i = 0; i < 12; ++i) {
    const std::string key = "k" + std::to_string((round * 7 + i) % 30);
    const std::string value = std::string(400, 'v') + std::to_string(round);
    EXPECT_TRUE(store.put(key, value, Durability::sync));
    model[key] = value;
  }
  return model;
}

// The newest root of the image, and the image with one byte of that root's manifest changed.
std::shared_ptr<SimDisk> with_damaged_manifest(const SimDisk& disk) {
  auto copy = disk.crashed(keep_none);
  auto file = copy->open("data", {}).value();
  const RootSlots slots = read_roots(*file).value();
  const ValueRef manifest = slots.root[*slots.newest()]->manifest;
  std::string data = *copy->contents("data");
  data[manifest.offset] = static_cast<char>(data[manifest.offset] ^ 1);
  copy->set_contents("data", data);
  return copy;
}

TEST(Hiding, root_fallback_finds_its_log_and_its_pages_not_reused) {
  // After each checkpoint or merge the newest root's manifest is damaged. The older root must have
  // its log, and none of its pages may have been written since.
  std::mt19937_64 random(3);
  auto disk = SimDisk::make();
  auto store = open_small(disk);
  Model model;
  for (int round = 0; round < 15; ++round) {
    SCOPED_TRACE(round);
    if (round % 3 == 2) {  // a store that was opened again knows the older root's pages as well
      store.reset();
      disk = disk->killed();
      store = open_small(disk);
      ASSERT_TRUE(store);
    }
    model = put_some(*store, model, round);
    if (round > 1) {
      // A checkpoint that has written its tree and finds no space for its manifest: had it used
      // pages or log of the older root, the fallback would now be broken.
      disk->fail_at(3, Fault::no_space);
      ASSERT_EQ(store->checkpoint().error().kind, ErrorKind::no_space);
      auto older = open_small(with_damaged_manifest(*disk->crashed(keep_all)));
      ASSERT_TRUE(older);
      EXPECT_TRUE(older->recovery().root_fallback);
      expect_contents(older->snapshot(), model, random);
      const auto sound = older->verify();
      ASSERT_TRUE(sound) << sound.error().what;
    }
    if (round % 4 == 3) {
      ASSERT_TRUE(store->drain());
    } else {
      ASSERT_TRUE(store->checkpoint());
    }
    const auto damaged = with_damaged_manifest(*disk);
    auto fallback = open_small(damaged);
    ASSERT_TRUE(fallback);
    EXPECT_TRUE(fallback->recovery().root_fallback);
    expect_contents(fallback->snapshot(), model, random);
    const auto status = fallback->verify();
    ASSERT_TRUE(status) << status.error().what;
    // The store goes on from the older root, and its next root takes the damaged one's place.
    Model next = put_some(*fallback, model, round + 100);
    ASSERT_TRUE(fallback->checkpoint());
    auto again = open_small(damaged->crashed(keep_none));
    ASSERT_TRUE(again);
    expect_contents(again->snapshot(), next, random);
    ASSERT_TRUE(again->verify());
  }
}

TEST(Hiding, a_root_whose_sync_failed_is_made_durable_by_the_next_opening) {
  // The next process sees the root in the page cache, where it counts as clean. It must not take
  // it for durable: the log that the root before it needs is given up with the checkpoint after.
  std::mt19937_64 random(19);
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  Model model = put_some(*store, {}, 1);
  ASSERT_TRUE(store->checkpoint());
  model = put_some(*store, model, 2);
  disk->fail_at(6, Fault::io_error);  // tree, filter, manifest, sync, root, and then its sync
  ASSERT_EQ(store->checkpoint().error().kind, ErrorKind::io);
  const auto survived = disk->killed();
  auto next = open_small(survived);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->recovery().root_generation, 3U);
  model = put_some(*next, model, 3);
  ASSERT_TRUE(next->checkpoint());
  // The segments that were given up are written again: until then the old log would still be there.
  for (int round = 4; round < 8; ++round) model = put_some(*next, model, round);
  auto fallback = open_small(with_damaged_manifest(*survived));
  ASSERT_TRUE(fallback);
  expect_contents(fallback->snapshot(), model, random);
}

std::unique_ptr<Store> open_with(const std::shared_ptr<SimDisk>& disk, const Options& options) {
  auto store = Store::open(disk, options);
  return store ? std::move(*store) : nullptr;
}

TEST(Hiding, an_opening_syncs_what_may_be_cached_only_and_nothing_else) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.log_prepared_bytes = 1;  // so that no opening has to make a segment
  auto store = open_with(disk, options);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->put("a", "1", Durability::sync));
  // The frame once more, its sync; the header of the new segment, its sync. The segment's record
  // says that the root is durable.
  const auto killed = disk->killed();
  auto again = open_with(killed, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(killed->changing_calls(), 4U);
  // A root that no record speaks of, and the directory, are made durable too: three calls more.
  ASSERT_TRUE(again->checkpoint());
  ASSERT_TRUE(again->put("b", "2", Durability::sync));
  const auto later = killed->killed();
  auto last = open_with(later, options);
  ASSERT_TRUE(last);
  EXPECT_EQ(later->changing_calls(), 7U);
}

TEST(Hiding, damage_of_both_roots_is_reported_and_not_taken_for_an_empty_store) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  put_some(*store, {}, 1);
  ASSERT_TRUE(store->checkpoint());
  auto copy = disk->crashed(keep_none);
  std::string data = *copy->contents("data");
  data[40] = static_cast<char>(data[40] ^ 1);
  copy->set_contents("data", data);
  auto one = Store::open(copy->killed(), small_options());
  ASSERT_TRUE(one) << one.error().what;
  EXPECT_TRUE((*one)->recovery().root_fallback);
  data[page_bytes + 40] = static_cast<char>(data[page_bytes + 40] ^ 1);
  copy->set_contents("data", data);
  EXPECT_EQ(Store::open(copy, small_options()).error().kind, ErrorKind::corruption);
}

TEST(Hiding, a_log_without_its_data_file_is_not_taken_for_a_new_store) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  put_some(*store, {}, 1);
  const auto copy = disk->crashed(keep_none);
  const auto before = copy->contents("log-000001");
  ASSERT_TRUE(copy->remove("data"));
  EXPECT_EQ(Store::open(copy, small_options()).error().kind, ErrorKind::corruption);
  EXPECT_EQ(copy->contents("log-000001"), before) << "nothing was removed";
}

TEST(Hiding, a_crash_in_the_first_creation_leaves_a_directory_that_can_be_opened) {
  for (std::uint64_t call = 1; call < 60; ++call) {
    const auto disk = SimDisk::make();
    disk->fail_at(call, Fault::power_cut);
    const bool created = Store::open(disk, small_options()).has_value();
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE("call " + std::to_string(call) + " seed " + std::to_string(seed));
      auto store = open_small(disk->crashed(keep_some(seed, static_cast<unsigned>(seed) * 14)));
      ASSERT_TRUE(store);
      EXPECT_EQ(store->snapshot().sequence(), 0U);
      ASSERT_TRUE(store->put("a", "1", Durability::sync));
    }
    if (created) return;
  }
  FAIL() << "the creation never finished";
}

TEST(Hiding, tombstones_stay_until_they_reach_the_base) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.level_ratio = 3;
  auto store = Store::open(disk, options).value();
  Model model = put_some(*store, {}, 1);
  ASSERT_TRUE(store->compact());  // the base
  ASSERT_TRUE(store->erase("k7", Durability::sync));
  model.erase("k7");
  ASSERT_TRUE(store->checkpoint());
  std::mt19937_64 random(5);
  for (int round = 0; round < 12; ++round) {
    // Merges of upper runs, with the tombstone's run among them.
    ASSERT_TRUE(store->put("other" + std::to_string(round), "x", Durability::sync));
    model["other" + std::to_string(round)] = "x";
    ASSERT_TRUE(store->drain());
    expect_contents(store->snapshot(), model, random);
    std::string value;
    ASSERT_FALSE(store->get("k7", value).value()) << "round " << round;
  }
  ASSERT_TRUE(store->compact());
  ASSERT_FALSE(contents_of(store->snapshot()).contains("k7"));
  EXPECT_EQ(store->statistics().at("tree_entries"), static_cast<double>(model.size()))
      << "nothing is left of what was erased";
}

TEST(Hiding, no_space_in_a_checkpoint_leaves_everything_readable_and_leaks_no_space) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  Model model = put_some(*store, {}, 1);
  ASSERT_TRUE(store->checkpoint());
  std::mt19937_64 random(7);
  std::size_t failures = 0;
  for (std::uint64_t call = 1; call < 60; ++call) {
    model = put_some(*store, model, static_cast<int>(call));
    const double used = store->statistics().at("data_pages_used");
    // Past the flush of the log: the first writes of the data file.
    disk->fail_at(call % 3 + 1, Fault::no_space);
    const auto status = store->checkpoint();
    if (!status && status.error().kind != ErrorKind::no_space) break;
    if (!status) {
      ++failures;
      const auto after = store->statistics();
      ASSERT_EQ(after.at("data_pages_used"), used);
    }
    expect_contents(store->snapshot(), model, random);
    if (!store->put("again", std::to_string(call), Durability::sync)) break;
    model["again"] = std::to_string(call);
    ASSERT_TRUE(store->checkpoint());  // space has returned
    expect_contents(store->snapshot(), model, random);
    if (failures == 3) break;
  }
  EXPECT_GE(failures, 1U);
  auto again = open_small(disk->crashed(keep_none));
  expect_contents(again->snapshot(), model, random);
}

TEST(Hiding, a_failed_log_write_poisons_and_the_sequence_goes_on_after_a_reopen) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->put("a", "1", Durability::sync));
  disk->fail_at(1, Fault::io_error);
  EXPECT_EQ(store->put("b", "2", Durability::sync).error().kind, ErrorKind::outcome_unknown);
  EXPECT_EQ(store->put("c", "3", Durability::sync).error().kind, ErrorKind::poisoned);
  EXPECT_EQ(store->checkpoint().error().kind, ErrorKind::poisoned);
  std::string value;
  EXPECT_TRUE(store->get("a", value).value());
  auto again = open_small(disk->crashed(keep_none));
  ASSERT_TRUE(again->put("d", "4", Durability::sync));
  const Model found = contents_of(again->snapshot());
  EXPECT_TRUE(found.contains("a") && found.contains("d") && !found.contains("c"));
}

TEST(Hiding, a_stale_frame_in_a_segment_that_is_begun_anew_ends_the_log) {
  // Two frames of the same size, the first lost, the second kept: a cut at the segment's beginning.
  // The segment is used again from the same LSN, and the stale frame sits just behind the new one.
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->sync());
  const std::size_t before = disk->pending_units();
  ASSERT_TRUE(store->put("a", std::string(2000, '1'), Durability::buffered));
  const std::size_t first = disk->pending_units();
  ASSERT_TRUE(store->put("b", std::string(2000, '2'), Durability::buffered));
  const auto crashed = disk->crashed([&](std::size_t u) { return u < before || u >= first; });
  auto next = open_small(crashed);
  ASSERT_TRUE(next);
  ASSERT_EQ(next->snapshot().sequence(), 0U);
  ASSERT_TRUE(next->put("c", std::string(2000, '3'), Durability::sync));
  auto again = open_small(crashed->crashed(keep_none));
  ASSERT_TRUE(again);
  EXPECT_EQ(contents_of(again->snapshot()), (Model{{"c", std::string(2000, '3')}}));
}

TEST(Hiding, counters_far_beyond_32_bits_work) {
  const auto disk = SimDisk::make();
  const Lsn start((std::uint64_t{1} << 40) + 4096);
  const Sequence sequence(std::uint64_t{1} << 35);
  LogWriter writer(*disk, 1, LogMethod::fdatasync, 8192);
  ASSERT_TRUE(writer.start(Epoch(std::uint64_t{1} << 33), start, 7));
  for (std::uint64_t i = 1; i <= 30; ++i) {
    FrameBuffer buffer;
    std::memset(buffer.extend(900), 'x', 900);
    buffer.count_commit(sequence + i);
    ASSERT_TRUE(writer.write(buffer, true));
  }
  const auto found = recover_log(*disk, 1, {start, 7, sequence}, false,
                                 [](Sequence, std::uint32_t, ConstBytes) -> Status { return {}; });
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(found->last_sequence, sequence + 30);
}

TEST(Hiding, space_is_reused_and_stays_bounded_under_overwrites) {
  auto store = open_small(SimDisk::make());
  Model model;
  double most = 0;
  for (int round = 0; round < 60; ++round) {
    model = put_some(*store, model, round);
    ASSERT_TRUE(store->drain());
    if (round == 20) most = store->statistics().at("data_pages_end");
  }
  EXPECT_LE(store->statistics().at("data_pages_end"), most * 1.5);
}

TEST(Hiding, a_flipped_bit_anywhere_in_the_data_file_is_reported_or_harmless) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  Model model;
  for (int round = 0; round < 4; ++round) {
    model = put_some(*store, model, round);
    ASSERT_TRUE(
        store->put("large", std::string(20000, static_cast<char>('a' + round)), Durability::sync));
    ASSERT_TRUE(store->checkpoint());
  }
  model["large"] = std::string(20000, 'd');
  store.reset();
  const std::string data = *disk->contents("data");
  std::mt19937_64 random(11);
  int reported = 0;
  for (int i = 0; i < 300; ++i) {
    std::string changed = data;
    const std::size_t at = i < 100 ? random() % (2 * page_bytes) : random() % data.size();
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    const auto copy = disk->killed();
    copy->set_contents("data", changed);
    auto opened = Store::open(copy, small_options());
    if (!opened) {
      ++reported;
      continue;
    }
    if (!(*opened)->verify()) {
      ++reported;
      continue;
    }
    ASSERT_EQ(contents_of((*opened)->snapshot()), model) << "silently wrong after a flip at " << at;
  }
  EXPECT_GT(reported, 30);
}

}  // namespace
}  // namespace lode
