// The public interface: reads, writes, transactions, durability modes, errors.
#include <atomic>
#include <filesystem>
#include <thread>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

std::string get(Store& store, std::string_view key) {
  std::string value;
  const auto found = store.get(key, value);
  EXPECT_TRUE(found);
  return found && *found ? value : "(none)";
}

TEST(Store, works_in_a_real_directory_and_comes_back) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lode_store_XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  Options options;
  options.log_segment_bytes = 65536;
  {
    auto store = Store::open(pattern + "/s", options).value();
    EXPECT_TRUE(store->recovery().created);
    ASSERT_TRUE(store->put("a", "1", Durability::sync));
    ASSERT_TRUE(store->checkpoint());
    ASSERT_TRUE(store->put("b", "2", Durability::sync));
    EXPECT_EQ(Store::open(pattern + "/s", options).error().kind, ErrorKind::locked)
        << "two writers at once";
    ASSERT_TRUE(store->close());
  }
  {
    Options reader = options;
    reader.read_only = true;
    auto store = Store::open(pattern + "/s", reader).value();
    EXPECT_EQ(get(*store, "b"), "2");
    EXPECT_EQ(store->put("c", "3", Durability::sync).error().kind, ErrorKind::unsupported);
    EXPECT_EQ(store->checkpoint().error().kind, ErrorKind::unsupported);
    auto second = Store::open(pattern + "/s", reader);
    EXPECT_TRUE(second) << "readers share the lock";
  }
  auto store = Store::open(pattern + "/s", options).value();
  EXPECT_EQ(store->recovery().replayed_commits, 1U);
  EXPECT_EQ(get(*store, "a"), "1");
  EXPECT_EQ(get(*store, "b"), "2");
  store.reset();
  Options only = options;
  only.create = false;
  EXPECT_EQ(Store::open(pattern + "/none", only).error().kind, ErrorKind::not_found);
  std::filesystem::remove_all(pattern);
}

TEST(Store, refuses_what_is_beyond_the_limits_with_a_clear_error) {
  auto store = open_small(SimDisk::make());
  const auto kind = [](const auto& result) { return result.error().kind; };
  EXPECT_TRUE(store->put(std::string(1024, 'k'), "v", Durability::sync));
  EXPECT_EQ(kind(store->put(std::string(1025, 'k'), "v", Durability::sync)), ErrorKind::bad_input);
  EXPECT_TRUE(store->put("", "", Durability::sync));
  EXPECT_EQ(get(*store, ""), "");
  EXPECT_TRUE(store->commit({}, Durability::sync));
  Options u64 = small_options();
  u64.key_kind = KeyKind::u64;
  auto numbers = Store::open(SimDisk::make(), u64).value();
  EXPECT_TRUE(numbers->put(u64_key(7), "seven", Durability::sync));
  EXPECT_EQ(kind(numbers->put("short", "v", Durability::sync)), ErrorKind::bad_input);
}

TEST(Store, refuses_a_store_of_the_other_kind_of_keys) {
  const auto disk = SimDisk::make();
  ASSERT_TRUE(open_small(disk)->close());
  Options u64 = small_options();
  u64.key_kind = KeyKind::u64;
  EXPECT_EQ(Store::open(disk->killed(), u64).error().kind, ErrorKind::bad_input);
}

TEST(Store, is_not_closed_while_a_snapshot_or_transaction_is_open) {
  auto store = open_small(SimDisk::make());
  ASSERT_TRUE(store->put("a", "1", Durability::sync));
  {
    const Snapshot snapshot = store->snapshot();
    EXPECT_EQ(store->close().error().kind, ErrorKind::bad_input);
    std::string value;
    EXPECT_TRUE(snapshot.get("a", value).value());
  }
  EXPECT_TRUE(store->close());
}

TEST(Store, lets_a_snapshot_outlive_the_store) {
  auto store = open_small(SimDisk::make());
  ASSERT_TRUE(store->put("a", std::string(3000, 'v'), Durability::sync));
  ASSERT_TRUE(store->checkpoint());
  Snapshot snapshot = store->snapshot();
  Cursor cursor = snapshot.cursor();
  cursor.seek_first();
  store.reset();
  ASSERT_TRUE(cursor.valid());
  EXPECT_EQ(cursor.value().value().size(), 3000U);
}

TEST(Store, makes_a_batch_visible_whole_and_in_the_order_of_its_operations) {
  auto store = open_small(SimDisk::make());
  WriteBatch batch;
  batch.put("a", "1");
  batch.put("b", "2");
  batch.put("c", "3");
  batch.erase_range("a", "c");
  batch.put("b", "again");
  batch.erase("c");
  batch.put("d", "4");
  ASSERT_TRUE(store->commit(batch, Durability::sync));
  EXPECT_EQ(contents_of(store->snapshot()), (Model{{"b", "again"}, {"d", "4"}}));
  WriteBatch rest;
  rest.erase_from("c");
  ASSERT_TRUE(store->commit(rest, Durability::volatile_));
  EXPECT_EQ(contents_of(store->snapshot()), (Model{{"b", "again"}}));
}

