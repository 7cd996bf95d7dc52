// Memory of one overlay: chunks that are given back all at once, with free lists by size in
// between. Small and fast because exactly one thread at a time allocates and frees (the applier).
// Under AddressSanitizer what is free is poisoned, so that a late reader is caught.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace lode {

/// Large chunks of memory that one overlay leaves to the next, so that the system need not hand out
/// and clear them again. In huge pages where there are any. Threads: any.
class ChunkPool {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{2} << 20;
  /// Keeps at most `most_bytes` of chunks that nobody uses.
  explicit ChunkPool(std::size_t most_bytes) : most_(most_bytes / chunk_bytes) {
    free_.reserve(most_);  // so that giving back needs no memory
  }
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;
  ~ChunkPool();
  [[nodiscard]] void* take();
  void give(void* chunk);

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::vector<void*> free_;
};

class NodeArena {
 public:
  /// Without a pool, from the heap.
  explicit NodeArena(std::shared_ptr<ChunkPool> pool = {}) : pool_(std::move(pool)) {}
  NodeArena(const NodeArena&) = delete;
  NodeArena& operator=(const NodeArena&) = delete;
  ~NodeArena();

  /// Memory for `bytes`, aligned to 16.
  void* allocate(std::size_t bytes);
  /// Gives back what allocate(bytes) returned.
  void release(void* memory, std::size_t bytes);
  /// Bytes handed out and not given back.
  [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t granule_bytes = 16;
  static constexpr std::size_t largest_pooled_bytes = 4096;
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

  std::array<Free*, largest_pooled_bytes / granule_bytes + 1> free_{};
  std::shared_ptr<ChunkPool> pool_;
  std::vector<void*> chunks_;
  std::vector<void*> pooled_chunks_;
  std::map<void*, std::size_t> large_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t next_chunk_bytes_ = 16384;  // the first ones are small: many overlays stay small
  std::size_t used_bytes_ = 0;
};

}  // namespace lode
