// The file layer: one directory with the files of a store, and everything that the engine does to
// it. The engine calls no other file operation, so that the simulated disk (sim_disk.h) sees all.
//
// Durability: a write is durable after a later sync() of its file returned, or on return in a file
// opened with `dsync`. A name (created, renamed, removed) is durable after sync_directory().
// Nothing else is promised and the engine assumes nothing else. A failed write or sync leaves the
// file in an unknown state: whoever gets the error must not try again (invariant I9).
//
// Threads: the calls of a File and of a Disk may be made from several threads at the same time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

struct OpenMode {
  bool create = false;  ///< make the file; it must not be there yet
  bool read_only = false;
  bool direct = false;  ///< past the page cache; offsets, lengths, memory aligned to 4,096
  bool dsync = false;   ///< every write is durable when it returns
};

/// What buffers, offsets and lengths of direct access are aligned to.
constexpr std::size_t direct_alignment = 4096;

class File {
 public:
  virtual ~File() = default;
  /// Reads into `out` from `offset`; the count is short only at the end of the file.
  virtual Result<std::size_t> read_at(Bytes out, std::uint64_t offset) = 0;
  /// Writes all of `data` or reports an error; on an error any part may have been written.
  virtual Status write_at(ConstBytes data, std::uint64_t offset) = 0;
  /// Data and size of the file, of all writes that have returned.
  virtual Status sync() = 0;
  /// A hint that a sync of what was written there follows: the device may begin. Promises nothing
  /// and fails silently.
  virtual void start_writing(std::uint64_t offset, std::uint64_t bytes) {
    (void)offset;
    (void)bytes;
  }
  virtual Result<std::uint64_t> size() = 0;
  virtual Status resize(std::uint64_t bytes) = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  virtual Status remove(std::string_view name) = 0;
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status sync_directory() = 0;
  /// Takes the advisory lock of the directory, held until the Disk is destroyed: exclusive for a
  /// writer, shared for readers. ErrorKind::locked when somebody else is in the way.
  virtual Status lock(bool exclusive) = 0;
  /// The place, for messages.
  [[nodiscard]] virtual std::string name() const = 0;
};

/// A buffer aligned for direct access; zeroed when made.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Bytes bytes() const { return {data_, size_}; }
  /// Makes room for `bytes`, keeping the first `kept` bytes; the rest is zero when it is new.
  void grow(std::size_t bytes, std::size_t kept);

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Reads exactly `out.size()` bytes; a shorter file is corruption.
[[nodiscard]] Status read_exactly(File& file, Bytes out, std::uint64_t offset);

}  // namespace lode