TEST(Store, stores_large_values_through_log_overlay_and_tree) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  const std::string large(3000000, 'L');
  ASSERT_TRUE(store->put("big", large, Durability::sync));
  ASSERT_TRUE(store->put("small", "s", Durability::sync));
  EXPECT_EQ(get(*store, "big"), large);
  auto again = open_small(disk->crashed(keep_none));
  EXPECT_EQ(get(*again, "big"), large);
  ASSERT_TRUE(store->checkpoint());
  EXPECT_EQ(get(*store, "big"), large);
  EXPECT_TRUE(store->verify());
  auto third = open_small(disk->crashed(keep_none));
  EXPECT_EQ(third->recovery().replayed_commits, 0U);
  EXPECT_EQ(get(*third, "big"), large);
}

TEST(Durability, of_each_mode_is_what_it_says) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->put("s", "1", Durability::sync));
  EXPECT_EQ(open_small(disk->crashed(keep_none))->snapshot().sequence(), 1U);
  ASSERT_TRUE(store->put("b", "1", Durability::buffered));
  EXPECT_EQ(open_small(disk->crashed(keep_none))->snapshot().sequence(), 1U);
  EXPECT_EQ(open_small(disk->killed())->snapshot().sequence(), 2U) << "survives SIGKILL";
  ASSERT_TRUE(store->put("v", "1", Durability::volatile_));
  EXPECT_EQ(open_small(disk->killed())->snapshot().sequence(), 2U);
  EXPECT_EQ(get(*store, "v"), "1") << "visible at once";
  ASSERT_TRUE(store->put("s", "2", Durability::sync));
  EXPECT_EQ(open_small(disk->crashed(keep_none))->snapshot().sequence(), 4U)
      << "a later sync takes along what came before";
  ASSERT_TRUE(store->put("v", "2", Durability::volatile_));
  ASSERT_TRUE(store->sync());
  EXPECT_EQ(open_small(disk->crashed(keep_none))->snapshot().sequence(), 5U);
}

TEST(Durability, window_never_has_more_unsynced_operations_than_it_may) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.window_operations = 10;
  options.window_delay = std::chrono::milliseconds(3600000);  // only the count triggers
  auto store = Store::open(disk, options).value();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const auto receipt = store->put("k" + std::to_string(i), "v", Durability::window);
    ASSERT_TRUE(receipt);
    ASSERT_EQ(receipt->sequence, i);
    if (i % 7 != 0) continue;
    auto crashed = Store::open(disk->crashed(keep_none), options).value();
    EXPECT_GE(crashed->snapshot().sequence() + 10, i);
  }
  WriteBatch large;
  for (int i = 0; i < 11; ++i) large.put("l" + std::to_string(i), "v");
  ASSERT_TRUE(store->commit(large, Durability::window)->durable) << "larger than the window";
}

TEST(Durability, window_starts_a_flush_after_its_delay) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.window_delay = std::chrono::milliseconds(1);
  auto store = Store::open(disk, options).value();
  ASSERT_TRUE(store->put("a", "1", Durability::window));
  for (int i = 0; i < 10000; ++i) {  // no deadline of our own but the test's
    if (Store::open(disk->crashed(keep_none), options).value()->snapshot().sequence() == 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL() << "the window was never flushed";
}

TEST(Transaction, reads_its_own_writes_and_rolls_back_without_a_trace) {
  auto store = open_small(SimDisk::make());
  ASSERT_TRUE(store->put("a", "1", Durability::sync));
  {
    Transaction transaction = store->begin();
    transaction.put("b", "2");
    transaction.erase("a");
    std::string value;
    EXPECT_FALSE(transaction.get("a", value).value());
    EXPECT_TRUE(transaction.get("b", value).value());
    const auto all = transaction.scan("", std::nullopt).value();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].first, "b");
    EXPECT_EQ(get(*store, "a"), "1");
    transaction.rollback();
    EXPECT_EQ(transaction.commit(Durability::sync).error().kind, ErrorKind::bad_input);
  }
  EXPECT_EQ(contents_of(store->snapshot()), (Model{{"a", "1"}}));
}

TEST(Transaction, prevents_lost_updates_under_both_isolations) {
  for (const Isolation isolation : {Isolation::snapshot, Isolation::serializable}) {
    for (const bool with_checkpoint : {false, true}) {
      auto store = open_small(SimDisk::make());
      ASSERT_TRUE(store->put("x", "0", Durability::sync));
      Transaction one = store->begin(isolation);
      Transaction two = store->begin(isolation);
      std::string value;
      ASSERT_TRUE(one.get("x", value).value());
      ASSERT_TRUE(two.get("x", value).value());
      one.put("x", "1");
      two.put("x", "2");
      ASSERT_TRUE(one.commit(Durability::sync));
      if (with_checkpoint) {
        ASSERT_TRUE(store->checkpoint());  // the change has left the overlay
      }
      EXPECT_EQ(two.commit(Durability::sync).error().kind, ErrorKind::conflict);
      EXPECT_EQ(get(*store, "x"), "1");
    }
  }
}

