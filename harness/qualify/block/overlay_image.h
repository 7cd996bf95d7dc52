// The image at a state: the base, and above it the blocks that were written since. Nothing of the
// base is copied but blocks that are written in part.
// Invariant: the base is never written. One thread uses an object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/qualify/block/disk_states.h"
#include "harness/qualify/block/shared_disk.h"

namespace assay::qualify::block {

class OverlayImage {
 public:
  static constexpr std::uint64_t kBlockBytes = 4096;

  /// `disk` must outlive it.
  explicit OverlayImage(const SharedDisk& disk);

  /// The base again.
  void reset();
  /// The base, then what `state` says was written.
  void become(const DiskState& state);

  void read(std::uint64_t offset, std::uint64_t bytes, char* into) const;
  void write(std::uint64_t offset, std::uint64_t bytes, const char* from);
  void zero(std::uint64_t offset, std::uint64_t bytes);

  /// Of all blocks that differ from the base: two states with the same are the same image.
  [[nodiscard]] std::uint64_t hash() const;
  /// Whether the two hold the same bytes everywhere; both lie over the same base.
  [[nodiscard]] bool same_as(const OverlayImage& other) const;

 private:
  using Block = std::array<char, kBlockBytes>;

  void apply(const LogEntry& entry, std::uint32_t first_sector, std::uint32_t sectors);
  [[nodiscard]] const char* block(std::uint64_t number) const;
  /// The block, to be written; `whole`: what was in it does not matter.
  [[nodiscard]] char* own(std::uint64_t number, bool whole);

  const SharedDisk* disk_;
  std::vector<std::uint32_t> place_;    ///< of each block in pool_, plus one; 0 = the base's
  std::vector<std::uint32_t> written_;  ///< numbers of blocks that have a place
  std::vector<std::unique_ptr<Block>> pool_;
};

}  // namespace assay::qualify::block
