// Appends bytes to the data file through a large buffer, in extents that it allocates as it goes.
// Pages and large values are written through it; the data is durable after the file's next sync.
// Threads: one at a time.
#pragma once

#include <vector>

#include "engine/file/disk.h"
#include "engine/tree/extents.h"
#include "engine/tree/page.h"

namespace lode {

class ExtentStream {
 public:
  ExtentStream(File& file, ExtentAllocator& space) : file_(file), space_(space) {}
  /// Gives back the space of a stream that was not finished.
  ~ExtentStream();
  ExtentStream(const ExtentStream&) = delete;
  ExtentStream& operator=(const ExtentStream&) = delete;

  /// Aligns the position to `alignment` and sees to `bytes` in a row from there on; returns the
  /// offset in the file at which the next append lands.
  Result<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t alignment);
  /// Appends into what was reserved.
  Status append(ConstBytes data);
  /// Writes the rest, padded with zeros, gives back unused pages and returns the extents.
  Result<std::vector<Extent>> finish();
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  Status flush(bool all);
  Status close_extent();

  File& file_;
  ExtentAllocator& space_;
  std::vector<Extent> extents_;
  std::uint64_t next_extent_pages_ = 16;
  AlignedBuffer buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t flushed_ = 0;  // offset in the file at which the buffer begins
  std::uint64_t limit_ = 0;    // end of the current extent
  std::uint64_t written_bytes_ = 0;
};

}  // namespace lode
