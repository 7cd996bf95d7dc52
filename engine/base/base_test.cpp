#include <gtest/gtest.h>

#include <random>
#include <string>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"

namespace lode {
namespace {

TEST(Crc32c, agrees_with_the_published_vectors) {
  // RFC 3720, appendix B.4; "123456789" is the check value of the catalogue of CRC algorithms.
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8A9136AAU);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\xff'))), 0x62A8AB43U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, gives_the_same_with_and_without_the_instruction) {
  std::mt19937_64 random(7);
  for (std::size_t length = 0; length < 300; ++length) {
    std::string text(length, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const auto seed = static_cast<std::uint32_t>(random());
    EXPECT_EQ(crc32c(as_bytes(text), seed), crc32c_scalar(as_bytes(text), seed)) << length;
  }
}

TEST(Crc32c, continues_from_a_part) {
  const std::string text = "the quick brown fox";
  const auto part = crc32c(as_bytes(std::string_view(text).substr(0, 7)));
  EXPECT_EQ(crc32c(as_bytes(std::string_view(text).substr(7)), part), crc32c(as_bytes(text)));
}

TEST(Varint, comes_back_at_the_borders_of_every_length) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const std::uint64_t value :
         {(std::uint64_t{1} << shift) - 1, std::uint64_t{1} << shift, ~std::uint64_t{0} >> shift}) {
      std::string out;
      Encoder(out).varint(value);
      EXPECT_EQ(out.size(), varint_bytes(value));
      Decoder in(as_bytes(out));
      EXPECT_EQ(in.varint(), value);
      EXPECT_FALSE(in.failed());
    }
  }
}

TEST(Decoder, refuses_to_read_beyond_the_end) {
  std::string out;
  Encoder encoder(out);
  encoder.varint(1000);
  encoder.bytes("abc");
  Decoder in(as_bytes(out));
  EXPECT_TRUE(in.text().empty());
  EXPECT_TRUE(in.failed());
  Decoder endless(as_bytes(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11)));
  EXPECT_EQ(endless.varint(), 0U);
  EXPECT_TRUE(endless.failed());
}

TEST(Head, orders_as_the_text_does) {
  EXPECT_LT(head_of("a"), head_of("ab"));
  EXPECT_LT(head_of("ab"), head_of("b"));
  EXPECT_EQ(head_of("abcd"), head_of("abcde"));
  EXPECT_LT(head_of("\x7f"), head_of("\x80"));
}

}  // namespace
}  // namespace lode
