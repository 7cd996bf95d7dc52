#include "engine/tree/extents.h"

#include <algorithm>

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

Extent ExtentAllocator::allocate(std::uint64_t least, std::uint64_t preferred) {
  LODE_CHECK(least > 0 && least <= preferred, "size of an extent");
  const std::lock_guard guard(mutex_);
  std::uint64_t page = lowest_free_;
  bool first_free = true;
  while (page < end_) {
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
    while (run < preferred && page + run < end_ && !used(page + run)) ++run;
    if (page + run == end_) run = preferred;  // the rest is new space at the end of the file
    if (run >= least) {
      const Extent extent{PageId(page), run};
      set(extent, true);
      end_ = std::max(end_, page + run);
      return extent;
    }
    page += run;
  }
  const Extent extent{PageId(end_), preferred};
  set(extent, true);
  end_ += preferred;
  if (first_free) lowest_free_ = end_;
  return extent;
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
