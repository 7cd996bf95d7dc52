// The protocol between a client and `assay serve`: what one frame holds (harness/serve/README.md is
// its description for people).
//
// A frame is a u32 length, then that many bytes: a u8 that says what it is, then its payload; every
// number is little-endian. This codec is used by both sides, so it knows no socket. Invariant: what
// a peer sent is read within its bounds only, and a frame is refused unless it is used up exactly.
// Stateless; any thread. Views point into what was decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"
#include "adapters/store.h"

namespace assay::served {

inline constexpr std::uint32_t kFrameBytesMax = std::uint32_t{64} << 20;  ///< behind the length
inline constexpr std::uint32_t kLengthBytes = 4;
/// A scan's entries are sent in frames of about this size, each asked for by the client.
inline constexpr std::uint32_t kScanFrameBytes = std::uint32_t{64} << 10;

enum class Op : std::uint8_t {
  get = 1,
  put = 2,
  erase = 3,
  batch = 4,
  rollback = 5,
  scan = 6,
  more = 7,  ///< the next entries of the scan that is under way
  stop = 8,  ///< no more of them
  sync = 9,
  checkpoint = 10,
  settle = 11,
  stats = 12,     ///< telemetry, JSON
  counters = 13,  ///< the store's own
  settings = 14,  ///< in force
  shutdown = 15,
  session = 16,  ///< makes the connection's session now; otherwise the first request that needs it
};
inline constexpr std::uint8_t kOpMost = 16;
/// In the greeting: an Answer::done with this number as a u64 opens every connection.
inline constexpr std::uint64_t kProtocolVersion = 1;
/// "get", "put", "delete", ... as telemetry and documentation call it.
[[nodiscard]] std::string_view to_string(Op op);

enum class Answer : std::uint8_t {
  done = 128,     ///< payload by the request
  absent = 129,   ///< a get found nothing
  entries = 130,  ///< a part of a scan; more is to come
  error = 131,
};

struct Request {
  Op op = Op::get;
  std::string_view key;
  std::string_view value;
  std::vector<Mutation> mutations;  ///< of batch and rollback
  ScanRange range;                  ///< of scan
};

/// Each appends one whole frame to `into`. An error `bad_input` when it would be too long.
[[nodiscard]] Status encode_request(const Request& request, std::string& into);
[[nodiscard]] Status encode_batch(Op op, std::span<const Mutation> mutations, std::string& into);
[[nodiscard]] Status encode_answer(Answer answer, std::string_view payload, std::string& into);
void encode_error(const Error& error, std::string& into);

/// `body` is a frame without its length. Error `bad_input`: what is wrong with it.
[[nodiscard]] Result<Request> decode_request(std::string_view body);
/// The error that an Answer::error carries in `payload`; a malformed one is an error `child`.
[[nodiscard]] Error decode_error(std::string_view payload);
/// One entry of Answer::entries taken off the front of `payload`; false: malformed.
[[nodiscard]] bool take_entry(std::string_view& payload, std::string_view& key,
                              std::string_view& value);
void append_entry(std::string_view key, std::string_view value, std::string& payload);

/// The payloads of `counters` and `settings`: pairs of texts, each as an entry of a scan.
[[nodiscard]] std::string encode_pairs(const Settings& pairs);
[[nodiscard]] Result<Settings> decode_pairs(std::string_view payload);

[[nodiscard]] std::string encode_u64(std::uint64_t value);
[[nodiscard]] Result<std::uint64_t> decode_u64(std::string_view payload);

/// The length in front of a frame. Error `bad_input` when no frame has that length.
[[nodiscard]] Result<std::uint32_t> decode_length(std::string_view four_bytes);

}  // namespace assay::served
