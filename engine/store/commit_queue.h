// Commits that wait for a group to be written, and who writes the next one.
//
// When a group is durable, the threads whose commits were in it come back with new ones a moment
// later. A group that is begun at once misses them: half of the threads are in each group, and a
// flush of the device is paid for half of what it could carry. So the next group waits for as many
// commits as were there when the last one ended, but no longer than a flush takes, and whoever
// completes the number writes: nobody is woken to do it. When that does not pay (the threads have
// other things to do), it is left for more and more groups. A single thread never waits.
//
// Of those that wait while nobody writes, one sleeps with an alarm (the guard), so that a group
// whose commits do not come is written all the same.
// Threads: every call needs the flush mutex, but for the waiter's own sleep.
#pragma once

#include <chrono>
#include <cstddef>

#include "engine/base/types.h"
#include "engine/base/wait_word.h"

namespace lode {

struct CommitWaiter {
  enum State : std::uint32_t {
    waiting,
    covered,  ///< its commit is written, or the store is poisoned; out of the queue
    leads,    ///< it holds the flusher's role; out of the queue
    looks,    ///< it is to look again, as the guard; out of the queue
  };
  CommitWaiter(Sequence of, bool durable) : target(of), sync(durable) {}

  const Sequence target;
  const bool sync;
  WaitWord word;
  bool queued = false;  // with the flush mutex; not queued and waiting = it is about to be woken
  CommitWaiter* next = nullptr;
};

class CommitQueue {
 public:
  using Clock = std::chrono::steady_clock;

  /// Nobody holds the role. True: the caller, who is not in the queue, is to take it now.
  bool may_lead(const CommitWaiter& arrived, bool& is_guard);
  /// Puts a waiter at the end. Returns when it must wake by itself: only the guard.
  WaitWord::Deadline push(CommitWaiter& waiter, bool is_guard);
  /// The guard's alarm went off. False: somebody is about to wake it, and it must wait for that.
  bool alarm(CommitWaiter& guard);

  /// Takes out those that are covered now, for wake(). `leader` was covered besides, by a group
  /// that ended just now; null: no group of commits has ended.
  CommitWaiter* take_covered(Sequence written, Sequence durable, const CommitWaiter* leader);
  CommitWaiter* take_all();
  /// Nobody holds the role and nobody else wants it. The waiter that is to be woken, and what for,
  /// out of the queue, or null.
  CommitWaiter* take_next(CommitWaiter::State& what_for);
  /// Wakes a list. Without the lock.
  static void wake(CommitWaiter* list, CommitWaiter::State state);

  void count_flush(Clock::duration time);
  [[nodiscard]] std::size_t durable_waiters() const { return durable_waiters_; }

 private:
  void unlink(CommitWaiter& waiter);
  void end_gathering(bool paid);

  CommitWaiter* first_ = nullptr;
  CommitWaiter* last_ = nullptr;
  std::size_t durable_waiters_ = 0;  // in the queue
  CommitWaiter* guard_ = nullptr;
  bool gathering_ = false;
  std::size_t wanted_ = 0;   // commits that the next group waits for
  std::size_t waited_ = 1;   // that it would have had at once
  Clock::time_point until_;  // and for how long
  unsigned skipped_ = 0;     // groups until it is tried again
  unsigned penalty_ = 0;     // that the next failure costs
  Clock::duration flush_time_{};
};

}  // namespace lode
