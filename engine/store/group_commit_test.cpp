// Group commit: who writes the log for whom, and what is applied while it is written.
#include <atomic>
#include <chrono>
#include <thread>

#include "engine/store/commit_queue.h"
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

using namespace std::chrono_literals;

// ---- the queue ----

struct Arrival {
  bool leads = false;
  bool is_guard = false;
};

Arrival arrive(CommitQueue& queue, CommitWaiter& waiter) {
  Arrival arrival;
  arrival.leads = queue.may_lead(waiter, arrival.is_guard);
  if (!arrival.leads) (void)queue.push(waiter, arrival.is_guard);
  return arrival;
}

// A group of `leader` and what waits up to `durable` has been written.
void end_group(CommitQueue& queue, CommitWaiter& leader, Sequence durable) {
  CommitQueue::wake(queue.take_covered(durable, durable, &leader), CommitWaiter::covered);
}

TEST(CommitQueue, a_single_thread_never_waits) {
  CommitQueue queue;
  queue.count_flush(1h);
  for (std::uint64_t i = 1; i < 5; ++i) {
    CommitWaiter only(Sequence(i), true);
    EXPECT_TRUE(arrive(queue, only).leads);
    end_group(queue, only, Sequence(i));
  }
}

TEST(CommitQueue, a_group_waits_for_those_of_the_last_one_and_the_last_to_come_writes) {
  CommitQueue queue;
  queue.count_flush(1h);
  CommitWaiter first(Sequence(1), true);
  CommitWaiter second(Sequence(2), true);
  ASSERT_TRUE(arrive(queue, first).leads);
  (void)queue.push(second, false);  // while the first one writes for both
  end_group(queue, first, Sequence(2));
  EXPECT_EQ(second.word.load(), CommitWaiter::covered);

  CommitWaiter third(Sequence(3), true);
  CommitWaiter fourth(Sequence(4), true);
  const Arrival waits = arrive(queue, third);
  EXPECT_FALSE(waits.leads);
  EXPECT_TRUE(waits.is_guard);
  EXPECT_TRUE(arrive(queue, fourth).leads);
}

TEST(CommitQueue, a_group_whose_commits_do_not_come_is_written_by_the_guard_and_waits_less_often) {
  CommitQueue queue;
  queue.count_flush(1ns);
  CommitWaiter first(Sequence(1), true);
  CommitWaiter second(Sequence(2), true);
  ASSERT_TRUE(arrive(queue, first).leads);
  (void)queue.push(second, false);
  end_group(queue, first, Sequence(2));
  std::this_thread::sleep_for(1ms);
  CommitWaiter late(Sequence(3), true);
  EXPECT_TRUE(arrive(queue, late).leads) << "the time has passed";
  // The next group is not waited for, whatever waits.
  CommitWaiter waiting(Sequence(4), true);
  (void)queue.push(waiting, false);
  queue.count_flush(1h);
  end_group(queue, late, Sequence(4));
  CommitWaiter next(Sequence(5), true);
  EXPECT_TRUE(arrive(queue, next).leads);
}

TEST(CommitQueue, an_alarm_is_for_nothing_once_somebody_has_taken_the_guard_out) {
  CommitQueue queue;
  CommitWaiter guard(Sequence(1), true);
  (void)queue.push(guard, true);
  CommitWaiter* const all = queue.take_all();
  EXPECT_EQ(all, &guard);
  EXPECT_FALSE(queue.alarm(guard));
  (void)queue.push(guard, true);
  EXPECT_TRUE(queue.alarm(guard));
  EXPECT_EQ(queue.durable_waiters(), 0U);
}

TEST(CommitQueue, those_that_wait_are_never_left_without_anybody_to_write) {
  CommitQueue queue;
  queue.count_flush(1h);
  CommitWaiter first(Sequence(1), true);
  CommitWaiter second(Sequence(2), true);
  CommitWaiter behind(Sequence(3), true);
  ASSERT_TRUE(arrive(queue, first).leads);
  (void)queue.push(second, false);
  (void)queue.push(behind, false);
  end_group(queue, first, Sequence(2));
  // Two more are hoped for: the one that waits already has to take the alarm over.
  CommitWaiter::State what_for = CommitWaiter::waiting;
  EXPECT_EQ(queue.take_next(what_for), &behind);
  EXPECT_EQ(what_for, CommitWaiter::looks);
  EXPECT_TRUE(arrive(queue, behind).is_guard);
  EXPECT_EQ(queue.take_next(what_for), nullptr) << "it has an alarm";
}

