// The log of the raw-file arm: frames with chained checksums in numbered segments.
//
// A segment is a file raw-NNNNNN.log: a header page of 4096 bytes, then frames to its end.
//   header page: RawSegmentHeader (raw_file_log.cpp), rest zero
//   frame:       u64 checksum, u64 sequence, u32 payload bytes, u32 kind, payload, zeros up to 8
// checksum = XXH3_64 of the frame behind it, seeded with the checksum of the frame before, so a
// frame is sound only as the successor of exactly that one. The log ends at the first frame that
// is not sound, whatever lies behind. The first frame that a handle writes holds random bytes:
// what a cut-off tail has left behind can never join the chain again.
// Synced segments are written with zeros, synced and renamed into place before they are used, so
// that a commit changes no metadata and costs one flush. A failed write or sync poisons the
// handle: nothing is acknowledged by it any more, and the sync is not tried again.
//
// Threads: one caller at a time, except for read().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapters/raw_file_probe.h"
#include "adapters/result.h"

namespace assay {

/// One commit on its way into the log. The first kHeaderBytes are filled in by the log.
class RawFrame {
 public:
  static constexpr std::size_t kHeaderBytes = 24;
  static constexpr std::uint32_t kErased = UINT32_MAX;  ///< value length that stands for an erase

  void clear() { bytes_.assign(kHeaderBytes, '\0'); }
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::string_view payload() const {
    return std::string_view(bytes_).substr(kHeaderBytes);
  }
  /// Pads and seals the frame; returns its checksum.
  std::uint64_t seal(std::uint32_t kind, std::uint64_t sequence, std::uint64_t previous_checksum);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  /// Where the log has put the payload; set by RawLog::append.
  int file = -1;
  std::uint64_t payload_offset = 0;

 private:
  std::string bytes_ = std::string(kHeaderBytes, '\0');
};

/// An entry of a payload: `value_offset` counts from the payload's start.
struct RawEntry {
  std::string_view key;
  bool erased = false;
  std::uint64_t value_offset = 0;
  std::uint32_t value_bytes = 0;
};
/// Visits the entries of a payload; false when it is malformed.
bool visit_entries(std::string_view payload, const std::function<void(const RawEntry&)>& visit);

class RawLog {
 public:
  struct Options {
    std::string directory;
    RawMethod method = RawMethod::none;
    std::uint64_t segment_bytes = 0;  ///< a multiple of 4096
    std::uint64_t prepare_bytes = 0;  ///< written with zeros when a new log is opened
  };
  /// Creates the log, or finds the end of the one that is there by verifying all of it.
  [[nodiscard]] static Result<std::unique_ptr<RawLog>> open(const Options& options, bool fresh);
  /// The method with which the log in `directory` was made; none when there is no sound one.
  [[nodiscard]] static RawMethod recorded_method(const std::string& directory);
  ~RawLog();
  RawLog(const RawLog&) = delete;
  RawLog& operator=(const RawLog&) = delete;

  /// Appends the frames in order with one write (more where a segment ends) and one sync.
  [[nodiscard]] Status append(std::span<RawFrame* const> frames);
  /// Visits the payload of every commit: file, offset of the payload in it, payload.
  using Visit = std::function<void(int file, std::uint64_t offset, std::string_view payload)>;
  [[nodiscard]] Status replay(const Visit& visit);
  /// Reads from a file of the log; any number of threads at once.
  [[nodiscard]] static Status read(int file, std::uint64_t offset, std::size_t bytes,
                                   std::string& into);
  /// Makes everything appended so far survive the loss of power.
  [[nodiscard]] Status sync();
  [[nodiscard]] Status close();

  struct Counters {
    std::uint64_t segments = 0;
    std::uint64_t frames = 0;
    std::uint64_t writes = 0;
    std::uint64_t syncs = 0;          ///< fdatasync calls and synchronous writes
    std::uint64_t prepare_waits = 0;  ///< commits that had to wait for the next segment
    std::uint64_t recovered_frames = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] RawMethod method() const { return options_.method; }

  /// What is in force, asked of the open files: fcntl(2) of the handle that is written through,
  /// the header of its segment, and the sizes of all segments.
  struct InForce {
    RawMethod method = RawMethod::none;
    std::string open_flags;  ///< "O_DIRECT|O_DSYNC", "none"
    std::uint64_t segment_bytes = 0;
    std::uint64_t prepared_bytes = 0;  ///< written with zeros so far, what is used included
  };
  [[nodiscard]] Result<InForce> in_force() const;

 private:
  explicit RawLog(Options options) : options_(std::move(options)) {}

  struct Segment {
    int read = -1;
    int write = -1;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::string path(std::size_t number) const;
  [[nodiscard]] bool synced() const { return options_.method != RawMethod::none; }
  Status create_segment(std::size_t number, std::uint64_t bytes) const;
  Result<bool> open_segment(std::size_t number);
  Status find_end();
  Status start_at_end();
  Status rotate(std::uint64_t frame_bytes);
  void prepare_next();
  Status finish_preparing();
  Status write_out(const char* data, std::size_t bytes);
  Status reserve_image(std::size_t bytes);
  Status flush_image();
  Status poison(Error error);
  /// Walks the sound frames; `number` and `at` end where the log ends.
  Status walk(const Visit& visit, std::size_t& number, std::uint64_t& at, std::uint64_t& frames);

  Options options_;
  std::uint64_t log_id_ = 0;
  std::vector<Segment> segments_;  // number n is at n - 1
  std::size_t current_ = 0;        // number of the segment that is written
  std::uint64_t at_ = 0;           // where in it the next frame goes
  std::uint64_t checksum_ = 0;     // of the last frame
  std::uint64_t sequence_ = 0;     // of the last frame
  bool marked_ = false;            // this handle has written its random frame
  std::optional<Error> poison_;

  // The tail block and what is to follow it, aligned for direct writes.
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> image_;
  std::size_t image_capacity_ = 0;
  std::size_t image_used_ = 0;
  std::uint64_t image_at_ = 0;

  std::thread preparer_;
  std::size_t preparing_ = 0;           // the segment that preparer_ makes, 0 = none
  std::optional<Error> prepare_error_;  // of preparer_, read after it has ended
  Counters counters_;
};

}  // namespace assay
