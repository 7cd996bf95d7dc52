#include "workloads/version_table.h"

#include <algorithm>
#include <bit>

#include "adapters/result.h"
#include "workloads/random.h"

namespace assay {

VersionTable::VersionTable(std::uint64_t keys, std::size_t bytes_max) {
  const std::size_t most = std::bit_floor(bytes_max / (kSlotBytes + 1));
  ASSAY_CHECK(most >= 4, "a table has room for some keys");
  const std::uint64_t wanted = std::min<std::uint64_t>(keys, most) / 3 * 4 + 4;
  const std::size_t slots = std::min<std::size_t>(most, std::bit_ceil(wanted));
  indices_.assign(slots, kEmpty);
  versions_.assign(slots, 0);
  marks_.assign(slots, false);
}

std::size_t VersionTable::bytes() const {
  return indices_.size() * kSlotBytes + indices_.size() / 8;
}

void VersionTable::clear() {
  std::fill(indices_.begin(), indices_.end(), kEmpty);
  std::fill(marks_.begin(), marks_.end(), false);
  size_ = 0;
}

std::size_t VersionTable::slot_of(std::uint64_t index) const {
  const std::size_t mask = indices_.size() - 1;
  std::size_t at = static_cast<std::size_t>(mix64(index)) & mask;
  while (indices_[at] != kEmpty && indices_[at] != index) at = (at + 1) & mask;
  return at;
}

bool VersionTable::put(std::uint64_t index, std::uint32_t version) {
  const std::size_t at = slot_of(index);
  if (indices_[at] == kEmpty) {
    if (size_ == capacity()) return false;
    indices_[at] = index;
    ++size_;
  }
  versions_[at] = version;
  return true;
}

std::uint32_t VersionTable::version_of(std::uint64_t index) const {
  const std::size_t at = slot_of(index);
  return indices_[at] == kEmpty ? 0 : versions_[at];
}

void VersionTable::put_all_below(std::uint64_t end, std::uint32_t version) {
  for (std::size_t at = 0; at < indices_.size(); ++at)
    if (indices_[at] < end) versions_[at] = version;
}

bool VersionTable::mark(std::uint64_t index) {
  const std::size_t at = slot_of(index);
  ASSAY_CHECK(indices_[at] == index, "only a key of the table is marked");
  if (marks_[at]) return false;
  marks_[at] = true;
  return true;
}

}  // namespace assay
