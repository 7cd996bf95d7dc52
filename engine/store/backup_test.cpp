// Backups of snapshots: whole, durable, beside writers, and refused where something is in the way.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

// A store with overlay, several runs, large values, erased keys. Prints its seed on a failure.
std::unique_ptr<Store> filled_store(const std::shared_ptr<SimDisk>& disk, const Options& options,
                                    std::uint64_t seed, Model& model) {
  auto store = Store::open(disk, options).value();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(
        store->commit(random_batch(random, model, options.key_kind), Durability::volatile_));
    if (i % 20 == 15) {
      EXPECT_TRUE(store->checkpoint());
    }
  }
  return store;
}

TEST(Backup, is_a_store_with_what_the_snapshot_shows_durable_when_it_is_done) {
  for (const KeyKind keys : {KeyKind::bytes, KeyKind::u64}) {
    Options options = small_options();
    options.key_kind = keys;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      Model model;
      auto store = filled_store(SimDisk::make(), options, seed, model);
      const Snapshot snapshot = store->snapshot();
      const Model then = model;
      ASSERT_TRUE(store->commit(random_batch(random, model, keys), Durability::sync));
      ASSERT_TRUE(store->compact()) << "later changes of the source do not show";
      const auto target = SimDisk::make();
      const auto report = snapshot.backup(*target);
      ASSERT_TRUE(report) << report.error().what;
      EXPECT_EQ(report->entries, then.size());
      EXPECT_EQ(report->sequence, snapshot.sequence());
      Options only = options;
      only.create = false;
      const auto survivor = target->crashed(keep_none);
      auto copy = Store::open(survivor, only).value();
      EXPECT_EQ(contents_of(copy->snapshot()), then);
      EXPECT_EQ(copy->snapshot().sequence(), snapshot.sequence());
      EXPECT_TRUE(copy->verify());
      // It goes on as a store like any other.
      Model after = then;
      ASSERT_TRUE(copy->commit(random_batch(random, after, keys), Durability::sync));
      ASSERT_TRUE(copy->drain());
      copy.reset();
      copy = Store::open(survivor->crashed(keep_none), only).value();
      EXPECT_EQ(contents_of(copy->snapshot()), after);
      EXPECT_EQ(copy->snapshot().sequence(), snapshot.sequence() + 1);
      EXPECT_TRUE(copy->verify());
    }
  }
}

TEST(Backup, of_an_empty_store_is_an_empty_store) {
  auto store = open_small(SimDisk::make());
  const auto target = SimDisk::make();
  ASSERT_TRUE(store->snapshot().backup(*target));
  auto copy = open_small(target->crashed(keep_none));
  EXPECT_FALSE(copy->recovery().created);
  EXPECT_TRUE(contents_of(copy->snapshot()).empty());
}

TEST(Backup, cut_off_anywhere_leaves_no_store_or_a_whole_one) {
  Model model;
  auto store = filled_store(SimDisk::make(), small_options(), 9, model);
  const Snapshot snapshot = store->snapshot();
  Options options = small_options();
  options.create = false;
  bool finished = false;
  std::uint64_t call = 1;
  std::uint64_t whole = 0;
  for (; !finished; ++call) {
    const auto target = SimDisk::make();
    target->fail_at(call, Fault::power_cut);
    finished = snapshot.backup(*target).has_value();
    for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
      SCOPED_TRACE("power cut at call " + std::to_string(call) + ", choice " +
                   std::to_string(seed));
      const auto image = target->crashed(seed == 0   ? keep_none
                                         : seed == 1 ? keep_all
                                                     : keep_some(seed, 60));
      auto copy = Store::open(image, options);
      if (!copy) {
        ASSERT_FALSE(finished) << copy.error().what;
        ASSERT_EQ(copy.error().kind, ErrorKind::not_found) << copy.error().what;
        continue;
      }
      ++whole;
      ASSERT_EQ(contents_of((*copy)->snapshot()), model);
      ASSERT_TRUE((*copy)->verify());
    }
  }
  EXPECT_GT(call, 10U);
  EXPECT_GT(whole, 4U) << "a cut behind the rename leaves the whole store";
}

