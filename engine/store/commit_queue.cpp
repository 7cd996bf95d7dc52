#include "engine/store/commit_queue.h"

#include <algorithm>

namespace lode {
namespace {

constexpr unsigned largest_penalty = 64;  // groups

}  // namespace

void CommitQueue::unlink(CommitWaiter& waiter) {
  CommitWaiter* before = nullptr;
  for (CommitWaiter* at = first_; at != &waiter; at = at->next) before = at;
  (before == nullptr ? first_ : before->next) = waiter.next;
  if (last_ == &waiter) last_ = before;
  waiter.next = nullptr;
  waiter.queued = false;
  if (waiter.sync) --durable_waiters_;
  if (guard_ == &waiter) guard_ = nullptr;
}

void CommitQueue::end_gathering(bool paid) {
  gathering_ = false;
  if (paid) {
    penalty_ = 0;
    return;
  }
  penalty_ = std::clamp(2 * penalty_, 1U, largest_penalty);
  skipped_ = penalty_;
}

bool CommitQueue::may_lead(const CommitWaiter& arrived, bool& is_guard) {
  is_guard = false;
  if (!gathering_) return true;
  if (!arrived.sync) return true;  // a write without a sync; it takes the others along
  if (durable_waiters_ + 1 >= wanted_) {
    end_gathering(true);
    return true;
  }
  if (Clock::now() >= until_) {
    // Half of those that were hoped for make up for the time.
    const std::size_t joined = durable_waiters_ + 1 - std::min(waited_, durable_waiters_ + 1);
    end_gathering(2 * joined >= wanted_ - waited_);
    return true;
  }
  is_guard = guard_ == nullptr;
  return false;
}

WaitWord::Deadline CommitQueue::push(CommitWaiter& waiter, bool is_guard) {
  waiter.word.store(CommitWaiter::waiting);
  waiter.next = nullptr;
  waiter.queued = true;
  (last_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  if (waiter.sync) ++durable_waiters_;
  if (!is_guard) return {};
  guard_ = &waiter;
  return until_;
}

bool CommitQueue::alarm(CommitWaiter& guard) {
  if (!guard.queued) return false;
  unlink(guard);
  return true;
}

CommitWaiter* CommitQueue::take_covered(Sequence written, Sequence durable,
                                        const CommitWaiter* leader) {
  CommitWaiter* covered = nullptr;
  CommitWaiter** covered_end = &covered;
  std::size_t durable_ones = leader != nullptr && leader->sync ? 1 : 0;
  CommitWaiter* before = nullptr;
  for (CommitWaiter* at = first_; at != nullptr;) {
    CommitWaiter* const next = at->next;
    if (at->target > (at->sync ? durable : written)) {
      before = at;
      at = next;
      continue;
    }
    (before == nullptr ? first_ : before->next) = next;
    if (last_ == at) last_ = before;
    if (at->sync) {
      ++durable_ones;
      --durable_waiters_;
    }
    if (guard_ == at) guard_ = nullptr;
    at->next = nullptr;
    at->queued = false;
    *covered_end = at;
    covered_end = &at->next;
    at = next;
  }
  if (leader == nullptr || !leader->sync) return covered;
  if (skipped_ > 0) {
    --skipped_;
    return covered;
  }
  wanted_ = durable_ones + durable_waiters_;
  waited_ = std::max<std::size_t>(1, durable_waiters_);
  gathering_ = wanted_ > 1;
  until_ = Clock::now() + flush_time_;
  return covered;
}

CommitWaiter* CommitQueue::take_all() {
  CommitWaiter* const all = first_;
  for (CommitWaiter* at = all; at != nullptr; at = at->next) at->queued = false;
  first_ = last_ = guard_ = nullptr;
  durable_waiters_ = 0;
  return all;
}

CommitWaiter* CommitQueue::take_next(CommitWaiter::State& what_for) {
  if (first_ == nullptr) return nullptr;
  CommitWaiter& next = *first_;
  if (gathering_ && next.sync) {
    if (guard_ != nullptr) return nullptr;
    what_for = CommitWaiter::looks;
  } else {
    what_for = CommitWaiter::leads;
  }
  unlink(next);
  return &next;
}

void CommitQueue::wake(CommitWaiter* list, CommitWaiter::State state) {
  while (list != nullptr) {
    CommitWaiter* const next = list->next;
    WaitWord& word = list->word;
    word.store(state);  // from here on the waiter may be gone
    word.wake();
    list = next;
  }
}

void CommitQueue::count_flush(Clock::duration time) {
  flush_time_ = flush_time_ == Clock::duration{} ? time : (7 * flush_time_ + time) / 8;
}

}  // namespace lode
