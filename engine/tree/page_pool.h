// Pages of the data file in memory, up to a limit, replaced by the CLOCK rule.
//
// A warm pin takes no lock: a flat table leads from page to frame, and a frame's state word counts
// its pins. A frame changes its page only while its state is exactly `busy`, which the evictor gets
// from zero by compare-and-swap. When every frame is pinned a page is read into memory of its own,
// so that the limit never makes a read fail. Checksum and structure are checked on load.
//
// A reader that announced itself (Readers::enter with `pages`) need not even pin: resident() gives
// a page that stays as it is until the reader ends. Frames are taken from their pages in batches,
// and a batch is used only after all such readers that may have seen the pages are gone (I14).
// Threads: all calls from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/file/disk.h"
#include "engine/tree/extents.h"
#include "engine/tree/page.h"

namespace lode {

class PagePool;

/// A page that stays in memory until this goes away.
class PinnedPage {
 public:
  PinnedPage() = default;
  PinnedPage(PinnedPage&& other) noexcept;
  PinnedPage& operator=(PinnedPage&& other) noexcept;
  ~PinnedPage() { release(); }
  [[nodiscard]] PageView view() const { return PageView(memory_); }
  [[nodiscard]] bool empty() const { return memory_ == nullptr; }
  void release();

 private:
  friend class PagePool;
  std::atomic<std::uint32_t>* state_ = nullptr;  // of the frame; null: memory of its own
  const std::byte* memory_ = nullptr;
  AlignedBuffer own_;
};

struct PoolCounters {
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> overflows{0};  ///< pages read into memory of their own
};

class PagePool {
 public:
  /// `max_bytes` of pages at most, 64 pages at least. `wait_for_readers` returns when all readers
  /// without pins that began before are gone; without it resident() must not be used.
  PagePool(File& file, std::size_t max_bytes, std::function<void()> wait_for_readers = {});
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  /// The page when it is in memory, else null. For announced readers; no lock, no write to memory
  /// that others read.
  [[nodiscard]] const std::byte* resident(PageId page) const {
    if (page.value >= table_entries) return nullptr;
    // Sequentially consistent, as the announcement and the removal from the table (I14).
    const std::uint32_t number = table_[page.value].load(std::memory_order_seq_cst);
    if (number == 0) return nullptr;
    std::atomic<std::uint8_t>& warmth = warmth_[number - 1];
    if (warmth.load(std::memory_order_relaxed) == 0) warmth.store(1, std::memory_order_relaxed);
    return memory_of(number - 1);
  }
  /// Asks the CPU for the beginning of a page that is in memory; a hint to itself only.
  void prefetch(PageId page) const {
    if (page.value >= table_entries) return;
    const std::uint32_t number = table_[page.value].load(std::memory_order_relaxed);
    if (number != 0) PageView(memory_of(number - 1)).prefetch();
  }
  Result<PinnedPage> pin(const PageRef& ref, std::uint64_t tree);
  /// Forgets pages that are about to be used for something else; nobody reads them any more.
  void forget(const Extent& extent);
  [[nodiscard]] const PoolCounters& counters() const { return counters_; }
  [[nodiscard]] std::size_t frames() const { return frame_count_; }

 private:
  static constexpr std::uint32_t busy = std::uint32_t{1} << 31;
  static constexpr std::uint64_t no_page = ~std::uint64_t{0};
  static constexpr std::uint64_t table_entries = std::uint64_t{1} << 28;  // pages: 2 TiB
  static constexpr std::size_t stripes = 64;
  static constexpr std::size_t most_taken_at_once = 32;

  struct alignas(16) Frame {
    std::atomic<std::uint32_t> state{0};
    std::atomic<std::uint64_t> page{no_page};
  };
  using Entry = std::atomic<std::uint32_t>;  // frame number + 1, 0 = not in memory

  Entry& entry_of(std::uint64_t page) const;
  bool try_pin(std::uint64_t page, PinnedPage& out);
  Result<PinnedPage> load(const PageRef& ref, std::uint64_t tree);
  std::size_t take_frame();  // frame_count_ when there is none
  void take_victims();
  [[nodiscard]] std::byte* memory_of(std::size_t frame) const {
    return arena_ + frame * page_bytes;
  }

  File& file_;
  std::size_t frame_count_;
  std::byte* mapped_ = nullptr;
  std::byte* arena_ = nullptr;  // of the frames, in mapped_
  std::unique_ptr<Frame[]> frames_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> warmth_;  // close together: readers look at it
  Entry* table_ = nullptr;  // by page; address space that takes memory where it is used
  std::function<void()> wait_for_readers_;
  std::array<std::mutex, stripes> loading_;  // one load of a page at a time
  std::mutex clock_mutex_;
  std::size_t hand_ = 0;
  std::vector<std::size_t> taken_;  // frames, busy, that nobody can see any more
  PoolCounters counters_;
};

}  // namespace lode
