#include "harness/qualify/block/overlay_image.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace assay::qualify::block {

OverlayImage::OverlayImage(const SharedDisk& disk) : disk_(&disk) {
  place_.resize((disk.image_bytes() + kBlockBytes - 1) / kBlockBytes);
}

void OverlayImage::reset() {
  for (const std::uint32_t number : written_) place_[number] = 0;
  written_.clear();
}

const char* OverlayImage::block(std::uint64_t number) const {
  const std::uint32_t place = place_[number];
  return place == 0 ? disk_->base() + number * kBlockBytes : pool_[place - 1]->data();
}

char* OverlayImage::own(std::uint64_t number, bool whole) {
  if (place_[number] == 0) {
    if (written_.size() == pool_.size()) pool_.push_back(std::make_unique<Block>());
    Block& fresh = *pool_[written_.size()];
    if (!whole) std::memcpy(fresh.data(), disk_->base() + number * kBlockBytes, kBlockBytes);
    written_.push_back(static_cast<std::uint32_t>(number));
    place_[number] = static_cast<std::uint32_t>(written_.size());
  }
  return pool_[place_[number] - 1]->data();
}

void OverlayImage::read(std::uint64_t offset, std::uint64_t bytes, char* into) const {
  while (bytes > 0) {
    const std::uint64_t within = offset % kBlockBytes;
    const std::uint64_t part = std::min(bytes, kBlockBytes - within);
    std::memcpy(into, block(offset / kBlockBytes) + within, part);
    offset += part;
    into += part;
    bytes -= part;
  }
}

void OverlayImage::write(std::uint64_t offset, std::uint64_t bytes, const char* from) {
  while (bytes > 0) {
    const std::uint64_t within = offset % kBlockBytes;
    const std::uint64_t part = std::min(bytes, kBlockBytes - within);
    std::memcpy(own(offset / kBlockBytes, part == kBlockBytes) + within, from, part);
    offset += part;
    from += part;
    bytes -= part;
  }
}

void OverlayImage::zero(std::uint64_t offset, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t within = offset % kBlockBytes;
    const std::uint64_t part = std::min(bytes, kBlockBytes - within);
    std::memset(own(offset / kBlockBytes, part == kBlockBytes) + within, 0, part);
    offset += part;
    bytes -= part;
  }
}

void OverlayImage::apply(const LogEntry& entry, std::uint32_t first_sector, std::uint32_t sectors) {
  const std::uint64_t from = std::uint64_t{first_sector} * kSectorBytes;
  const std::uint64_t to = std::min(entry.bytes, from + std::uint64_t{sectors} * kSectorBytes);
  if (from >= to) return;
  if (entry.kind == LogEntry::Kind::write)
    write(entry.offset + from, to - from, disk_->data(entry).data() + from);
  else if (entry.kind == LogEntry::Kind::zero)
    zero(entry.offset + from, to - from);
}

void OverlayImage::become(const DiskState& state) {
  reset();
  const std::span<const LogEntry> entries = disk_->entries();
  for (std::uint32_t at = 0; at < state.durable_end; ++at)
    apply(entries[at], 0, entries[at].sectors());
  for (const Piece& piece : state.kept)
    apply(entries[piece.entry], piece.first_sector, piece.sectors);
}

std::uint64_t OverlayImage::hash() const {
  std::vector<std::uint32_t> numbers = written_;
  std::ranges::sort(numbers);
  std::vector<std::uint64_t> digests;
  for (const std::uint32_t number : numbers) {
    const char* const mine = block(number);
    if (std::memcmp(mine, disk_->base() + std::uint64_t{number} * kBlockBytes, kBlockBytes) == 0)
      continue;
    digests.push_back(XXH3_64bits_withSeed(mine, kBlockBytes, number));
  }
  return XXH3_64bits(digests.data(), digests.size() * sizeof(std::uint64_t));
}

bool OverlayImage::same_as(const OverlayImage& other) const {
  const auto all_same = [&](const std::vector<std::uint32_t>& numbers) {
    return std::ranges::all_of(numbers, [&](std::uint32_t number) {
      return std::memcmp(block(number), other.block(number), kBlockBytes) == 0;
    });
  };
  return all_same(written_) && all_same(other.written_);
}

}  // namespace assay::qualify::block
