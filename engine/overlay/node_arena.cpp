#include "engine/overlay/node_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

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

// So that what is allocated next has its place in the list, whatever fails.
void make_room_for_one(std::vector<void*>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 1);
}

}  // namespace

ChunkPool::~ChunkPool() {
  for (void* chunk : free_) std::free(chunk);
}

void* ChunkPool::take() {
  {
    const std::lock_guard guard(mutex_);
    if (!free_.empty()) {
      void* chunk = free_.back();
      free_.pop_back();
      return chunk;
    }
  }
  void* chunk = std::aligned_alloc(chunk_bytes, chunk_bytes);
  if (chunk == nullptr) throw std::bad_alloc();
  ::madvise(chunk, chunk_bytes, MADV_HUGEPAGE);  // a wish
  return chunk;
}

void ChunkPool::give(void* chunk) {
  {
    const std::lock_guard guard(mutex_);
    if (free_.size() < most_) {
      free_.push_back(chunk);
      return;
    }
  }
  std::free(chunk);
}

NodeArena::~NodeArena() {
  for (void* chunk : pooled_chunks_) pool_->give(chunk);
  for (void* chunk : chunks_) std::free(chunk);
  for (const auto& [memory, bytes] : large_) std::free(memory);
}

void* NodeArena::allocate(std::size_t bytes) {
  bytes = rounded(bytes);
  if (bytes > largest_pooled_bytes) {
    std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(bytes), &std::free);
    if (!memory) throw std::bad_alloc();
    large_[memory.get()] = bytes;
    used_bytes_ += bytes;
    return memory.release();
  }
  Free*& head = free_[bytes / granule_bytes];
  if (head != nullptr) {
    Free* memory = head;
    LODE_UNPOISON(memory, bytes);
    head = memory->next;
    used_bytes_ += bytes;
    return memory;
  }
  if (left_ < bytes) {
    if (pool_ && next_chunk_bytes_ == chunk_bytes) {
      make_room_for_one(pooled_chunks_);
      next_ = static_cast<std::byte*>(pool_->take());
      left_ = ChunkPool::chunk_bytes;
      pooled_chunks_.push_back(next_);
    } else {
      make_room_for_one(chunks_);
      void* const chunk = std::aligned_alloc(64, next_chunk_bytes_);
      if (chunk == nullptr) throw std::bad_alloc();
      next_ = static_cast<std::byte*>(chunk);
      left_ = next_chunk_bytes_;
      chunks_.push_back(next_);
    }
    next_chunk_bytes_ = std::min(chunk_bytes, next_chunk_bytes_ * 2);
    LODE_POISON(next_, left_);
  }
  void* memory = next_;
  LODE_UNPOISON(memory, bytes);
  next_ += bytes;
  left_ -= bytes;
  used_bytes_ += bytes;
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
