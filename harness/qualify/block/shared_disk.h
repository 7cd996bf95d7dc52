// The logging disk's contents and its log, in memory that all processes of a campaign share.
//
// `base` is the image as it was when recording began; every write, discard and flush since then is
// an entry of the log, in the order in which the disk got them. The length of the log is one atomic
// number, so that whoever acknowledges something can note how far the disk was by then.
// What is written beyond `log_bytes` lies in a file without a name, whose pages the kernel can put
// away, so that memory is bounded by image and `log_bytes`.
// Invariants: an entry is counted only when all of it is in place, and before the disk answers;
// entries do not change afterwards. The log is bounded: what finds no room is refused and noted.
// Threads: one process appends; any process reads entries below length().
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay::qualify::block {

/// What a disk may tear a write at.
inline constexpr std::uint32_t kSectorBytes = 512;

struct LogEntry {
  enum class Kind : std::uint32_t {
    write,
    zero,  ///< a discard or a write of zeros: reads as zeros
    flush,
  };
  Kind kind = Kind::write;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data = 0;  ///< place in the log's data; writes only
  [[nodiscard]] std::uint32_t sectors() const {
    return static_cast<std::uint32_t>((bytes + kSectorBytes - 1) / kSectorBytes);
  }
};

class SharedDisk {
 public:
  struct Size {
    std::uint64_t image_bytes = 0;
    std::uint64_t log_bytes = std::uint64_t{512} << 20;  ///< in memory; used as it fills
    std::uint32_t entries = 1U << 20;
    std::uint64_t spill_bytes = 0;     ///< what more may lie in a file
    std::string spill_directory = {};  ///< where that is; needed for it alone
  };
  [[nodiscard]] static Result<SharedDisk> make(const Size& size);
  SharedDisk(SharedDisk&& other) noexcept;
  SharedDisk& operator=(SharedDisk&&) = delete;
  SharedDisk(const SharedDisk&) = delete;
  SharedDisk& operator=(const SharedDisk&) = delete;
  ~SharedDisk();

  /// Empties image and log, and gives their memory back.
  void wipe();
  /// False when there was no room; then full() stays true until wipe().
  bool append(LogEntry::Kind kind, std::uint64_t offset, std::uint64_t bytes, const char* data);

  [[nodiscard]] std::uint64_t image_bytes() const { return size_.image_bytes; }
  [[nodiscard]] char* base() const { return image_; }
  /// Entries so far.
  [[nodiscard]] std::uint32_t length() const;
  [[nodiscard]] bool full() const;
  [[nodiscard]] std::span<const LogEntry> entries() const { return {entries_, length()}; }
  [[nodiscard]] std::string_view data(const LogEntry& entry) const {
    return {data_ + entry.data, entry.bytes};
  }
  /// The address of the length, for those who sample it.
  [[nodiscard]] const std::atomic<std::uint32_t>& length_counter() const;

 private:
  struct Header;
  SharedDisk(const Size& size, void* memory, std::uint64_t bytes, int spill);
  [[nodiscard]] bool reserve(std::uint64_t end);
  [[nodiscard]] Header& header() const { return *static_cast<Header*>(memory_); }

  Size size_;
  void* memory_;
  std::uint64_t bytes_;  ///< of the memory, and behind it of the file
  int spill_;            ///< -1: there is none
  LogEntry* entries_;
  char* image_;
  char* data_;
};

}  // namespace assay::qualify::block
