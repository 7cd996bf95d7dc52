// Several keys at once: the same answers as one by one, all of one moment.
#include <atomic>
#include <thread>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

std::vector<std::string_view> views_of(const std::vector<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

TEST(GetMany, answers_as_single_gets_do_from_overlay_trees_and_the_file) {
  const std::uint64_t seed = 3;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto store = open_small(SimDisk::make());
  Model model;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store->commit(random_batch(random, model), Durability::volatile_));
    if (i % 50 == 40) {
      ASSERT_TRUE(store->checkpoint());
    }
  }
  const Snapshot snapshot = store->snapshot();
  std::vector<std::string> keys;
  for (int i = 0; i < 150; ++i) keys.push_back(random_key(random));  // some twice, some not there
  const auto from_store = store->get_many(views_of(keys));
  const auto from_snapshot = snapshot.get_many(views_of(keys));
  ASSERT_TRUE(from_store);
  ASSERT_TRUE(from_snapshot);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = model.find(keys[i]);
    const auto expected =
        found == model.end() ? std::optional<std::string>() : std::optional(found->second);
    EXPECT_EQ((*from_store)[i], expected) << keys[i];
    EXPECT_EQ((*from_snapshot)[i], expected) << keys[i];
  }
  ASSERT_TRUE(store->erase(model.begin()->first, Durability::volatile_));
  const std::vector<std::string_view> first{model.begin()->first};
  EXPECT_EQ(store->get_many(first).value()[0], std::nullopt);
  EXPECT_EQ(snapshot.get_many(first).value()[0], model.begin()->second);
  EXPECT_TRUE(store->get_many({}).value().empty());
}

TEST(GetMany, shows_one_moment_beside_a_writer) {
  auto store = open_small(SimDisk::make());
  const std::vector<std::string> keys{"a", "b", "c"};
  const auto write = [&](int round) {
    WriteBatch batch;
    for (const std::string& key : keys) batch.put(key, std::to_string(round));
    return store->commit(batch, Durability::volatile_).has_value();
  };
  ASSERT_TRUE(write(0));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 1; !stop.load() && write(round); ++round) {
      if (round % 200 == 0 && !store->checkpoint()) break;
    }
  });
  for (int i = 0; i < 3000; ++i) {
    const auto values = store->get_many(views_of(keys));
    if (!values || (*values)[0] != (*values)[1] || (*values)[1] != (*values)[2]) {
      ADD_FAILURE() << "values of different moments";
      break;
    }
  }
  stop.store(true);
  writer.join();
}

TEST(GetMany, reports_what_cannot_be_read) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->put("large", std::string(3000, 'v'), Durability::sync));
  ASSERT_TRUE(store->checkpoint());
  ASSERT_TRUE(store->put("new", "n", Durability::sync));
  disk->fail_reads_of("data");
  const std::vector<std::string_view> both{"new", "large"};
  EXPECT_FALSE(store->get_many(both));
  disk->fail_reads_of("");
  EXPECT_EQ(store->get_many(both).value()[1]->size(), 3000U);
}

}  // namespace
}  // namespace lode
