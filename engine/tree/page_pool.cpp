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

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::byte* address_space(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LODE_CHECK(memory != MAP_FAILED, "address space for the page pool");
  return static_cast<std::byte*>(memory);
}

}  // namespace

PagePool::PagePool(File& file, std::size_t max_bytes, std::function<void()> wait_for_readers)
    : file_(file),
      frame_count_(std::max<std::size_t>(64, max_bytes / page_bytes)),
      wait_for_readers_(std::move(wait_for_readers)) {
  // More than needed, so that the frames can begin at a huge page's boundary.
  mapped_ = address_space(frame_count_ * page_bytes + huge_page_bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
  arena_ = mapped_ + (huge_page_bytes - address % huge_page_bytes) % huge_page_bytes;
  ::madvise(arena_, frame_count_ * page_bytes, MADV_HUGEPAGE);  // a wish: fewer TLB misses
  taken_.reserve(most_taken_at_once);  // a frame taken always has its place in the list
  frames_ = std::make_unique<Frame[]>(frame_count_);
  warmth_ = std::make_unique<std::atomic<std::uint8_t>[]>(frame_count_);
  table_ = reinterpret_cast<Entry*>(address_space(table_entries * sizeof(Entry)));
}

PagePool::~PagePool() {
  for (std::size_t i = 0; i < frame_count_; ++i) {
    LODE_CHECK((frames_[i].state.load() & ~busy) == 0, "no page is pinned when the pool goes");
  }
  ::munmap(table_, table_entries * sizeof(Entry));
  ::munmap(mapped_, frame_count_ * page_bytes + huge_page_bytes);
}

PagePool::Entry& PagePool::entry_of(std::uint64_t page) const {
  LODE_CHECK(page < table_entries, "a page number within the pool's table");
  return table_[page];
}

bool PagePool::try_pin(std::uint64_t page, PinnedPage& out) {
  const std::uint32_t number = entry_of(page).load(std::memory_order_acquire);
  if (number == 0) return false;
  Frame& frame = frames_[number - 1];
  const std::uint32_t before = frame.state.fetch_add(1, std::memory_order_acq_rel);
  if ((before & busy) != 0 || frame.page.load(std::memory_order_relaxed) != page) {
    frame.state.fetch_sub(1, std::memory_order_release);  // given to another page meanwhile
    return false;
  }
  if (warmth_[number - 1].load(std::memory_order_relaxed) == 0) {
    warmth_[number - 1].store(1, std::memory_order_relaxed);
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

// Needs clock_mutex_. Fills taken_, unless everything is pinned.
void PagePool::take_victims() {
  constexpr std::size_t rounds = 5;  // warmth is 3 at most, and one more for luck
  const std::size_t wanted = std::clamp<std::size_t>(frame_count_ / 16, 1, most_taken_at_once);
  bool seen = false;
  for (std::size_t step = 0; step < rounds * frame_count_ && taken_.size() < wanted; ++step) {
    const std::size_t number = hand_;
    hand_ = hand_ + 1 == frame_count_ ? 0 : hand_ + 1;
    Frame& frame = frames_[number];
    if (frame.state.load(std::memory_order_relaxed) != 0) continue;
    const std::uint8_t warmth = warmth_[number].load(std::memory_order_relaxed);
    if (warmth > 0) {
      warmth_[number].store(static_cast<std::uint8_t>(warmth - 1), std::memory_order_relaxed);
      continue;
    }
    std::uint32_t unpinned = 0;
    if (!frame.state.compare_exchange_strong(unpinned, busy, std::memory_order_acq_rel)) continue;
    const std::uint64_t old = frame.page.load(std::memory_order_relaxed);
    if (old != no_page) {
      entry_of(old).store(0, std::memory_order_seq_cst);
      seen = true;
    }
    frame.page.store(no_page, std::memory_order_relaxed);
    taken_.push_back(number);
  }
  // I14: whoever may have found them in the table has gone before they are filled again.
  if (seen && wait_for_readers_) wait_for_readers_();
}

std::size_t PagePool::take_frame() {
  const std::lock_guard guard(clock_mutex_);
  if (taken_.empty()) take_victims();
  if (taken_.empty()) return frame_count_;
  const std::size_t number = taken_.back();
  taken_.pop_back();
  return number;
}

Result<PinnedPage> PagePool::load(const PageRef& ref, std::uint64_t tree) {
  const std::uint64_t page = ref.page.value;
  const std::lock_guard guard(loading_[page % stripes]);
  PinnedPage pinned;
  if (try_pin(page, pinned)) return pinned;  // another thread has brought it meanwhile
  counters_.misses.fetch_add(1, std::memory_order_relaxed);
  const std::size_t number = take_frame();
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
    warmth_[number].store(PageView(memory).leaf() ? 1 : 3, std::memory_order_relaxed);
    frame.state.fetch_sub(busy - 1, std::memory_order_release);  // no longer busy, one pin
    entry_of(page).store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
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
    Entry& entry = entry_of(page);
    if (entry.load(std::memory_order_acquire) == 0) continue;
    const std::lock_guard guard(clock_mutex_);  // no evictor gives the frame away meanwhile
    const std::uint32_t number = entry.load(std::memory_order_acquire);
    if (number == 0) continue;
    Frame& frame = frames_[number - 1];
    if (frame.page.load(std::memory_order_relaxed) != page) continue;
    entry.store(0, std::memory_order_release);
    frame.page.store(no_page, std::memory_order_relaxed);
    warmth_[number - 1].store(0, std::memory_order_relaxed);
  }
}

}  // namespace lode
