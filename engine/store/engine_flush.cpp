// Group commit: who writes the log, for whom, and what is applied meanwhile. Steps C4 to C6 of
// PROTOCOLS.md.
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/mutation.h"
#include "engine/store/engine.h"

namespace lode {

// Checkpoints and merges go before commits: they are few, and commits could keep them out for ever.
void Engine::take_role() {
  std::unique_lock lock(flush_mutex_);
  ++role_wanted_;
  flush_changed_.wait(lock, [this] { return !role_taken_; });
  --role_wanted_;
  role_taken_ = true;
}

void Engine::give_role() {
  std::unique_lock lock(flush_mutex_);
  release_role(lock, nullptr);
}

Engine::Role::Role(Engine& engine) : engine_(engine) {
  engine_.take_role();
}

Engine::Role::~Role() {
  engine_.give_role();
}

// C6: whose commits are covered return, and the role goes on. `leader` has written a group of
// commits. Unlocks.
void Engine::release_role(std::unique_lock<std::mutex>& lock, const CommitWaiter* leader) {
  CommitWaiter* const covered = commit_queue_.take_covered(written_, durable_, leader);
  role_taken_ = false;
  CommitWaiter* next = nullptr;
  CommitWaiter::State what_for = CommitWaiter::looks;
  if (role_wanted_ == 0 && !poisoned_.load()) next = commit_queue_.take_next(what_for);
  if (next != nullptr && what_for == CommitWaiter::leads) role_taken_ = true;
  lock.unlock();
  CommitQueue::wake(next, what_for);  // first: the others wait for it
  flush_changed_.notify_all();
  CommitQueue::wake(covered, CommitWaiter::covered);
}

// Needs the sequencing lock. Applies the commits of a frame that are not in the overlay yet. They
// were checked when they were made, and none of their kinds can fail.
void Engine::apply_frame(const FrameBuffer& frame, std::size_t& applied_bytes) {
  Decoder in(frame.payload().subspan(applied_bytes));
  while (in.left() > 0) {
    const Status status = apply(in.text(), applied_ + 1);
    LODE_CHECK(status.has_value(), "C2: what is applied later cannot fail");
  }
  applied_bytes = frame.payload_bytes();
}

// Needs the sequencing lock. The group in flight is sealed before anything behind it is applied.
void Engine::apply_flushing() {
  if (!seal_due_) return;
  apply_frame(flushing_, flushing_applied_bytes_);
  arena_.flushing = {};
  group_sealed_ = seal(false);
  seal_due_ = false;
}

// Needs the sequencing lock.
void Engine::apply_all() {
  apply_flushing();
  if (filling_applied_bytes_ < filling_.payload_bytes()) {
    apply_frame(filling_, filling_applied_bytes_);
    arena_.filling = {};
  }
}

// Needs the flusher's role. `change` is made to the shape in the same moment in which the group is
// closed, and is published with it. Throws nothing: whoever leads must go on to release the role.
Status Engine::flush_group(bool sync, const std::function<void()>& change) {
  try {
    return write_group(sync, change);
  } catch (const std::bad_alloc&) {
    // Of the group it is not known what is in the log, in the overlay and published.
    give_up_state();
    poison(out_of_memory());
    return std::unexpected(out_of_memory());
  }
}

Status Engine::write_group(bool sync, const std::function<void()>& change) {
  {
    const std::lock_guard lock(flush_mutex_);
    sync = sync || commit_queue_.durable_waiters() > 0;
  }
  std::uint64_t window_sequenced = 0;
  bool later = false;
  {
    const std::lock_guard lock(sequencing_mutex_);
    if (half_changed_.load()) return std::unexpected(out_of_memory());
    if (change) apply_all();
    std::swap(filling_, flushing_);
    flushing_applied_bytes_ = std::exchange(filling_applied_bytes_, 0);
    arena_.flushing = std::exchange(arena_.filling, {});
    later = flushing_applied_bytes_ < flushing_.payload_bytes();
    if (change) change();
    window_sequenced = window_sequenced_;
    seal_due_ = later;
    if (!later) group_sealed_ = seal(change != nullptr);
  }
  const std::uint64_t group =
      flushing_.empty() ? 0 : flushing_.last_sequence() - flushing_.first_sequence() + 1;
  const auto begin = std::chrono::steady_clock::now();
  // Large commits are applied while the device writes them.
  std::function<void()> meanwhile;
  if (later) {
    meanwhile = [this] {
      const std::lock_guard lock(sequencing_mutex_);
      shape_->active->reclaim(Generation(published_.load(std::memory_order_relaxed)));
      if (!LODE_MUTATED("published-before-applied")) apply_flushing();
    };
  }
  Status status = log_->write(flushing_, sync, meanwhile);
  const auto time = std::chrono::steady_clock::now() - begin;
  if (!status && !LODE_MUTATED("failed-flush-forgotten")) poison(status.error());
  if (status) log_end_.store(log_->end_lsn().value);
  Sequence sequence;
  {
    const std::lock_guard lock(sequencing_mutex_);
    if (LODE_MUTATED("published-before-applied") && seal_due_) {
      group_sealed_ = seal(true);
      seal_due_ = false;
    }
    apply_flushing();
    flushing_.clear();
    flushing_applied_bytes_ = 0;
    if (!status && !LODE_MUTATED("failed-flush-forgotten")) return status;
    sequence = group_sealed_->sequence;
    publish(*std::exchange(group_sealed_, std::nullopt), !later);
  }
  if (group > 0) count_group(group);
  if (options_.background && log_->segments().spares() == 0 && !spare_wanted_.exchange(true)) {
    const std::lock_guard lock(background_mutex_);
    background_due_ = true;
    background_wanted_.notify_one();
  }
  const std::lock_guard lock(flush_mutex_);
  if (sync && group > 0) commit_queue_.count_flush(time);
  written_ = std::max(written_, sequence);
  if (log_->durable_lsn() == log_->end_lsn() ||
      LODE_MUTATED("written-taken-for-durable")) {  // I6: durable only over the contiguous prefix
    durable_ = std::max(durable_, sequence);
    window_durable_ = std::max(window_durable_, window_sequenced);
  }
  return {};
}

Status Engine::flush_until(Sequence target, bool sync) {
  CommitWaiter self(target, sync);
  std::unique_lock lock(flush_mutex_);
  while (true) {
    if (poisoned_.load()) {
      if ((sync ? durable_ : written_) >= target) return {};
      return std::unexpected(poisoned_error(ErrorKind::outcome_unknown));
    }
    if ((sync ? durable_ : written_) >= target) return {};
    bool is_guard = false;
    std::uint32_t woken_for = CommitWaiter::leads;
    if (!role_taken_ && commit_queue_.may_lead(self, is_guard)) {
      role_taken_ = true;
      lock.unlock();
    } else {
      const WaitWord::Deadline alarm = commit_queue_.push(self, is_guard);
      lock.unlock();
      woken_for = self.word.wait(CommitWaiter::waiting, alarm);
      if (woken_for == CommitWaiter::waiting) {
        lock.lock();
        if (commit_queue_.alarm(self)) continue;
        lock.unlock();
        woken_for = self.word.wait(CommitWaiter::waiting);
      }
    }
    if (woken_for == CommitWaiter::covered && !poisoned_.load()) return {};
    if (woken_for == CommitWaiter::leads) {
      const Status status = flush_group(sync, {});  // a failure poisons
      lock.lock();
      const bool reached = status && (sync ? durable_ : written_) >= target;  // I6
      release_role(lock, &self);
      if (reached) return {};
    }
    lock.lock();
  }
}

Status Engine::sync() {
  if (options_.read_only) return {};
  Sequence last;
  {
    const std::lock_guard lock(sequencing_mutex_);
    last = last_sequence_;
  }
  return guarded([&] { return flush_until(last, true); });
}

}  // namespace lode
