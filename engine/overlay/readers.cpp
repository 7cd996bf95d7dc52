#include "engine/overlay/readers.h"

#include <thread>

#include "engine/base/check.h"
#include "engine/base/mutation.h"

namespace lode {

std::size_t Readers::enter(const std::atomic<std::uint64_t>& published, bool pages) {
  static std::atomic<std::size_t> next_thread{0};
  constexpr std::size_t none = ~std::size_t{0};
  constinit thread_local std::size_t preferred = none;
  if (preferred == none) preferred = next_thread.fetch_add(1) % slot_count;
  const std::uint64_t flag = pages ? reads_pages : 0;
  for (std::size_t tries = 0;; ++tries) {
    std::uint64_t free = 0;
    const std::uint64_t generation = published.load(std::memory_order_seq_cst);
    // Sequentially consistent: the announcement must be visible before this thread loads the
    // state, or the applier could miss it and free what is about to be read. Likewise before it
    // looks into the pool's table.
    if (slots_[preferred].generation.compare_exchange_strong(free, generation | flag,
                                                             std::memory_order_seq_cst)) {
      return preferred;
    }
    preferred = (preferred + 1) % slot_count;
    if (tries % slot_count == slot_count - 1) std::this_thread::yield();
  }
}

void Readers::wait_for_page_readers() const {
  if (LODE_MUTATED("page-readers-not-waited-for")) return;
  for (const Slot& slot : slots_) {
    if ((slot.generation.load(std::memory_order_seq_cst) & reads_pages) == 0) continue;
    // Another end than the one seen here is that of this read, or of a later one.
    const std::uint64_t ended = slot.ended.load(std::memory_order_acquire);
    for (std::size_t tries = 0;
         (slot.generation.load(std::memory_order_acquire) & reads_pages) != 0; ++tries) {
      if (slot.ended.load(std::memory_order_acquire) != ended) break;
      if (tries > 50) std::this_thread::yield();
    }
  }
}

std::uint64_t Readers::pages_read() const {
  std::uint64_t pages = 0;
  for (const Slot& slot : slots_) pages += slot.pages.load(std::memory_order_relaxed);
  return pages;
}

void Readers::pin(Generation generation) {
  const std::lock_guard guard(mutex_);
  ++pinned_[generation];
}

void Readers::unpin(Generation generation) {
  const std::lock_guard guard(mutex_);
  const auto found = pinned_.find(generation);
  LODE_CHECK(found != pinned_.end(), "I11: a generation is unpinned as often as it was pinned");
  if (--found->second == 0) {
    pinned_.erase(found);
    unpins_.fetch_add(1, std::memory_order_release);
  }
}

Generation Readers::oldest_short(Generation published) const {
  Generation oldest = published;
  for (const Slot& slot : slots_) {
    const std::uint64_t generation = slot.generation.load(std::memory_order_seq_cst) & ~reads_pages;
    if (generation != 0 && generation < oldest.value) oldest = Generation(generation);
  }
  return oldest;
}

std::optional<Generation> Readers::newest_pin_below(Generation death) const {
  const std::lock_guard guard(mutex_);
  auto found = pinned_.lower_bound(death);
  if (found == pinned_.begin()) return std::nullopt;
  return std::prev(found)->first;
}

std::size_t Readers::pins() const {
  const std::lock_guard guard(mutex_);
  return pinned_.size();
}

std::optional<Generation> Readers::oldest_pin() const {
  const std::lock_guard guard(mutex_);
  if (pinned_.empty()) return std::nullopt;
  return pinned_.begin()->first;
}

void Reclaimer::retire(void* object, std::size_t bytes, Generation birth, Generation death) {
  LODE_CHECK(queue_.empty() || queue_.back().death <= death, "deaths come in order");
  queue_.push_back({object, bytes, birth, death});
}

void Reclaimer::free_or_park(const Retired& retired) {
  const auto pin = readers_.newest_pin_below(retired.death);
  if (pin && *pin >= retired.birth && !LODE_MUTATED("snapshot-not-respected")) {
    parked_[*pin].push_back(retired);
  } else {
    free_(retired.object, retired.bytes);
  }
}

void Reclaimer::reclaim(Generation published) {
  const std::uint64_t unpins = readers_.unpin_count();
  if (unpins != unpins_seen_ && !parked_.empty()) {
    // Whatever a vanished snapshot held goes to the next older one that sees it, or away.
    for (auto at = parked_.begin(); at != parked_.end();) {
      const auto pin = readers_.newest_pin_below(at->first + 1);
      if (pin && *pin == at->first) {
        ++at;
        continue;
      }
      for (std::vector<Retired>& orphans = at->second; !orphans.empty(); orphans.pop_back()) {
        free_or_park(orphans.back());
      }
      at = parked_.erase(at);
    }
  }
  unpins_seen_ = unpins;
  if (queue_.empty()) return;
  const Generation oldest = readers_.oldest_short(published);
  // Asked once for all, and after the slots: whoever pins from here on held a slot that was seen,
  // or entered later, so that it pins no generation below `oldest`.
  const bool pinned = readers_.newest_pin_below(oldest).has_value();
  while (!queue_.empty() && queue_.front().death <= oldest) {
    const Retired& retired = queue_.front();
    if (pinned) {
      free_or_park(retired);
    } else {
      free_(retired.object, retired.bytes);
    }
    queue_.pop_front();
  }
}

void Reclaimer::free_all() {
  for (const Retired& retired : queue_) free_(retired.object, retired.bytes);
  queue_.clear();
  for (const auto& [pin, objects] : parked_) {
    for (const Retired& retired : objects) free_(retired.object, retired.bytes);
  }
  parked_.clear();
}

std::size_t Reclaimer::waiting() const {
  std::size_t count = queue_.size();
  for (const auto& [pin, objects] : parked_) count += objects.size();
  return count;
}

}  // namespace lode
