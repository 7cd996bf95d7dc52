#include "engine/overlay/node_arena.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define LODE_POISON(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define LODE_UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define LODE_POISON(memory, bytes) (void)(memory)
#define LODE_UNPOISON(memory, bytes) (void)(memory)
#endif

namespace lode {
namespace {

std::size_t rounded(std::size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

NodeArena::~NodeArena() {
  for (void* chunk : chunks_) std::free(chunk);
  for (const auto& [memory, bytes] : large_) std::free(memory);
}

void* NodeArena::allocate(std::size_t bytes) {
  bytes = rounded(bytes);
  used_bytes_ += bytes;
  if (bytes > largest_pooled_bytes) {
    void* memory = std::malloc(bytes);
    LODE_CHECK(memory != nullptr, "out of memory");
    large_[memory] = bytes;
    return memory;
  }
  Free*& head = free_[bytes / granule_bytes];
  if (head != nullptr) {
    Free* memory = head;
    LODE_UNPOISON(memory, bytes);
    head = memory->next;
    return memory;
  }
  if (left_ < bytes) {
    const std::size_t size = next_chunk_bytes_;
    next_chunk_bytes_ = std::min(chunk_bytes, size * 2);
    next_ = static_cast<std::byte*>(std::aligned_alloc(64, size));
    LODE_CHECK(next_ != nullptr, "out of memory");
    left_ = size;
    chunks_.push_back(next_);
    LODE_POISON(next_, left_);
  }
  void* memory = next_;
  LODE_UNPOISON(memory, bytes);
  next_ += bytes;
  left_ -= bytes;
  return memory;
}

void NodeArena::release(void* memory, std::size_t bytes) {
  bytes = rounded(bytes);
  used_bytes_ -= bytes;
  if (bytes > largest_pooled_bytes) {
    large_.erase(memory);
    std::free(memory);
    return;
  }
  auto* free = static_cast<Free*>(memory);
  free->next = free_[bytes / granule_bytes];
  free_[bytes / granule_bytes] = free;
  LODE_POISON(memory, bytes);
}

}  // namespace lode
