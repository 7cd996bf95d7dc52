// Random histories against an ordered map, with snapshots, checkpoints, merges, kills and crashes.
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

// The state after every commit of a history; [0] is the empty store.
using States = std::vector<Model>;

struct Held {
  Snapshot snapshot;
  Model model;
};

void run_history(std::uint64_t seed, int steps, Options options) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  auto store = Store::open(disk, options).value();
  States states(1);
  std::uint64_t durable = 0;
  std::vector<Held> held;
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t what = random() % 100;
    if (what < 70) {
      Model next = states.back();
      const WriteBatch batch = random_batch(random, next, options.key_kind);
      const Durability durability = random_durability(random);
      const auto receipt = store->commit(batch, durability);
      ASSERT_TRUE(receipt) << receipt.error().what;
      ASSERT_EQ(receipt->sequence, states.size());
      states.push_back(std::move(next));
      if (durability == Durability::sync) durable = receipt->sequence;
    } else if (what < 76) {
      ASSERT_TRUE(store->checkpoint());
      durable = states.size() - 1;
    } else if (what < 79) {
      ASSERT_TRUE(store->drain());
      durable = states.size() - 1;
    } else if (what < 80) {
      ASSERT_TRUE(store->compact());
      durable = states.size() - 1;
    } else if (what < 86) {
      held.push_back({store->snapshot(), states.back()});
    } else if (what < 90 && !held.empty()) {
      const auto victim = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
      expect_contents(victim->snapshot, victim->model, random);
      held.erase(victim);
    } else if (what < 94) {
      expect_contents(store->snapshot(), states.back(), random);
    } else if (what < 97) {
      // Close or die, and open what a new process would see, or what a power cut leaves.
      held.clear();
      const bool cleanly = random() % 2 == 0;
      if (cleanly) {
        ASSERT_TRUE(store->close());
        durable = states.size() - 1;
      }
      const std::uint64_t survivor = random() % 4;
      std::shared_ptr<SimDisk> next = survivor == 0   ? disk->killed()
                                      : survivor == 1 ? disk->crashed(keep_none)
                                      : survivor == 2 ? disk->crashed(keep_all)
                                                      : disk->crashed(keep_some(random(), 50));
      store.reset();
      disk = next;
      auto opened = Store::open(disk, options);
      ASSERT_TRUE(opened) << opened.error().what;
      store = std::move(*opened);
      const std::uint64_t sequence = store->snapshot().sequence();
      ASSERT_GE(sequence, durable);
      ASSERT_LT(sequence, states.size());
      states.resize(sequence + 1);
      durable = sequence;
      expect_contents(store->snapshot(), states.back(), random);
    } else {
      const auto status = store->verify();
      ASSERT_TRUE(status) << status.error().what;
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const Held& each : held) expect_contents(each.snapshot, each.model, random);
}

TEST(Model, random_histories_agree_with_an_ordered_map) {
  for (std::uint64_t seed = 1; seed <= 12 && !testing::Test::HasFatalFailure(); ++seed) {
    Options options = small_options();
    if (seed % 3 == 1) options.log_method = LogMethod::direct_dsync;
    if (seed % 3 == 2) options.log_method = LogMethod::dsync;
    run_history(seed, 700, options);
  }
}

TEST(Model, random_histories_of_u64_keys_agree_with_an_ordered_map) {
  for (std::uint64_t seed = 101; seed <= 108 && !testing::Test::HasFatalFailure(); ++seed) {
    Options options = small_options();
    options.key_kind = KeyKind::u64;
    run_history(seed, 700, options);
  }
}

}  // namespace
}  // namespace lode
