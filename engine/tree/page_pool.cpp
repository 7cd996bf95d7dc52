#include "engine/tree/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace lode {

PinnedPage::PinnedPage(PinnedPage&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      own_(std::move(other.own_)) {}

PinnedPage& PinnedPage::operator=(PinnedPage&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::exchange(other.state_, nullptr);
  memory_ = std::exchange(other.memory_, nullptr);
  own_ = std::move(other.own_);
  return *this;
}

void PinnedPage::release() {
  if (state_ != nullptr) state_->fetch_sub(1, std::memory_order_release);
  state_ = nullptr;
  memory_ = nullptr;
}

PagePool::PagePool(File& file, std::size_t max_bytes)
    : file_(file), frame_count_(std::max<std::size_t>(64, max_bytes / page_bytes)) {
  void* memory = ::mmap(nullptr, frame_count_ * page_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LODE_CHECK(memory != MAP_FAILED, "address space for the page pool");
  arena_ = static_cast<std::byte*>(memory);
  ::madvise(memory, frame_count_ * page_bytes, MADV_HUGEPAGE);  // a wish: fewer TLB misses
  frames_ = std::make_unique<Frame[]>(frame_count_);
  table_ = std::make_unique<std::atomic<Chunk*>[]>(chunk_count);
}

PagePool::~PagePool() {
  for (std::size_t i = 0; i < frame_count_; ++i) {
    LODE_CHECK(frames_[i].state.load() == 0, "no page is pinned when the pool goes");
  }
  for (std::size_t i = 0; i < chunk_count; ++i) delete table_[i].load();
  ::munmap(arena_, frame_count_ * page_bytes);
}

PagePool::Entry* PagePool::entry_of(std::uint64_t page, bool make) {
  const std::size_t number = page / chunk_entries;
  LODE_CHECK(number < chunk_count, "a page number within the pool's table");
  Chunk* chunk = table_[number].load(std::memory_order_acquire);
  if (chunk == nullptr) {
    if (!make) return nullptr;
    auto fresh = std::make_unique<Chunk>();
    if (table_[number].compare_exchange_strong(chunk, fresh.get(), std::memory_order_acq_rel)) {
      chunk = fresh.release();
    }
  }
  return &chunk->entries[page % chunk_entries];
}

bool PagePool::try_pin(std::uint64_t page, PinnedPage& out) {
  Entry* entry = entry_of(page, false);
  if (entry == nullptr) return false;
  const std::uint32_t number = entry->load(std::memory_order_acquire);
  if (number == 0) return false;
  Frame& frame = frames_[number - 1];
  const std::uint32_t before = frame.state.fetch_add(1, std::memory_order_acq_rel);
  if ((before & busy) != 0 || frame.page.load(std::memory_order_relaxed) != page) {
    frame.state.fetch_sub(1, std::memory_order_release);  // given to another page meanwhile
    return false;
  }
  if (frame.warmth.load(std::memory_order_relaxed) == 0) {
    frame.warmth.store(1, std::memory_order_relaxed);
  }
  out.state_ = &frame.state;
  out.memory_ = memory_of(number - 1);
  return true;
}

Result<PinnedPage> PagePool::pin(const PageRef& ref, std::uint64_t tree) {
  PinnedPage page;
  if (try_pin(ref.page.value, page)) {
    counters_.hits.fetch_add(1, std::memory_order_relaxed);
    return page;
  }
  return load(ref, tree);
}

std::size_t PagePool::take_victim() {
  constexpr std::size_t rounds = 5;  // warmth is 3 at most, and one more for luck
  const std::lock_guard guard(clock_mutex_);
  for (std::size_t step = 0; step < rounds * frame_count_; ++step) {
    const std::size_t number = hand_;
    hand_ = hand_ + 1 == frame_count_ ? 0 : hand_ + 1;
    Frame& frame = frames_[number];
    if (frame.state.load(std::memory_order_relaxed) != 0) continue;
    const std::uint8_t warmth = frame.warmth.load(std::memory_order_relaxed);
    if (warmth > 0) {
      frame.warmth.store(static_cast<std::uint8_t>(warmth - 1), std::memory_order_relaxed);
      continue;
    }
    std::uint32_t unpinned = 0;
    if (!frame.state.compare_exchange_strong(unpinned, busy, std::memory_order_acq_rel)) continue;
    const std::uint64_t old = frame.page.load(std::memory_order_relaxed);
    if (old != no_page) entry_of(old, true)->store(0, std::memory_order_release);
    frame.page.store(no_page, std::memory_order_relaxed);
    return number;
  }
  return frame_count_;
}

Result<PinnedPage> PagePool::load(const PageRef& ref, std::uint64_t tree) {
  const std::uint64_t page = ref.page.value;
  const std::lock_guard guard(loading_[page % stripes]);
  PinnedPage pinned;
  if (try_pin(page, pinned)) return pinned;  // another thread has brought it meanwhile
  counters_.misses.fetch_add(1, std::memory_order_relaxed);
  const std::size_t number = take_victim();
  const bool pooled = number < frame_count_;
  if (!pooled) {
    counters_.overflows.fetch_add(1, std::memory_order_relaxed);
    pinned.own_ = AlignedBuffer(page_bytes);
  }
  std::byte* memory = pooled ? memory_of(number) : pinned.own_.data();
  Status status = read_exactly(file_, Bytes(memory, page_bytes), page * page_bytes);
  if (status) status = check_page(memory, ref, tree);
  if (pooled) {
    Frame& frame = frames_[number];
    if (!status) {
      frame.state.fetch_sub(busy, std::memory_order_release);
      return std::unexpected(std::move(status).error());
    }
    frame.page.store(page, std::memory_order_relaxed);
    frame.warmth.store(PageView(memory).leaf() ? 1 : 3, std::memory_order_relaxed);
    frame.state.fetch_sub(busy - 1, std::memory_order_release);  // no longer busy, one pin
    entry_of(page, true)->store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
    pinned.state_ = &frame.state;
  } else if (!status) {
    return std::unexpected(std::move(status).error());
  }
  pinned.memory_ = memory;
  return pinned;
}

void PagePool::forget(const Extent& extent) {
  for (std::uint64_t i = 0; i < extent.pages; ++i) {
    const std::uint64_t page = extent.first.value + i;
    Entry* entry = entry_of(page, false);
    if (entry == nullptr) continue;
    const std::lock_guard guard(clock_mutex_);  // no evictor gives the frame away meanwhile
    const std::uint32_t number = entry->load(std::memory_order_acquire);
    if (number == 0) continue;
    Frame& frame = frames_[number - 1];
    if (frame.page.load(std::memory_order_relaxed) != page) continue;
    entry->store(0, std::memory_order_release);
    frame.page.store(no_page, std::memory_order_relaxed);
    frame.warmth.store(0, std::memory_order_relaxed);
  }
}

}  // namespace lode
