// A bounded arena with everything going on beside everything: commits, flushes, merges, readers.
#include <atomic>
#include <thread>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

Options small_arena(Admission admission) {
  Options options = small_options();
  options.tree_bytes = 100000;
  options.overlay_bytes = 50000;
  options.log_segment_bytes = 65536;
  options.max_bytes = std::uint64_t{1} << 20;
  options.admission = admission;
  options.background = true;
  return options;
}

std::string key_of(std::uint64_t i) {
  return "key" + std::to_string(100000 + i);
}

TEST(ArenaThreads, room_is_made_in_the_background_before_a_commit_is_refused) {
  for (const Admission admission : {Admission::recount, Admission::weighted}) {
    auto store = Store::open(SimDisk::make(), small_arena(admission)).value();
    // Several times the arena, of keys that come again: 300 entries at any time.
    for (std::uint64_t i = 0; i < 6000; ++i) {
      const auto receipt =
          store->put(key_of(i % 300), std::string(600, static_cast<char>('a' + i / 300 % 26)),
                     Durability::volatile_);
      ASSERT_TRUE(receipt) << i << ": " << receipt.error().what;
    }
    const auto drained = store->drain();
    ASSERT_TRUE(drained) << drained.error().what;
    EXPECT_EQ(contents_of(store->snapshot()).size(), 300U);
  }
}

// I17 is asserted in each flush; what was acknowledged is there at the end, what was refused is
// not.
TEST(ArenaThreads, commits_of_many_threads_into_a_full_arena_are_admitted_or_refused_whole) {
  for (const Admission admission : {Admission::recount, Admission::weighted}) {
    const auto disk = SimDisk::make();
    const Options options = small_arena(admission);
    auto store = Store::open(disk, options).value();
    std::atomic<std::uint64_t> refused{0};
    std::atomic<bool> stop{false};
    std::vector<Model> models(3);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < models.size(); ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t + 1);
        for (int i = 0; i < 160; ++i) {
          const bool erases = random() % 3 == 0;
          WriteBatch batch;
          Model next = models[t];
          for (std::uint64_t n = random() % 30 + 1; n > 0; --n) {
            const std::string key = key_of(10000 * t + random() % 200);
            const std::string value(random() % 1400, 'v');
            if (erases) {
              batch.erase(key);
              next.erase(key);
            } else {
              batch.put(key, value);
              next[key] = value;
            }
          }
          const auto receipt =
              store->commit(batch, random() % 4 == 0 ? Durability::sync : Durability::volatile_);
          if (receipt) {
            models[t] = std::move(next);
          } else {
            ++refused;
            EXPECT_EQ(receipt.error().kind, ErrorKind::arena_full) << receipt.error().what;
          }
        }
      });
    }
    std::thread reader([&] {
      while (!stop.load()) {
        const Snapshot snapshot = store->snapshot();
        std::string value;
        EXPECT_TRUE(snapshot.get(key_of(7), value));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    for (auto& thread : threads) thread.join();
    stop.store(true);
    reader.join();
    const auto drained = store->drain();
    ASSERT_TRUE(drained) << drained.error().what;
    Model all;
    for (const Model& model : models) all.insert(model.begin(), model.end());
    EXPECT_EQ(contents_of(store->snapshot()), all);
    EXPECT_LE(disk->contents("data")->size(), options.max_bytes);
    EXPECT_TRUE(store->verify());
  }
}

}  // namespace
}  // namespace lode
