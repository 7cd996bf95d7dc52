// Who is reading which generation, and what may be freed.
//
// Every published state has a generation. A short read (get) announces the generation current when
// it began in a slot: it may see that one or a later one. A snapshot pins exactly one generation.
// An object that was born in generation b and replaced in d is visible in [b, d). It may be freed
// when d <= the published generation, d <= every slot, and no snapshot lies in [b, d): a sleeping
// snapshot pins what it shows and nothing that came and went after it (invariant I11).
//
// A short read may also look at pages of the pool without pinning them. Its slot says so, and
// whoever has taken pages out of the pool's table waits until all such reads that may have seen
// them are over, before their memory is used for something else. Such a read never waits for
// anything; it gives the right up (stop_reading_pages) before it does (invariant I14). Threads:
// slots and snapshots from any thread, without waiting; Reclaimer by the applier only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/types.h"

namespace lode {

class Readers {
 public:
  /// Announces a short read; release(slot) ends it. After it returned, whatever the caller loads
  /// as the published state is not freed before the release.
  /// With `pages`, it may read pages that it finds in the pool's table without a pin.
  [[nodiscard]] std::size_t enter(const std::atomic<std::uint64_t>& published, bool pages = false);
  void leave(std::size_t number) {
    Slot& slot = slots_[number];
    slot.ended.store(slot.ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    slot.generation.store(0, std::memory_order_release);
  }
  void stop_reading_pages(std::size_t number) {
    Slot& slot = slots_[number];
    slot.ended.store(slot.ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    slot.generation.store(slot.generation.load(std::memory_order_relaxed) & ~reads_pages,
                          std::memory_order_release);
  }
  /// Returns when every read of pages without a pin that began before is over.
  void wait_for_page_readers() const;
  /// Counts pages that the holder of the slot found in memory.
  void count_pages(std::size_t number, std::uint64_t pages) {
    Slot& slot = slots_[number];
    slot.pages.store(slot.pages.load(std::memory_order_relaxed) + pages, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t pages_read() const;

  /// Pins `generation`. The caller must hold a slot that covers it, or be the publisher.
  void pin(Generation generation);
  void unpin(Generation generation);

  /// The lowest generation announced in a slot, or `published` when there is none lower.
  [[nodiscard]] Generation oldest_short(Generation published) const;
  /// The newest pinned generation below `death`.
  [[nodiscard]] std::optional<Generation> newest_pin_below(Generation death) const;
  [[nodiscard]] std::size_t pins() const;
  [[nodiscard]] std::optional<Generation> oldest_pin() const;
  /// Changes whenever a generation loses its last pin.
  [[nodiscard]] std::uint64_t unpin_count() const {
    return unpins_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t slot_count = 128;
  static constexpr std::uint64_t reads_pages = std::uint64_t{1} << 63;
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> generation{0};  // 0: free. Generations begin at 1. And a flag.
    // Written by the holder only:
    std::atomic<std::uint64_t> ended{0};  // reads of pages that are over
    std::atomic<std::uint64_t> pages{0};
  };
  std::array<Slot, slot_count> slots_;
  mutable std::mutex mutex_;
  std::map<Generation, std::size_t> pinned_;
  std::atomic<std::uint64_t> unpins_{0};
};

/// A short read from its announcement to its end.
class ShortRead {
 public:
  ShortRead(Readers& readers, const std::atomic<std::uint64_t>& published, bool pages = false)
      : readers_(readers), slot_(readers.enter(published, pages)) {}
  ~ShortRead() { readers_.leave(slot_); }
  ShortRead(const ShortRead&) = delete;
  ShortRead& operator=(const ShortRead&) = delete;
  void count_pages(std::uint64_t pages) { readers_.count_pages(slot_, pages); }
  void stop_reading_pages() { readers_.stop_reading_pages(slot_); }

 private:
  Readers& readers_;
  const std::size_t slot_;
};

/// Objects that were replaced, until nobody can see them any more.
class Reclaimer {
 public:
  using Free = std::function<void(void* object, std::size_t bytes)>;
  Reclaimer(const Readers& readers, Free free) : readers_(readers), free_(std::move(free)) {}

  /// `object` was visible in generations [birth, death). Deaths never decrease.
  void retire(void* object, std::size_t bytes, Generation birth, Generation death);
  /// Frees what nobody can see; `published` is the oldest state that a new reader can get.
  void reclaim(Generation published);
  /// Frees everything, readers or not: when the owner goes away.
  void free_all();
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Retired {
    void* object;
    std::size_t bytes;
    Generation birth;
    Generation death;
  };
  void free_or_park(const Retired& retired);

  const Readers& readers_;
  Free free_;
  std::deque<Retired> queue_;                          // in order of death
  std::map<Generation, std::vector<Retired>> parked_;  // by the newest snapshot that sees them
  std::uint64_t unpins_seen_ = 0;
};

}  // namespace lode