// ---- the store ----

WriteBatch large_batch(int first, const std::string& value) {
  WriteBatch batch;
  for (int i = first; i < first + 200; ++i) batch.put("k" + std::to_string(i), value);
  return batch;
}

TEST(GroupCommit, a_large_batch_is_there_when_it_is_acknowledged) {
  for (const bool background : {false, true}) {
    Options options = small_options();
    options.log_segment_bytes = 1 << 16;
    options.background = background;
    auto store = Store::open(SimDisk::make(), options);
    ASSERT_TRUE(store);
    for (int round = 0; round < 50; ++round) {
      const std::string value = "v" + std::to_string(round);
      ASSERT_TRUE((*store)->commit(large_batch(round, value), Durability::sync));
      const Snapshot snapshot = (*store)->snapshot();
      EXPECT_EQ(snapshot.sequence(), static_cast<std::uint64_t>(round) + 1);
      std::string found;
      for (int i = round; i < round + 200; i += 33) {
        ASSERT_TRUE(snapshot.get("k" + std::to_string(i), found).value());
        EXPECT_EQ(found, value);
      }
    }
  }
}

// Large batches from some threads, small ones of every mode, conditions, range erases and
// checkpoints from others, and readers: each snapshot must show whole batches, and the end all.
TEST(GroupCommit, large_batches_beside_everything_else_stay_whole_and_in_order) {
  Options options = small_options();
  options.log_segment_bytes = 1 << 16;
  options.overlay_bytes = 1 << 18;
  options.tree_bytes = 1 << 16;
  options.background = true;
  auto opened = Store::open(SimDisk::make(), options);
  ASSERT_TRUE(opened);
  Store& store = **opened;
  constexpr int rounds = 60;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&store, t] {
      for (int round = 0; round < rounds; ++round) {
        WriteBatch batch;
        const std::string value = std::to_string(round);
        for (int i = 0; i < 40; ++i) batch.put(std::to_string(t) + "/" + std::to_string(i), value);
        ASSERT_TRUE(store.commit(batch, Durability::sync));
      }
    });
  }
  threads.emplace_back([&store] {
    for (int round = 0; round < rounds; ++round) {
      ASSERT_TRUE(store.put("v", std::to_string(round), Durability::volatile_));
      Transaction transaction = store.begin();
      transaction.put("t", std::to_string(round));
      ASSERT_TRUE(transaction.commit(Durability::sync));
      WriteBatch erase;
      erase.erase_range("t", "u");
      ASSERT_TRUE(store.commit(erase, Durability::buffered));
      if (round % 20 == 19) {
        ASSERT_TRUE(store.checkpoint());
      }
    }
  });
  std::thread reader([&store, &stop] {
    while (!stop.load()) {
      const Model seen = contents_of(store.snapshot());
      for (const char* thread : {"0/", "1/", "2/"}) {
        std::string first;
        for (auto at = seen.lower_bound(thread); at != seen.end() && at->first.starts_with(thread);
             ++at) {
          if (first.empty()) first = at->second;
          ASSERT_EQ(at->second, first) << "a part of a batch";
        }
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  reader.join();
  const Model all = contents_of(store.snapshot());
  EXPECT_EQ(all.size(), 3U * 40 + 1);
  EXPECT_EQ(all.at("2/39"), std::to_string(rounds - 1));
  EXPECT_EQ(store.snapshot().sequence(), 3U * rounds + 3U * rounds);
}

TEST(GroupCommit, a_failed_write_tells_all_that_wait) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.log_segment_bytes = 1 << 16;
  auto store = Store::open(disk, options);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->put("before", "v", Durability::sync));
  disk->fail_at(1, Fault::io_error);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&store, &failed, t] {
      for (int i = 0; i < 10; ++i) {
        if (!(*store)->commit(large_batch(t, "v"), Durability::sync)) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 40);
  std::string value;
  EXPECT_TRUE((*store)->get("before", value).value());
}

}  // namespace
}  // namespace lode
