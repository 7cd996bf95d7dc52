// The bytes of the log, shared by writer and recovery. FORMAT.md describes them for the reader.
//
// A segment is a file: one header block, then frames. A frame is one flush of the group commit:
// its payload holds whole commits. Frames start at multiples of 8 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

constexpr std::uint64_t segment_magic = 0x31676F6C65646F6CU;  // "lodelog1"
constexpr std::uint32_t segment_version = 1;
constexpr std::size_t segment_header_bytes = 64;   // what the checksum covers; in one sector
constexpr std::size_t segment_data_offset = 4096;  // where frames begin in the file
constexpr std::uint32_t use_magic = 0x6573556CU;   // "lUse"
constexpr std::size_t use_record_offset = 512;     // in the header's block, a sector of its own
constexpr std::size_t use_record_bytes = 64;
constexpr std::uint64_t first_used_bytes = 65536;   // what a fresh segment is said to be used to
constexpr std::uint32_t frame_magic = 0x6D72466CU;  // "lFrm"
constexpr std::size_t frame_header_bytes = 56;
constexpr std::size_t frame_alignment = 8;

/// The header of a segment. `serial` counts activations of segments in the life of the store and
/// orders them; 0 = the segment is free.
struct SegmentHeader {
  std::uint64_t store_id = 0;
  std::uint64_t serial = 0;
  Epoch epoch;
  Lsn first_lsn;               ///< of the first frame; also where the segment before it ends
  std::uint32_t chain = 0;     ///< checksum of the last frame before first_lsn
  std::uint64_t capacity = 0;  ///< bytes for frames in the file
  bool complete = false;       ///< written only after the whole file was durable
};

/// How far a segment is used, beside its header: what recovery need not read, and what was durable
/// when it was written (invariants I20, I21). Only a hint of less work: without one, or with one of
/// an earlier use, all is read and synced.
struct SegmentUse {
  std::uint64_t serial = 0;      ///< of the header that it belongs to
  std::uint64_t used_bytes = 0;  ///< the log is durable to less than this; or the capacity
  std::uint64_t durable_root =
      0;  ///< identity of a root that is durable, with its directory; 0: none
};

struct FrameHeader {
  std::uint32_t checksum = 0;
  std::uint32_t chain = 0;  ///< checksum of the frame before
  std::uint32_t payload_bytes = 0;
  Epoch epoch;
  Lsn lsn;
  Sequence first_sequence;
  Lsn synced_lsn;  ///< everything below was durable when this frame was written
  std::uint32_t commits = 0;

  [[nodiscard]] std::uint64_t frame_bytes() const {
    return (frame_header_bytes + payload_bytes + frame_alignment - 1) / frame_alignment *
           frame_alignment;
  }
};

void encode_segment_header(const SegmentHeader& header, std::byte* out);
/// `out` is the header's block.
void encode_segment_use(const SegmentUse& use, std::uint64_t store_id, std::byte* out);
/// nullopt: there is no record that belongs to `header`.
[[nodiscard]] std::optional<SegmentUse> decode_segment_use(ConstBytes block,
                                                           const SegmentHeader& header);
/// nullopt: not a valid header. An error: valid, but of another version.
[[nodiscard]] Result<std::optional<SegmentHeader>> decode_segment_header(ConstBytes block);

/// Writes the header before a payload that is already at out + frame_header_bytes, zeroes the
/// padding behind it, computes the checksum and puts it into `header` as well.
void encode_frame_header(FrameHeader& header, std::uint64_t store_id, std::byte* out);

/// What is at a place where a frame could begin.
enum class FrameState : std::uint8_t {
  intact,        ///< a frame whose checksum is right
  zero,          ///< nothing was ever written here
  no_frame,      ///< not the magic
  bad_length,    ///< a header that leads beyond the segment
  bad_checksum,  ///< torn or damaged
};
[[nodiscard]] std::string_view to_string(FrameState state);

/// Looks at `data`, which begins where the frame would and ends with the segment.
[[nodiscard]] FrameState inspect_frame(ConstBytes data, std::uint64_t store_id,
                                       FrameHeader& header);

/// "log-000007".
[[nodiscard]] std::string segment_file_name(std::uint64_t slot);
[[nodiscard]] std::optional<std::uint64_t> segment_slot(std::string_view file_name);

}  // namespace lode
