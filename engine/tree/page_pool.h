// Pages of the data file in memory, up to a limit, replaced by the CLOCK rule.
//
// A warm pin takes no lock: a flat table leads from page to frame, and a frame's state word counts
// its pins. A frame changes its page only while its state is exactly `busy`, which the evictor gets
// from zero by compare-and-swap. When every frame is pinned a page is read into memory of its own,
// so that the limit never makes a read fail. Checksum and structure are checked on load.
// Threads: all calls from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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
  /// `max_bytes` of pages at most, 64 pages at least.
  PagePool(File& file, std::size_t max_bytes);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  Result<PinnedPage> pin(const PageRef& ref, std::uint64_t tree);
  /// Forgets pages that are about to be used for something else; nobody reads them any more.
  void forget(const Extent& extent);
  [[nodiscard]] const PoolCounters& counters() const { return counters_; }
  [[nodiscard]] std::size_t frames() const { return frame_count_; }

 private:
  static constexpr std::uint32_t busy = std::uint32_t{1} << 31;
  static constexpr std::uint64_t no_page = ~std::uint64_t{0};
  static constexpr std::size_t chunk_entries = 4096;
  static constexpr std::size_t chunk_count = 65536;  // 2^28 pages: 2 TiB
  static constexpr std::size_t stripes = 64;

  struct alignas(32) Frame {
    std::atomic<std::uint32_t> state{0};
    std::atomic<std::uint8_t> warmth{0};
    std::atomic<std::uint64_t> page{no_page};
  };
  using Entry = std::atomic<std::uint32_t>;  // frame number + 1, 0 = not in memory
  struct Chunk {
    std::array<Entry, chunk_entries> entries{};
  };

  Entry* entry_of(std::uint64_t page, bool make);
  bool try_pin(std::uint64_t page, PinnedPage& out);
  Result<PinnedPage> load(const PageRef& ref, std::uint64_t tree);
  std::size_t take_victim();  // frame_count_ when there is none
  [[nodiscard]] std::byte* memory_of(std::size_t frame) const {
    return arena_ + frame * page_bytes;
  }

  File& file_;
  std::size_t frame_count_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<Frame[]> frames_;
  std::unique_ptr<std::atomic<Chunk*>[]> table_;
  std::array<std::mutex, stripes> loading_;  // one load of a page at a time
  std::mutex clock_mutex_;
  std::size_t hand_ = 0;
  PoolCounters counters_;
};

}  // namespace lode
