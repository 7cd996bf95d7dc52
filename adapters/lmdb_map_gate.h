// Keeps LMDB's map in place while anybody looks at it, and lets it be moved when nobody does.
//
// LMDB may change the size of its map only while no transaction of the process is open. Every
// session owns a Slot and is inside it while it has a transaction or hands out a view into the
// map. The grower waits until all slots are left. Entering costs one exchange and one load on a
// cache line of the session's own, so that readers share nothing.
//
// Invariant: a slot is marked before the gate is looked at, and the gate is shut before the slots
// are looked at (both sequentially consistent), so one of the two always sees the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {

class LmdbMapGate {
 public:
  /// One session's mark. Entered and left by the session's thread only.
  class alignas(64) Slot {
   public:
    explicit Slot(LmdbMapGate& gate) : gate_(gate) {
      const std::scoped_lock lock(gate_.mutex_);
      gate_.slots_.push_back(this);
    }
    ~Slot() {
      const std::scoped_lock lock(gate_.mutex_);
      std::erase(gate_.slots_, this);
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    void enter() {
      for (;;) {
        inside_.store(true);
        if (!gate_.shut_.load()) return;
        inside_.store(false);
        const std::scoped_lock wait_for_the_grower(gate_.mutex_);
      }
    }
    void leave() { inside_.store(false, std::memory_order_release); }

   private:
    friend class LmdbMapGate;
    LmdbMapGate& gate_;
    std::atomic<bool> inside_{false};
  };

  /// Runs `change` while no slot is inside. False, without running it, when a slot stays inside
  /// for longer than `patience`. The caller must have left its own slot.
  template <class Change>
  [[nodiscard]] bool exclusively(std::chrono::milliseconds patience, const Change& change) {
    const std::scoped_lock lock(mutex_);
    shut_.store(true);
    const auto until = std::chrono::steady_clock::now() + patience;
    const auto is_inside = [](const Slot* slot) { return slot->inside_.load(); };
    bool empty = false;
    while (!(empty = std::ranges::none_of(slots_, is_inside)) &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (empty) change();
    shut_.store(false);
    return empty;
  }

 private:
  std::mutex mutex_;  // guards slots_, and is held by the grower
  std::vector<Slot*> slots_;
  std::atomic<bool> shut_{false};
};

}  // namespace assay
