// Every crash point of short histories, with several choices of what the medium keeps, and crashes
// during the recovery from them.
#include <functional>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

struct Outcome {
  bool opened = false;
  bool finished = false;
  std::uint64_t durable = 0;
  std::uint64_t refused = 0;
  std::vector<Model> states{Model{}};  // by sequence; the last one may be in flight
};

using Script = std::function<void(Store&, Outcome&)>;

// False: the commit failed and the history ends.
bool commit(Store& store, Outcome& outcome, const std::function<void(WriteBatch&, Model&)>& fill,
            Durability durability) {
  WriteBatch batch;
  Model next = outcome.states.back();
  fill(batch, next);
  outcome.states.push_back(std::move(next));
  const auto receipt = store.commit(batch, durability);
  if (!receipt && receipt.error().kind == ErrorKind::arena_full) {  // nothing has happened
    outcome.states.pop_back();
    ++outcome.refused;
    return true;
  }
  if (!receipt) return false;
  EXPECT_EQ(receipt->sequence, outcome.states.size() - 1);
  if (durability == Durability::sync) outcome.durable = receipt->sequence;
  return true;
}

bool put(Store& store, Outcome& outcome, int first, int count, std::size_t bytes,
         Durability durability) {
  return commit(
      store, outcome,
      [&](WriteBatch& batch, Model& model) {
        for (int i = first; i < first + count; ++i) {
          const std::string key = "k" + std::to_string(i);
          const std::string value =
              std::string(bytes, 'v') + std::to_string(outcome.states.size()) + key;
          batch.put(key, value);
          model[key] = value;
        }
      },
      durability);
}

bool durable_step(Outcome& outcome, const Status& status) {
  if (status) outcome.durable = outcome.states.size() - 1;
  return status.has_value();
}

// Commits of every mode, multi-key batches, erases, checkpoints and merges, segments recycled.
void mixed_history(Store& store, Outcome& outcome) {
  for (int round = 0; round < 4; ++round) {
    if (!put(store, outcome, round * 3, 4, 200, Durability::sync)) return;
    if (!put(store, outcome, round, 3, 1500, Durability::volatile_)) return;
    if (!put(store, outcome, 40 + round, 2, 100, Durability::buffered)) return;
    if (!commit(
            store, outcome,
            [&](WriteBatch& batch, Model& model) {
              batch.erase("k" + std::to_string(round * 3));
              model.erase("k" + std::to_string(round * 3));
              batch.erase_range("k4", "k6");
              erase_range(model, "k4", "k6");
            },
            Durability::sync)) {
      return;
    }
    if (!durable_step(outcome, store.checkpoint())) return;
    if (!put(store, outcome, 20, 2, 3000, Durability::sync)) return;
    if (round % 2 == 1 && !durable_step(outcome, store.drain())) return;
  }
  outcome.finished = true;
}

// Batches large enough to be applied while their frame is written, among small ones that follow
// them at once and a range erase that must see them.
void large_batches_history(Store& store, Outcome& outcome) {
  for (int round = 0; round < 7; ++round) {
    if (!put(store, outcome, 10 * round, 30, 20, Durability::sync)) return;
    if (!put(store, outcome, round, 1, 50, Durability::volatile_)) return;
    if (!put(store, outcome, 5 + 10 * round, 24, 40, Durability::sync)) return;
    if (!commit(
            store, outcome,
            [&](WriteBatch& batch, Model& model) {
              batch.erase_range("k2", "k3");
              erase_range(model, "k2", "k3");
            },
            Durability::sync)) {
      return;
    }
    if (!durable_step(outcome, store.checkpoint())) return;
  }
  outcome.finished = true;
}

void expect_state(Store& store, const Outcome& outcome, std::mt19937_64& random) {
  const std::uint64_t sequence = store.snapshot().sequence();
  ASSERT_GE(sequence, outcome.durable) << "an acknowledged commit is lost";
  ASSERT_LT(sequence, outcome.states.size());
  expect_contents(store.snapshot(), outcome.states[sequence], random);
  const auto status = store.verify();
  ASSERT_TRUE(status) << status.error().what;
}

std::shared_ptr<SimDisk> survivor(const SimDisk& disk, std::uint64_t seed) {
  switch (seed) {
    case 0:
      return disk.crashed(keep_none);
    case 1:
      return disk.crashed(keep_all);
    default:
      return disk.crashed(keep_some(seed, seed % 2 == 0 ? 50 : 90));
  }
}

// Opens, checks, writes, and opens again: the recovered store must be a whole one.
void check_image(const std::shared_ptr<SimDisk>& image, const Outcome& outcome,
                 const Options& options, std::mt19937_64& random) {
  auto store = Store::open(image, options);
  ASSERT_TRUE(store) << store.error().what;
  expect_state(**store, outcome, random);
  const auto receipt = (*store)->put("after", "crash", Durability::sync);
  if (!receipt && receipt.error().kind == ErrorKind::arena_full) {
    const auto status = (*store)->compact();  // what was admitted before the crash still fits
    if (options.admission != Admission::unreserved) {
      ASSERT_TRUE(status) << status.error().what;
    }
    expect_state(**store, outcome, random);
    return;
  }
  ASSERT_TRUE(receipt) << receipt.error().what;
  const auto again = image->crashed(keep_none);
  store->reset();
  auto second = Store::open(again, options);
  ASSERT_TRUE(second) << second.error().what;
  ASSERT_EQ((*second)->snapshot().sequence(), receipt->sequence);
  std::string value;
  ASSERT_TRUE((*second)->get("after", value).value());
}