TEST(Transaction, allows_write_skew_under_snapshot_and_prevents_it_under_serializable) {
  for (const Isolation isolation : {Isolation::snapshot, Isolation::serializable}) {
    auto store = open_small(SimDisk::make());
    ASSERT_TRUE(store->put("x", "1", Durability::sync));
    ASSERT_TRUE(store->put("y", "1", Durability::sync));
    Transaction one = store->begin(isolation);
    Transaction two = store->begin(isolation);
    std::string value;
    ASSERT_TRUE(one.get("y", value).value());
    ASSERT_TRUE(two.get("x", value).value());
    one.put("x", "0");
    two.put("y", "0");
    ASSERT_TRUE(one.commit(Durability::sync));
    EXPECT_EQ(two.commit(Durability::sync).has_value(), isolation == Isolation::snapshot);
  }
}

TEST(Transaction, prevents_phantoms_under_serializable) {
  auto store = open_small(SimDisk::make());
  ASSERT_TRUE(store->put("b", "1", Durability::sync));
  Transaction transaction = store->begin(Isolation::serializable);
  ASSERT_EQ(transaction.scan("a", "z")->size(), 1U);
  ASSERT_TRUE(store->put("c", "2", Durability::sync));
  ASSERT_EQ(transaction.scan("a", "z")->size(), 1U) << "no read skew within it";
  transaction.put("count", "1");
  EXPECT_EQ(transaction.commit(Durability::sync).error().kind, ErrorKind::conflict);
  Transaction other = store->begin(Isolation::serializable);
  ASSERT_EQ(other.scan("a", "bb")->size(), 1U);
  ASSERT_TRUE(store->put("d", "3", Durability::sync)) << "outside of what was read";
  other.put("count", "1");
  EXPECT_TRUE(other.commit(Durability::sync));
}

TEST(Threads, commit_side_by_side_in_groups_and_lose_nothing) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  constexpr int threads = 6;
  constexpr int commits = 60;
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < commits; ++i) {
        const auto durability = i % 3 == 0   ? Durability::sync
                                : i % 3 == 1 ? Durability::buffered
                                             : Durability::window;
        ASSERT_TRUE(store->put("t" + std::to_string(t), std::to_string(i), durability));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  ASSERT_TRUE(store->sync());
  auto again = open_small(disk->crashed(keep_none));
  EXPECT_EQ(again->snapshot().sequence(), threads * commits);
  for (int t = 0; t < threads; ++t) {
    EXPECT_EQ(get(*again, "t" + std::to_string(t)), std::to_string(commits - 1));
  }
}

TEST(Threads, read_beside_writers_checkpoints_and_merges) {
  // Each commit writes the same number under every key: a reader that sees two numbers in one
  // snapshot has seen a torn commit.
  Options options = small_options();
  options.background = true;
  options.overlay_bytes = 20000;
  auto store = Store::open(SimDisk::make(), options).value();
  std::atomic<bool> stop{false};
  const auto write = [&](int number, Durability durability) {
    WriteBatch batch;
    for (int k = 0; k < 20; ++k) {
      batch.put("key" + std::to_string(k), std::to_string(number) + std::string(100, 'v'));
    }
    ASSERT_TRUE(store->commit(batch, durability));
  };
  write(0, Durability::sync);
  std::vector<std::thread> readers;
  std::atomic<int> rounds{0};
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      int newest = 0;
      while (!stop.load()) {
        const Snapshot snapshot = store->snapshot();
        Cursor cursor = snapshot.cursor();
        int seen = 0;
        int first = -1;
        for (cursor.seek_first(); cursor.valid(); cursor.next()) {
          const int number = std::stoi(std::string(cursor.value().value()));
          if (first < 0) first = number;
          ASSERT_EQ(number, first);
          ++seen;
        }
        ASSERT_TRUE(cursor.status());
        ASSERT_EQ(seen, 20);
        ASSERT_GE(first, newest) << "time does not run backwards";
        newest = first;
        std::string value;
        ASSERT_TRUE(store->get("key" + std::to_string(t), value).value());
        ASSERT_GE(std::stoi(value), newest);
        rounds.fetch_add(1);
      }
    });
  }
  for (int number = 1; number < 300 || rounds.load() < 20; ++number) {
    write(number, number % 3 == 0 ? Durability::volatile_ : Durability::sync);
    if (number % 50 == 0) {
      ASSERT_TRUE(store->drain());
    }
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(store->verify());
  EXPECT_TRUE(store->close());
}

}  // namespace
}  // namespace lode
