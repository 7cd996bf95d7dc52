// LMDB's map: it grows under everybody's feet, and nobody notices.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "adapters/lmdb_map_gate.h"
#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::Collector;
using testing::key_of;
using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

std::unique_ptr<Store> small_store(const TemporaryDirectory& directory) {
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  options.settings = {{"map_bytes", "131072"}};
  return open_store("lmdb", options);
}

TEST(LmdbMap, grows_while_readers_read) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = small_store(directory);
  const std::string value(2'000, 'v');
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      const std::unique_ptr<Session> session = new_session(*store);
      while (!stop) {
        const std::string found = read(*session, key_of(KeyKind::bytes, 0));
        if (found != "(none)" && found != value) ++wrong;
        Collector first(5);
        if (!session->scan({}, first)) ++wrong;
      }
    });
  }
  std::unique_ptr<Session> session = new_session(*store);
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    ASSERT_TRUE(ok(session->put(key_of(KeyKind::bytes, n), value)));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GE(store->counters().at("map_growths"), 4);
  EXPECT_GE(store->counters().at("me_mapsize"), 2'000'000);
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    ASSERT_EQ(read(*session, key_of(KeyKind::bytes, n)), value) << n;
  }
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

TEST(LmdbMap, grows_for_one_transaction_larger_than_itself) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = small_store(directory);
  std::unique_ptr<Session> session = new_session(*store);
  const std::string value(100'000, 'v');
  std::vector<std::string> keys;
  for (std::uint64_t n = 0; n < 20; ++n) keys.push_back(key_of(KeyKind::bytes, n));
  std::vector<Mutation> batch;
  for (const std::string& key : keys) batch.push_back({Mutation::Kind::put, key, value});
  ASSERT_TRUE(ok(session->rollback(batch)));
  EXPECT_EQ(read(*session, keys[0]), "(none)");
  ASSERT_TRUE(ok(session->apply(batch)));
  for (const std::string& key : keys) EXPECT_EQ(read(*session, key), value);
  // A view that is still held by this session is given up by its own next write.
  ASSERT_TRUE(ok(session->put("large", std::string(8 << 20, 'l'))));
  EXPECT_EQ(read(*session, "large").size(), std::size_t{8} << 20);
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

TEST(LmdbViews, stay_as_they_were_while_others_write) {
  const TemporaryDirectory directory;
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  const std::unique_ptr<Store> store = open_store("lmdb", options);
  std::unique_ptr<Session> reader = new_session(*store);
  std::unique_ptr<Session> writer = new_session(*store);
  const std::string old_value(50'000, 'o');
  ASSERT_TRUE(ok(writer->put("k", old_value)));
  std::string_view view;
  ASSERT_TRUE(reader->get("k", view).value());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ok(writer->put("k", std::string(50'000, 'n'))));
  EXPECT_TRUE(view == old_value);
  EXPECT_EQ(read(*reader, "k"), std::string(50'000, 'n'));
  reader.reset();
  writer.reset();
  EXPECT_TRUE(ok(store->close()));
}

TEST(LmdbMapGate, runs_the_change_only_when_nobody_is_inside) {
  LmdbMapGate gate;
  LmdbMapGate::Slot slot(gate);
  int changes = 0;
  EXPECT_TRUE(gate.exclusively(std::chrono::milliseconds(1), [&] { ++changes; }));
  slot.enter();
  EXPECT_FALSE(gate.exclusively(std::chrono::milliseconds(1), [&] { ++changes; }));
  slot.leave();
  EXPECT_TRUE(gate.exclusively(std::chrono::milliseconds(1), [&] { ++changes; }));
  EXPECT_EQ(changes, 2);
  slot.enter();  // the gate is open again after a refusal
  slot.leave();
}

class LmdbAppend : public ::testing::TestWithParam<KeyKind> {
 protected:
  /// Puts the keys [from, to) in one batch, ascending or the other way round.
  static Status put_range(Session& session, std::uint64_t from, std::uint64_t to, bool ascending) {
    std::vector<std::string> keys;
    for (std::uint64_t n = from; n < to; ++n) keys.push_back(key_of(GetParam(), n));
    if (!ascending) std::ranges::reverse(keys);
    std::vector<Mutation> batch;
    for (const std::string& key : keys) batch.push_back({Mutation::Kind::put, key, key});
    return session.apply(batch);
  }
  static std::unique_ptr<Store> open(const TemporaryDirectory& directory,
                                     const std::string& append) {
    OpenOptions options;
    options.directory = directory.path();
    options.durability = DurabilityClass::process;
    options.key_kind = GetParam();
    options.settings = {{"append", append}};
    return open_store("lmdb", options);
  }
};

INSTANTIATE_TEST_SUITE_P(Keys, LmdbAppend, ::testing::Values(KeyKind::bytes, KeyKind::u64));

TEST_P(LmdbAppend, appends_a_sorted_load) {
  std::map<std::string, double> pages;
  for (const std::string append : {"auto", "off"}) {
    const TemporaryDirectory directory;
    const std::unique_ptr<Store> store = open(directory, append);
    EXPECT_EQ(store->effective_settings().value().at("append"), append);
    std::unique_ptr<Session> session = new_session(*store);
    for (std::uint64_t n = 0; n < 20'000; n += 1'000) {
      ASSERT_TRUE(ok(put_range(*session, n, n + 1'000, true)));
    }
    pages[append] = store->counters().at("ms_leaf_pages");
    Collector all;
    EXPECT_EQ(session->scan({}, all).value(), 20'000U);
    session.reset();
    EXPECT_TRUE(ok(store->close()));
  }
  EXPECT_LT(pages["auto"], pages["off"]) << "appending fills each page to the last entry";
}

TEST_P(LmdbAppend, leaves_batches_in_any_other_order_as_they_were) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = open(directory, "auto");
  std::unique_ptr<Session> session = new_session(*store);
  ASSERT_TRUE(ok(put_range(*session, 500, 600, true)));
  ASSERT_TRUE(ok(put_range(*session, 0, 100, true)));     // before the others
  ASSERT_TRUE(ok(put_range(*session, 550, 700, true)));   // over the last ones
  ASSERT_TRUE(ok(put_range(*session, 700, 800, false)));  // descending
  ASSERT_TRUE(ok(put_range(*session, 799, 801, true)));   // from the last one on
  const std::string twice = key_of(GetParam(), 900);
  const std::array<Mutation, 3> mixed{{{Mutation::Kind::put, twice, "a"},
                                       {Mutation::Kind::put, twice, "b"},
                                       {Mutation::Kind::erase, twice}}};
  ASSERT_TRUE(ok(session->apply({mixed.data(), 2})));
  EXPECT_EQ(read(*session, twice), "b");
  ASSERT_TRUE(ok(session->apply(mixed)));
  EXPECT_EQ(read(*session, twice), "(none)");
  Collector all;
  EXPECT_EQ(session->scan({}, all).value(), 401U);
  for (const auto& [key, value] : all.entries) EXPECT_EQ(key, value);
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

}  // namespace
}  // namespace assay
