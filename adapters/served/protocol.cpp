#include "adapters/served/protocol.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace assay::served {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they stand");

constexpr std::uint8_t kFromStart = 1;
constexpr std::uint8_t kToEnd = 2;
constexpr std::uint8_t kBackward = 4;

template <class Number>
void append(Number value, std::string& into) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &value, sizeof(Number));
  into.append(bytes, sizeof(Number));
}

void append_text(std::string_view text, std::string& into) {
  append(static_cast<std::uint32_t>(text.size()), into);
  into.append(text);
}

/// Takes numbers and texts off the front of a frame; false once it is too short.
class Reader {
 public:
  explicit Reader(std::string_view left) : left_(left) {}
  template <class Number>
  bool number(Number& value) {
    if (left_.size() < sizeof(Number)) return false;
    std::memcpy(&value, left_.data(), sizeof(Number));
    left_.remove_prefix(sizeof(Number));
    return true;
  }
  bool bytes(std::uint32_t size, std::string_view& text) {
    if (left_.size() < size) return false;
    text = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  bool text(std::string_view& into) {
    std::uint32_t size = 0;
    return number(size) && bytes(size, into);
  }
  [[nodiscard]] std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

/// Where a frame begins in a buffer: its length is filled in by close().
class OpenFrame {
 public:
  OpenFrame(std::uint8_t what, std::string& into) : into_(into), begin_(into.size()) {
    append(std::uint32_t{0}, into_);
    append(what, into_);
  }
  Status close() {
    const std::size_t length = into_.size() - begin_ - kLengthBytes;
    if (length > kFrameBytesMax) {
      into_.resize(begin_);
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("a frame of {} bytes; the protocol takes at most {}", length,
                                    kFrameBytesMax))
                      .hint("use smaller batches or values"));
    }
    const auto value = static_cast<std::uint32_t>(length);
    std::memcpy(into_.data() + begin_, &value, sizeof(value));
    return {};
  }

 private:
  std::string& into_;
  std::size_t begin_;
};

bool read_mutations(Reader& reader, std::vector<Mutation>& mutations) {
  std::uint32_t count = 0;
  if (!reader.number(count)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {  // no memory on the word of a peer
    std::uint8_t kind = 0;
    Mutation one;
    if (!reader.number(kind) || kind > 1 || !reader.text(one.key) || !reader.text(one.value)) {
      return false;
    }
    one.kind = kind == 0 ? Mutation::Kind::put : Mutation::Kind::erase;
    mutations.push_back(one);
  }
  return true;
}

bool read_range(Reader& reader, ScanRange& range) {
  std::uint8_t flags = 0;
  if (!reader.number(flags) || flags > (kFromStart | kToEnd | kBackward) ||
      !reader.number(range.limit) || !reader.text(range.first) || !reader.text(range.last)) {
    return false;
  }
  range.from_start = (flags & kFromStart) != 0;
  range.to_end = (flags & kToEnd) != 0;
  range.backward = (flags & kBackward) != 0;
  return true;
}

bool read_payload(Reader& reader, Request& request) {
  switch (request.op) {
    case Op::get:
    case Op::erase:
      return reader.text(request.key);
    case Op::put:
      return reader.text(request.key) && reader.text(request.value);
    case Op::batch:
    case Op::rollback:
      return read_mutations(reader, request.mutations);
    case Op::scan:
      return read_range(reader, request.range);
    default:
      return true;
  }
}

}  // namespace

std::string_view to_string(Op op) {
  constexpr std::string_view kNames[] = {"",           "get",    "put",   "delete",   "batch",
                                         "rollback",   "scan",   "more",  "stop",     "sync",
                                         "checkpoint", "settle", "stats", "counters", "settings",
                                         "shutdown",   "session"};
  static_assert(std::size(kNames) == kOpMost + 1);
  return kNames[static_cast<std::size_t>(op)];
}

Status encode_request(const Request& request, std::string& into) {
  if (request.op == Op::batch || request.op == Op::rollback) {
    return encode_batch(request.op, request.mutations, into);
  }
  OpenFrame frame(static_cast<std::uint8_t>(request.op), into);
  if (request.op == Op::get || request.op == Op::erase || request.op == Op::put) {
    append_text(request.key, into);
    if (request.op == Op::put) append_text(request.value, into);
  } else if (request.op == Op::scan) {
    const ScanRange& range = request.range;
    const int flags = (range.from_start ? kFromStart : 0) | (range.to_end ? kToEnd : 0) |
                      (range.backward ? kBackward : 0);
    append(static_cast<std::uint8_t>(flags), into);
    append(range.limit, into);
    append_text(range.from_start ? std::string_view() : range.first, into);
    append_text(range.to_end ? std::string_view() : range.last, into);
  }
  return frame.close();
}

