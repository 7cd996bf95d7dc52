// Memory of one overlay: chunks that are given back all at once, with free lists by size in
// between. Small and fast because exactly one thread at a time allocates and frees (the applier).
// Under AddressSanitizer what is free is poisoned, so that a late reader is caught.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace lode {

class NodeArena {
 public:
  NodeArena() = default;
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
  std::vector<void*> chunks_;
  std::map<void*, std::size_t> large_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t next_chunk_bytes_ = 16384;  // the first ones are small: many overlays stay small
  std::size_t used_bytes_ = 0;
};

}  // namespace lode
