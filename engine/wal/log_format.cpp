#include "engine/wal/log_format.h"

#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"

namespace lode {
namespace {

constexpr std::string_view name_prefix = "log-";
constexpr std::size_t name_digits = 6;

std::uint32_t header_checksum(const std::byte* block) {
  std::byte copy[segment_header_bytes];
  std::memcpy(copy, block, sizeof copy);
  store<std::uint32_t>(copy + 12, 0);
  return crc32c(ConstBytes(copy, sizeof copy));
}

std::uint32_t seed_of(std::uint64_t store_id) {
  return static_cast<std::uint32_t>(store_id ^ (store_id >> 32));
}

// The store's number is the seed, so that a frame of another store is never intact.
// It covers the padding as well: no byte of a frame can change unnoticed.
std::uint32_t frame_checksum(const std::byte* frame, std::uint64_t frame_bytes,
                             std::uint64_t store_id) {
  return crc32c(ConstBytes(frame + 8, frame_bytes - 8), seed_of(store_id));
}

}  // namespace

void encode_segment_header(const SegmentHeader& header, std::byte* out) {
  std::memset(out, 0, segment_header_bytes);
  store(out, segment_magic);
  store(out + 8, segment_version);
  store(out + 16, header.store_id);
  store(out + 24, header.serial);
  store(out + 32, header.epoch.value);
  store(out + 40, header.first_lsn.value);
  store(out + 48, header.chain);
  store(out + 52, static_cast<std::uint32_t>(header.complete ? 1 : 0));
  store(out + 56, header.capacity);
  store(out + 12, header_checksum(out));
}

void encode_segment_use(const SegmentUse& use, std::uint64_t store_id, std::byte* out) {
  std::byte* record = out + use_record_offset;
  std::memset(record, 0, use_record_bytes);
  store(record, use_magic);
  store(record + 8, use.serial);
  store(record + 16, use.used_bytes);
  store(record + 24, use.durable_root);
  store(record + 4, crc32c(ConstBytes(record + 8, use_record_bytes - 8), seed_of(store_id)));
}

std::optional<SegmentUse> decode_segment_use(ConstBytes block, const SegmentHeader& header) {
  if (block.size() < use_record_offset + use_record_bytes) return std::nullopt;
  const std::byte* record = block.data() + use_record_offset;
  if (load<std::uint32_t>(record) != use_magic ||
      load<std::uint32_t>(record + 4) !=
          crc32c(ConstBytes(record + 8, use_record_bytes - 8), seed_of(header.store_id))) {
    return std::nullopt;
  }
  SegmentUse use;
  use.serial = load<std::uint64_t>(record + 8);
  use.used_bytes = load<std::uint64_t>(record + 16);
  use.durable_root = load<std::uint64_t>(record + 24);
  if (use.serial != header.serial && !LODE_MUTATED("use-of-an-earlier-segment-trusted")) {
    return std::nullopt;
  }
  return use;
}

Result<std::optional<SegmentHeader>> decode_segment_header(ConstBytes block) {
  if (block.size() < segment_header_bytes) return std::nullopt;
  const std::byte* in = block.data();
  if (load<std::uint64_t>(in) != segment_magic) return std::nullopt;
  if (load<std::uint32_t>(in + 12) != header_checksum(in)) return std::nullopt;
  const auto version = load<std::uint32_t>(in + 8);
  if (version != segment_version) {
    return fail(ErrorKind::wrong_version,
                "log segment of format version " + std::to_string(version) +
                    "; this engine reads version " + std::to_string(segment_version));
  }
  SegmentHeader header;
  header.store_id = load<std::uint64_t>(in + 16);
  header.serial = load<std::uint64_t>(in + 24);
  header.epoch = Epoch(load<std::uint64_t>(in + 32));
  header.first_lsn = Lsn(load<std::uint64_t>(in + 40));
  header.chain = load<std::uint32_t>(in + 48);
  header.complete = load<std::uint32_t>(in + 52) == 1;
  header.capacity = load<std::uint64_t>(in + 56);
  return header;
}

void encode_frame_header(FrameHeader& header, std::uint64_t store_id, std::byte* out) {
  store(out, frame_magic);
  store(out + 8, header.chain);
  store(out + 12, header.payload_bytes);
  store(out + 16, header.epoch.value);
  store(out + 24, header.lsn.value);
  store(out + 32, header.first_sequence.value);
  store(out + 40, header.synced_lsn.value);
  store(out + 48, header.commits);
  store(out + 52, std::uint32_t{0});
  const std::size_t used = frame_header_bytes + header.payload_bytes;
  std::memset(out + used, 0, header.frame_bytes() - used);
  header.checksum = frame_checksum(out, header.frame_bytes(), store_id);
  store(out + 4, header.checksum);
}

std::string_view to_string(FrameState state) {
  switch (state) {
    case FrameState::intact:
      return "intact";
    case FrameState::zero:
      return "unwritten";
    case FrameState::no_frame:
      return "no frame";
    case FrameState::bad_length:
      return "impossible length";
    case FrameState::bad_checksum:
      return "checksum mismatch";
  }
  return "unknown";
}

FrameState inspect_frame(ConstBytes data, std::uint64_t store_id, FrameHeader& header) {
  if (data.size() < frame_header_bytes) return FrameState::no_frame;
  const std::byte* in = data.data();
  const auto magic = load<std::uint32_t>(in);
  if (magic != frame_magic) {
    if (magic != 0) return FrameState::no_frame;
    for (std::size_t i = 0; i < frame_header_bytes; ++i) {
      if (in[i] != std::byte{0}) return FrameState::no_frame;
    }
    return FrameState::zero;
  }
  header.checksum = load<std::uint32_t>(in + 4);
  header.chain = load<std::uint32_t>(in + 8);
  header.payload_bytes = load<std::uint32_t>(in + 12);
  header.epoch = Epoch(load<std::uint64_t>(in + 16));
  header.lsn = Lsn(load<std::uint64_t>(in + 24));
  header.first_sequence = Sequence(load<std::uint64_t>(in + 32));
  header.synced_lsn = Lsn(load<std::uint64_t>(in + 40));
  header.commits = load<std::uint32_t>(in + 48);
  if (header.frame_bytes() > data.size()) return FrameState::bad_length;
  if (frame_checksum(in, header.frame_bytes(), store_id) != header.checksum) {
    return FrameState::bad_checksum;
  }
  return FrameState::intact;
}

std::string segment_file_name(std::uint64_t slot) {
  std::string digits = std::to_string(slot);
  if (digits.size() < name_digits) digits.insert(0, name_digits - digits.size(), '0');
  return std::string(name_prefix) + digits;
}

std::optional<std::uint64_t> segment_slot(std::string_view file_name) {
  if (!file_name.starts_with(name_prefix)) return std::nullopt;
  const std::string_view digits = file_name.substr(name_prefix.size());
  if (digits.size() < name_digits || digits.size() > 18) return std::nullopt;
  std::uint64_t slot = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    slot = slot * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return slot;
}

}  // namespace lode