void crash_everywhere(const Script& script, const Options& options, std::uint64_t seeds,
                      bool nested) {
  std::mt19937_64 random(1);
  for (std::uint64_t call = 1;; ++call) {
    const auto disk = SimDisk::make();
    disk->fail_at(call, Fault::power_cut);
    Outcome outcome;
    {
      auto store = Store::open(disk, options);
      outcome.opened = store.has_value();
      if (store) script(**store, outcome);
    }
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE("power cut at call " + std::to_string(call) + ", choice " +
                   std::to_string(seed));
      check_image(survivor(*disk, seed), outcome, options, random);
      if (testing::Test::HasFatalFailure()) return;
      if (!nested || seed > 2) continue;
      // Crash in the recovery as well, at a call that differs from point to point.
      for (std::uint64_t inner = 1 + call % 3; inner < 40; inner += 3) {
        SCOPED_TRACE("and at call " + std::to_string(inner) + " of the recovery");
        const auto image = survivor(*disk, seed);
        image->fail_at(inner, Fault::power_cut);
        const bool survived = Store::open(image, options).has_value();
        check_image(survivor(*image, seed), outcome, options, random);
        if (testing::Test::HasFatalFailure()) return;
        if (survived) break;
      }
    }
    if (outcome.finished) {
      EXPECT_GT(call, 100U) << "the history is long enough to be worth it";
      return;
    }
  }
}

TEST(Crash, at_every_call_leaves_a_prefix_with_everything_acknowledged) {
  crash_everywhere(mixed_history, small_options(), 5, false);
}

TEST(Crash, at_every_call_with_large_batches) {
  Options options = small_options();
  options.log_segment_bytes = 16384;
  crash_everywhere(large_batches_history, options, 3, false);
}

TEST(Crash, during_recovery_from_a_crash_changes_nothing) {
  crash_everywhere(
      [](Store& store, Outcome& outcome) {
        if (!put(store, outcome, 0, 4, 500, Durability::sync)) return;
        if (!durable_step(outcome, store.checkpoint())) return;
        for (int i = 0; i < 12; ++i) {
          if (!put(store, outcome, i, 2, 1200,
                   i % 2 == 0 ? Durability::sync : Durability::buffered))
            return;
        }
        if (!durable_step(outcome, store.checkpoint())) return;
        for (int i = 0; i < 12; ++i) {
          if (!put(store, outcome, i, 2, 1200, Durability::sync)) return;
        }
        outcome.finished = true;
      },
      small_options(), 3, true);
}

// Commits until the arena refuses them, a flush and a compaction in the full arena, erases that
// make room, and commits into it.
void full_arena_history(Store& store, Outcome& outcome) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 6; ++i) {
      if (!put(store, outcome, round * 4 + i * 2, 2, 45000 + 100 * static_cast<std::size_t>(i),
               i % 3 == 1 ? Durability::volatile_ : Durability::sync)) {
        return;
      }
      if (i == 2) {
        const auto status = store.checkpoint();
        if (!status && status.error().kind != ErrorKind::arena_full) return;
        durable_step(outcome, status);
      }
    }
    const auto status = store.compact();
    if (!status && status.error().kind != ErrorKind::arena_full) return;
    durable_step(outcome, status);
    if (!commit(
            store, outcome,
            [&](WriteBatch& batch, Model& model) {
              for (int i = round; i < round + 5; ++i) {
                batch.erase("k" + std::to_string(i));
                model.erase("k" + std::to_string(i));
              }
            },
            Durability::sync)) {
      return;
    }
    const auto drained = store.drain();
    if (!drained && drained.error().kind != ErrorKind::arena_full) return;
    durable_step(outcome, drained);
  }
  EXPECT_GT(outcome.refused, 0U);
  outcome.finished = true;
}

TEST(Crash, at_every_call_in_a_full_arena) {
  for (const Admission admission :
       {Admission::weighted, Admission::recount, Admission::unreserved}) {
    Options options = small_options();
    options.tree_bytes = 100000;
    options.log_segment_bytes = std::uint64_t{128} << 10;
    options.max_bytes = std::uint64_t{1} << 20;
    options.admission = admission;
    crash_everywhere(full_arena_history, options, 3, false);
    if (HasFatalFailure()) return;
  }
}

TEST(Crash, at_every_call_with_direct_log_writes) {
  Options options = small_options();
  options.log_method = LogMethod::direct_dsync;
  crash_everywhere(mixed_history, options, 3, false);
}

// An error of one call, not a power cut: what was acknowledged stays, what failed may be there,
// whole; and after a reopen everything works.
TEST(Faults, at_every_call_lose_nothing_that_was_acknowledged) {
  for (const Fault fault : {Fault::io_error, Fault::no_space}) {
    std::mt19937_64 random(2);
    for (std::uint64_t call = 1;; ++call) {
      SCOPED_TRACE("fault at call " + std::to_string(call));
      const auto disk = SimDisk::make();
      disk->fail_at(call, fault);
      Outcome outcome;
      {
        auto store = Store::open(disk, small_options());
        if (store) {
          mixed_history(**store, outcome);
          // The handle still reads.
          std::string value;
          EXPECT_TRUE((*store)->get("k0", value));
          if (!outcome.finished) {
            const auto again = (*store)->put("x", "y", Durability::sync);
            if (again) {
              outcome.durable = again->sequence;  // only a checkpoint failed, for lack of space
              Model next = outcome.states.back();
              next["x"] = "y";
              outcome.states.push_back(std::move(next));
            }
          }
        }
      }
      check_image(disk->crashed(keep_none), outcome, small_options(), random);
      check_image(disk->killed(), outcome, small_options(), random);
      if (testing::Test::HasFatalFailure()) return;
      if (outcome.finished) break;
    }
  }
}

}  // namespace
}  // namespace lode