TEST(Backup, that_fails_can_be_tried_again_in_the_same_place) {
  Model model;
  auto store = filled_store(SimDisk::make(), small_options(), 10, model);
  const Snapshot snapshot = store->snapshot();
  for (const Fault fault : {Fault::no_space, Fault::io_error}) {
    bool finished = false;
    for (std::uint64_t call = 1; !finished; ++call) {
      SCOPED_TRACE("fault at call " + std::to_string(call));
      auto target = SimDisk::make();
      target->fail_at(call, fault);
      const auto report = snapshot.backup(*target);
      finished = report.has_value();
      if (finished) break;
      const auto names = target->list().value();
      if (std::find(names.begin(), names.end(), "data") != names.end()) continue;  // the last sync
      EXPECT_EQ(report.error().kind,
                fault == Fault::no_space ? ErrorKind::no_space : ErrorKind::io);
      target = target->killed();  // unlocked
      const auto again = snapshot.backup(*target);
      ASSERT_TRUE(again) << again.error().what;
      EXPECT_EQ(contents_of(open_small(target->crashed(keep_none))->snapshot()), model);
    }
  }
}

TEST(Backup, of_a_damaged_store_says_so_and_leaves_no_store) {
  const auto disk = SimDisk::make();
  Model model;
  auto store = filled_store(disk, small_options(), 11, model);
  ASSERT_TRUE(store->compact());
  ASSERT_TRUE(store->close());
  store.reset();
  const auto image = disk->killed();
  std::string data = image->contents("data").value();
  std::size_t damaged = 0;
  for (std::size_t at = 2 * 8192; at + 8192 <= data.size(); at += 8192) {
    if (data.compare(at, 4, "lPag") != 0) continue;  // else a manifest, without which none opens
    data[at + 100] ^= 1;
    ++damaged;
  }
  ASSERT_GT(damaged, 0U);
  image->set_contents("data", data);
  auto opened = Store::open(image, small_options());
  ASSERT_TRUE(opened) << opened.error().what;
  const auto target = SimDisk::make();
  EXPECT_EQ((*opened)->snapshot().backup(*target).error().kind, ErrorKind::corruption);
  Options options = small_options();
  options.create = false;
  EXPECT_EQ(Store::open(target->killed(), options).error().kind, ErrorKind::not_found);
}

TEST(Backup, goes_into_a_new_directory_beside_writers_and_refuses_one_with_anything_in_it) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lode_backup_XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  Options options;
  options.log_segment_bytes = 65536;
  options.overlay_bytes = 200000;
  auto store = Store::open(pattern + "/s", options).value();
  const auto value_of = [](int round, int i) {
    return std::to_string(round) + std::string(200, static_cast<char>('a' + i % 26));
  };
  const auto write_round = [&](int round) {
    WriteBatch batch;
    for (int i = 0; i < 300; ++i) batch.put("k" + std::to_string(i), value_of(round, i));
    return store->commit(batch, Durability::volatile_).has_value();
  };
  ASSERT_TRUE(write_round(0));
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread writer([&] {
    while (!stop.load() && write_round(rounds + 1)) ++rounds;
  });
  while (rounds.load() < 3) std::this_thread::yield();
  const int before = rounds.load();
  const auto report = store->snapshot().backup(pattern + "/copy");
  while (rounds.load() < before + 3) std::this_thread::yield();
  stop.store(true);
  writer.join();
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_EQ(report->entries, 300U);
  options.create = false;
  auto copy = Store::open(pattern + "/copy", options).value();
  EXPECT_TRUE(copy->verify());
  const Model model = contents_of(copy->snapshot());
  ASSERT_EQ(model.size(), 300U);
  const int round = std::stoi(model.at("k0"));
  EXPECT_GE(round, before);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(model.at("k" + std::to_string(i)), value_of(round, i));
  // In the way: a store, another file.
  EXPECT_EQ(store->snapshot().backup(pattern + "/copy").error().kind, ErrorKind::locked);
  copy.reset();
  EXPECT_EQ(store->snapshot().backup(pattern + "/copy").error().kind, ErrorKind::bad_input);
  std::filesystem::create_directory(pattern + "/other");
  std::ofstream(pattern + "/other/file") << "x";
  const auto refused = store->snapshot().backup(pattern + "/other");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
  EXPECT_NE(refused.error().what.find("file"), std::string::npos);
  store.reset();
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace lode