Status encode_batch(Op op, std::span<const Mutation> mutations, std::string& into) {
  OpenFrame frame(static_cast<std::uint8_t>(op), into);
  append(static_cast<std::uint32_t>(mutations.size()), into);
  for (const Mutation& one : mutations) {
    append(static_cast<std::uint8_t>(one.kind == Mutation::Kind::put ? 0 : 1), into);
    append_text(one.key, into);
    append_text(one.value, into);
  }
  return frame.close();
}

Status encode_answer(Answer answer, std::string_view payload, std::string& into) {
  OpenFrame frame(static_cast<std::uint8_t>(answer), into);
  into.append(payload);
  return frame.close();
}

void encode_error(const Error& error, std::string& into) {
  constexpr std::size_t kTextMax = 4096;  // a message, not a way to send a frame that is too long
  OpenFrame frame(static_cast<std::uint8_t>(Answer::error), into);
  append(static_cast<std::uint8_t>(error.kind()), into);
  for (const std::string* text : {&error.what(), &error.where(), &error.hint_text()}) {
    append_text(std::string_view(*text).substr(0, kTextMax), into);
  }
  const Status closed = frame.close();
  ASSAY_CHECK(closed.has_value(), "an error's texts are cut to fit a frame");
}

Result<Request> decode_request(std::string_view body) {
  Reader reader(body);
  std::uint8_t op = 0;
  if (!reader.number(op) || op == 0 || op > kOpMost) {
    return fail(Error(ErrorKind::bad_input, fmt::format("no request has the number {}", op))
                    .hint(fmt::format("1 to {}", kOpMost)));
  }
  Request request;
  request.op = static_cast<Op>(op);
  if (!read_payload(reader, request) || !reader.left().empty()) {
    return fail(ErrorKind::bad_input, fmt::format("a malformed request ({}, {} bytes)",
                                                  to_string(request.op), body.size()));
  }
  return request;
}

Error decode_error(std::string_view payload) {
  Reader reader(payload);
  std::uint8_t kind = 0;
  std::string_view what;
  std::string_view where;
  std::string_view hint;
  if (!reader.number(kind) || kind > static_cast<std::uint8_t>(ErrorKind::internal) ||
      !reader.text(what) || !reader.text(where) || !reader.text(hint) || !reader.left().empty()) {
    return {ErrorKind::child, "the server answered with a malformed error"};
  }
  Error error(static_cast<ErrorKind>(kind), std::string(what));
  if (!where.empty()) error.at(std::string(where));
  if (!hint.empty()) error.hint(std::string(hint));
  return error;
}

bool take_entry(std::string_view& payload, std::string_view& key, std::string_view& value) {
  Reader reader(payload);
  if (!reader.text(key) || !reader.text(value)) return false;
  payload = reader.left();
  return true;
}

void append_entry(std::string_view key, std::string_view value, std::string& payload) {
  append_text(key, payload);
  append_text(value, payload);
}

std::string encode_pairs(const Settings& pairs) {
  std::string payload;
  for (const auto& [name, value] : pairs) append_entry(name, value, payload);
  return payload;
}

Result<Settings> decode_pairs(std::string_view payload) {
  Settings pairs;
  while (!payload.empty()) {
    std::string_view name;
    std::string_view value;
    if (!take_entry(payload, name, value)) {
      return fail(ErrorKind::child, "the server answered with malformed pairs of texts");
    }
    pairs.emplace(name, value);
  }
  return pairs;
}

std::string encode_u64(std::uint64_t value) {
  std::string payload;
  append(value, payload);
  return payload;
}

Result<std::uint64_t> decode_u64(std::string_view payload) {
  Reader reader(payload);
  std::uint64_t value = 0;
  if (!reader.number(value) || !reader.left().empty()) {
    return fail(ErrorKind::child, "the server answered with no number where one belongs");
  }
  return value;
}

Result<std::uint32_t> decode_length(std::string_view four_bytes) {
  Reader reader(four_bytes);
  std::uint32_t length = 0;
  if (!reader.number(length) || length == 0 || length > kFrameBytesMax) {
    return fail(Error(ErrorKind::bad_input, fmt::format("a frame of {} bytes", length))
                    .hint(fmt::format("1 to {} bytes", kFrameBytesMax)));
  }
  return length;
}

}  // namespace assay::served
