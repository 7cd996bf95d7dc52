// The codec: what was encoded comes back, and nothing else is taken for a request.
#include "adapters/served/protocol.h"

#include <gtest/gtest.h>

#include <random>

#include "adapters/store_fixture.h"

namespace assay::served {
namespace {

using testing::ok;

std::string body_of(const Request& request) {
  std::string frame;
  EXPECT_TRUE(ok(encode_request(request, frame)));
  EXPECT_EQ(decode_length(std::string_view(frame).substr(0, kLengthBytes)).value(),
            frame.size() - kLengthBytes);
  return frame.substr(kLengthBytes);
}

Request request_of(Op op) {
  Request request;
  request.op = op;
  if (op == Op::get || op == Op::put || op == Op::erase) request.key = "key";
  if (op == Op::put) request.value = std::string_view("va\0ue", 5);
  if (op == Op::batch || op == Op::rollback) {
    request.mutations = {{Mutation::Kind::put, "a", "1"}, {Mutation::Kind::erase, "b", ""}};
  }
  if (op == Op::scan) {
    request.range = {.first = "a",
                     .last = "zz",
                     .from_start = false,
                     .to_end = false,
                     .backward = true,
                     .limit = 7};
  }
  return request;
}

TEST(Protocol, EveryRequestComesBackAsItWas) {
  for (std::uint8_t op = 1; op <= kOpMost; ++op) {
    const Request given = request_of(static_cast<Op>(op));
    const std::string body = body_of(given);
    const Result<Request> got = decode_request(body);
    ASSERT_TRUE(got) << to_string(given.op);
    EXPECT_EQ(got->op, given.op);
    EXPECT_EQ(got->key, given.key);
    EXPECT_EQ(got->value, given.value);
    ASSERT_EQ(got->mutations.size(), given.mutations.size());
    for (std::size_t i = 0; i < given.mutations.size(); ++i) {
      EXPECT_EQ(got->mutations[i].kind, given.mutations[i].kind);
      EXPECT_EQ(got->mutations[i].key, given.mutations[i].key);
      EXPECT_EQ(got->mutations[i].value, given.mutations[i].value);
    }
    EXPECT_EQ(got->range.first, given.range.first);
    EXPECT_EQ(got->range.last, given.range.last);
    EXPECT_EQ(got->range.from_start, given.range.from_start);
    EXPECT_EQ(got->range.backward, given.range.backward);
    EXPECT_EQ(got->range.limit, given.range.limit);
  }
}

TEST(Protocol, EveryTruncationAndEveryByteTooManyIsRefused) {
  for (std::uint8_t op = 1; op <= kOpMost; ++op) {
    const std::string body = body_of(request_of(static_cast<Op>(op)));
    for (std::size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(decode_request(std::string_view(body).substr(0, size)))
          << to_string(static_cast<Op>(op)) << " cut to " << size;
    }
    EXPECT_FALSE(decode_request(body + '\0')) << to_string(static_cast<Op>(op));
  }
}

TEST(Protocol, RandomBytesAreReadWithinTheirBounds) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string body(random() % 40, '\0');
    for (char& byte : body) byte = static_cast<char>(random() % 8 == 0 ? random() : random() % 4);
    if (!body.empty()) body[0] = static_cast<char>(random() % (kOpMost + 3));
    const Result<Request> got = decode_request(body);
    if (got) {
      EXPECT_EQ(body_of(*got).size(), body.size());
    }
  }
}

TEST(Protocol, LengthsThatNoFrameHasAreRefused) {
  EXPECT_FALSE(decode_length(std::string_view("\0\0\0\0", 4)));
  EXPECT_FALSE(decode_length(std::string_view("\1\0\0\4", 4)));  // one byte above 64 MiB
  EXPECT_FALSE(decode_length(std::string_view("\1\0\0", 3)));
  EXPECT_EQ(decode_length(std::string_view("\0\0\0\4", 4)).value(), kFrameBytesMax);
}

TEST(Protocol, AFrameThatWouldBeTooLongIsNotMade) {
  std::string frame = "before";
  const std::string value(kFrameBytesMax, 'v');
  Request request = request_of(Op::put);
  request.value = value;
  EXPECT_FALSE(encode_request(request, frame));
  EXPECT_EQ(frame, "before");
}

TEST(Protocol, AnErrorKeepsItsKindAndItsTexts) {
  std::string frame;
  encode_error(Error(ErrorKind::unsupported, "what").at("where").hint("hint"), frame);
  const std::string_view payload = std::string_view(frame).substr(kLengthBytes + 1);
  const Error got = decode_error(payload);
  EXPECT_EQ(got.kind(), ErrorKind::unsupported);
  EXPECT_EQ(got.message(), "where: what (hint)");
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_EQ(decode_error(payload.substr(0, size)).kind(), ErrorKind::child) << size;
  }
}

TEST(Protocol, PairsAndNumbersComeBackAndTheirTruncationsAreRefused) {
  const Settings pairs{{"a", "1"}, {"b", ""}};
  const std::string payload = encode_pairs(pairs);
  EXPECT_EQ(decode_pairs(payload).value(), pairs);
  EXPECT_FALSE(decode_pairs(std::string_view(payload).substr(0, payload.size() - 1)));
  EXPECT_EQ(decode_u64(encode_u64(0x0102030405060708)).value(), 0x0102030405060708U);
  EXPECT_EQ(encode_u64(1), std::string("\1\0\0\0\0\0\0\0", 8));
  EXPECT_FALSE(decode_u64("1234567"));
}

}  // namespace
}  // namespace assay::served
