// Versions of the keys of one key range, for a check of a store that goes through the key space
// range by range: a hash table of fixed size, 12 bytes and a bit a slot.
//
// Invariant: never fuller than three quarters, so that a probe is short and always ends. Used by
// one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

class VersionTable {
 public:
  /// A table for up to `keys` keys, in at most `bytes_max` bytes.
  VersionTable(std::uint64_t keys, std::size_t bytes_max);

  /// Most keys that fit.
  [[nodiscard]] std::size_t capacity() const { return indices_.size() / 4 * 3; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const;
  void clear();
  /// False when the table is full and `index` was not in it; then nothing has changed.
  [[nodiscard]] bool put(std::uint64_t index, std::uint32_t version);
  /// 0 when the index is not there (or is there with version 0).
  [[nodiscard]] std::uint32_t version_of(std::uint64_t index) const;
  /// Sets version `version` for each index below `end`.
  void put_all_below(std::uint64_t end, std::uint32_t version);
  /// Marks an index that is there; false when it was marked before.
  bool mark(std::uint64_t index);
  /// Calls visit(index, version, marked) for each.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t at = 0; at < indices_.size(); ++at)
      if (indices_[at] != kEmpty) visit(indices_[at], versions_[at], marks_[at]);
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr std::size_t kSlotBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
  [[nodiscard]] std::size_t slot_of(std::uint64_t index) const;

  std::vector<std::uint64_t> indices_;  ///< a power of two of them
  std::vector<std::uint32_t> versions_;
  std::vector<bool> marks_;
  std::size_t size_ = 0;
};

}  // namespace assay
