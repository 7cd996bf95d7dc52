#include "engine/tree/extents.h"

#include <algorithm>
#include <string>

#include "engine/base/check.h"

namespace lode {

ExtentAllocator::ExtentAllocator(std::uint64_t reserved)
    : reserved_(reserved), end_(reserved), lowest_free_(reserved) {}

bool ExtentAllocator::used(std::uint64_t page) const {
  const std::uint64_t word = page / 64;
  return word < words_.size() && ((words_[word] >> (page % 64)) & 1) != 0;
}

void ExtentAllocator::set(const Extent& extent, bool value) {
  const std::uint64_t last = extent.first.value + extent.pages;
  if (words_.size() * 64 < last) words_.resize(last / 64 + 1, 0);
  for (std::uint64_t page = extent.first.value; page < last; ++page) {
    const std::uint64_t bit = std::uint64_t{1} << (page % 64);
    if (value) {
      words_[page / 64] |= bit;
    } else {
      words_[page / 64] &= ~bit;
    }
  }
  used_ = value ? used_ + extent.pages : used_ - extent.pages;
  changes_.fetch_add(1, std::memory_order_release);
}

bool ExtentAllocator::claim(const Extent& extent) {
  const std::lock_guard guard(mutex_);
  if (extent.first.value < reserved_) return false;
  for (std::uint64_t i = 0; i < extent.pages; ++i) {
    if (used(extent.first.value + i)) return false;
  }
  set(extent, true);
  end_ = std::max(end_, extent.first.value + extent.pages);
  return true;
}

Result<Extent> ExtentAllocator::allocate(std::uint64_t least, std::uint64_t preferred) {
  LODE_CHECK(least > 0 && least <= preferred, "size of an extent");
  const std::lock_guard guard(mutex_);
  std::uint64_t page = lowest_free_;
  bool first_free = true;
  const std::uint64_t end = std::min(end_, limit_);
  while (page < end) {
    if (page % 64 == 0 && page / 64 < words_.size() && words_[page / 64] == ~std::uint64_t{0}) {
      page += 64;
      continue;
    }
    if (used(page)) {
      ++page;
      continue;
    }
    if (first_free) lowest_free_ = page;
    first_free = false;
    std::uint64_t run = 1;
    while (run < preferred && page + run < end && !used(page + run)) ++run;
    // The rest is new space at the end of the file.
    if (page + run == end) run = std::max(run, std::min(preferred, room_from(page)));
    if (run >= least) {
      const Extent extent{PageId(page), run};
      set(extent, true);
      end_ = std::max(end_, page + run);
      return extent;
    }
    page += run;
  }
  if (room_from(end_) < least) {
    return fail(ErrorKind::arena_full,
                "the arena of " + std::to_string(limit_ * page_bytes) + " bytes has no " +
                    std::to_string(least * page_bytes) + " bytes in a row left; " +
                    std::to_string((reserved_ + used_) * page_bytes) + " are in use");
  }
  const Extent extent{PageId(end_), std::min(preferred, room_from(end_))};
  set(extent, true);
  end_ += extent.pages;
  LODE_CHECK(end_ <= limit_, "I19: no page lies beyond the bound");
  if (first_free) lowest_free_ = end_;
  return extent;
}

std::uint64_t ExtentAllocator::largest_extent() const {
  constexpr std::uint64_t largest = 1024;  // 8 MiB
  return std::clamp<std::uint64_t>(limit_ / 256, 1, largest);
}

std::uint64_t ExtentAllocator::usable(std::uint64_t piece) const {
  const std::lock_guard guard(mutex_);
  std::uint64_t sum = 0;
  std::uint64_t gap = 0;
  const auto close_gap = [&] {
    if (gap >= piece) sum += gap - (piece - 1);
    gap = 0;
  };
  const std::uint64_t end = std::min(end_, limit_);
  for (std::uint64_t page = reserved_; page < end;) {
    const std::uint64_t word = page / 64 < words_.size() ? words_[page / 64] : 0;
    if (page % 64 == 0 && page + 64 <= end && (word == 0 || word == ~std::uint64_t{0})) {
      if (word != 0) close_gap();
      gap += word == 0 ? 64 : 0;
      page += 64;
      continue;
    }
    if (((word >> (page % 64)) & 1) != 0) {
      close_gap();
    } else {
      ++gap;
    }
    ++page;
  }
  if (limit_ > end) gap += limit_ - end;
  close_gap();
  return sum;
}

void ExtentAllocator::free(const Extent& extent) {
  if (extent.pages == 0) return;
  const std::lock_guard guard(mutex_);
  for (std::uint64_t i = 0; i < extent.pages; ++i) {
    LODE_CHECK(used(extent.first.value + i), "I8: what is freed was in use");
  }
  set(extent, false);
  lowest_free_ = std::min(lowest_free_, extent.first.value);
}

std::uint64_t ExtentAllocator::used_pages() const {
  const std::lock_guard guard(mutex_);
  return used_;
}

std::uint64_t ExtentAllocator::end_page() const {
  const std::lock_guard guard(mutex_);
  return end_;
}

}  // namespace lode
