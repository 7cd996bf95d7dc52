#include "workloads/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <xxhash.h>

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 11;

KeySpec bytes_keys(std::uint32_t bytes, bool hashed, std::string prefix = "") {
  KeySpec keys;
  keys.count = 200;
  keys.kind = KeyKind::bytes;
  keys.bytes = bytes;
  keys.hashed = hashed;
  keys.prefix = std::move(prefix);
  return keys;
}

std::string key_of(const KeyCodec& codec, std::uint64_t index) {
  std::string key(codec.size(), '\0');
  codec.encode(index, key.data());
  return key;
}

TEST(KeyCodec, decodes_what_it_encodes_for_every_size) {
  for (const bool hashed : {true, false}) {
    for (const std::uint32_t bytes : {1U, 2U, 3U, 7U, 8U, 9U, 16U, 20U, 64U, 1000U}) {
      const KeyCodec codec(bytes_keys(bytes, hashed), kSeed);
      std::set<std::string> keys;
      for (std::uint64_t index = 0; index < 256; ++index) {
        const std::string key = key_of(codec, index);
        std::uint64_t back = 0;
        ASSERT_TRUE(codec.decode(key, back)) << bytes;
        ASSERT_EQ(back, index) << bytes;
        keys.insert(key);
      }
      EXPECT_EQ(keys.size(), 256U) << bytes;
    }
  }
}

TEST(KeyCodec, u64_keys_are_a_bijection_at_both_ends_of_the_range) {
  const KeyCodec codec(KeySpec{}, kSeed);
  for (const std::uint64_t index : {0ULL, 1ULL, 63ULL, 64ULL, ~0ULL, 1ULL << 40, 1ULL << 63}) {
    std::uint64_t back = 0;
    ASSERT_TRUE(codec.decode(key_of(codec, index), back));
    EXPECT_EQ(back, index);
  }
}

TEST(KeyCodec, ordered_keys_sort_as_their_indices) {
  for (const std::uint32_t bytes : {2U, 8U, 24U}) {
    const KeyCodec codec(bytes_keys(bytes, false, "p"), kSeed);
    std::string before;
    for (std::uint64_t index = 0; index < 256; index += 5) {
      const std::string key = key_of(codec, index);
      EXPECT_LT(before, key);
      before = key;
    }
  }
}

TEST(KeyCodec, hashed_keys_depend_on_the_seed_and_are_spread) {
  const KeySpec spec;
  const KeyCodec one(spec, 1);
  const KeyCodec two(spec, 2);
  std::vector<int> buckets(256);
  int same = 0;
  for (std::uint64_t index = 0; index < 10'000; ++index) {
    const std::string key = key_of(one, index);
    same += key == key_of(two, index);
    ++buckets[static_cast<unsigned char>(key[0])];
  }
  EXPECT_EQ(same, 0);
  const auto [least, most] = std::minmax_element(buckets.begin(), buckets.end());
  EXPECT_GT(*least, 10);
  EXPECT_LT(*most, 80);
}

TEST(KeyCodec, refuses_bytes_that_are_no_key) {
  const KeyCodec codec(bytes_keys(24, true, "user"), kSeed);
  std::string key = key_of(codec, 5);
  EXPECT_TRUE(key.starts_with("user"));
  std::uint64_t index = 0;
  EXPECT_FALSE(codec.decode(key.substr(1), index));
  EXPECT_FALSE(codec.decode("", index));
  std::string other_prefix = key;
  other_prefix[0] = 'U';
  EXPECT_FALSE(codec.decode(other_prefix, index));
  std::string damaged_filler = key;
  damaged_filler.back() = static_cast<char>(damaged_filler.back() ^ 1);
  EXPECT_FALSE(codec.decode(damaged_filler, index));
}

ValueSpec fixed(std::uint32_t bytes, double compressible = 0.0) {
  ValueSpec values;
  values.bytes = bytes;
  values.compressible = compressible;
  return values;
}

std::string value_of(const ValueCodec& codec, std::uint64_t index, std::uint64_t version) {
  const std::uint32_t size = codec.size(index, version);
  std::string value(size + 1, '#');
  codec.encode(index, version, value.data());
  EXPECT_EQ(value.back(), '#') << "wrote beyond the value";
  value.pop_back();
  return value;
}

TEST(ValueCodec, matches_its_own_values_and_no_changed_byte) {
  for (const double compressible : {0.0, 0.5, 1.0}) {
    for (const std::uint32_t bytes : {0U, 1U, 2U, 7U, 8U, 15U, 16U, 17U, 23U, 100U, 1000U}) {
      const ValueCodec codec(fixed(bytes, compressible), kSeed);
      std::string value = value_of(codec, 3, 9);
      ASSERT_TRUE(codec.matches(3, 9, value)) << bytes;
      ASSERT_TRUE(codec.belongs_to(3, value)) << bytes;
      for (std::size_t at = 0; at < value.size(); ++at) {
        value[at] = static_cast<char>(value[at] ^ 0x10);
        EXPECT_FALSE(codec.matches(3, 9, value)) << bytes << " at " << at;
        value[at] = static_cast<char>(value[at] ^ 0x10);
      }
      EXPECT_FALSE(codec.matches(3, 9, value + "x"));
    }
  }
}

TEST(ValueCodec, tells_versions_and_keys_apart) {
  for (const std::uint32_t bytes : {8U, 16U, 100U}) {
    const ValueCodec codec(fixed(bytes), kSeed);
    const std::string value = value_of(codec, 3, 9);
    EXPECT_FALSE(codec.matches(3, 10, value));
    EXPECT_FALSE(codec.matches(4, 9, value));
    EXPECT_TRUE(codec.belongs_to(3, value_of(codec, 3, 10)));
    EXPECT_FALSE(codec.belongs_to(4, value));
    EXPECT_FALSE(ValueCodec(fixed(bytes), kSeed + 1).matches(3, 9, value));
  }
}

TEST(ValueCodec, accepts_any_value_only_where_it_is_told_to) {
  ValueCodec codec(fixed(100), kSeed);
  EXPECT_FALSE(codec.belongs_to(3, std::string(100, 'n')));
  EXPECT_FALSE(codec.belongs_to(3, "nnnn"));
  codec.accept_any();
  EXPECT_TRUE(codec.belongs_to(3, std::string(100, 'n')));
  EXPECT_TRUE(codec.belongs_to(3, "nnnn"));
  EXPECT_FALSE(codec.matches(3, 9, std::string(100, 'n'))) << "a whole comparison stays one";
}

TEST(ValueCodec, a_compressible_share_is_zeros) {
  const std::string value = value_of(ValueCodec(fixed(1000, 0.4), kSeed), 1, 1);
  EXPECT_NEAR(static_cast<double>(std::count(value.begin(), value.end(), '\0')), 400, 20);
}

TEST(ValueCodec, noise_does_not_repeat) {
  const std::string value = value_of(ValueCodec(fixed(100'000), kSeed), 1, 1);
  std::set<std::string> words;
  for (std::size_t at = 0; at + 4 <= value.size(); at += 4) words.insert(value.substr(at, 4));
  EXPECT_GT(words.size(), 24'980U) << "no four bytes twice, but for chance";
  std::vector<double> bytes(256);
  for (const char byte : value) bytes[static_cast<unsigned char>(byte)] += 1.0;
  double statistic = 0.0;
  for (const double count : bytes) statistic += (count - 390.6) * (count - 390.6) / 390.6;
  EXPECT_LT(statistic, 255 + 5 * std::sqrt(2 * 255.0));
}

TEST(ValueCodec, noise_of_one_value_does_not_come_again_in_others) {
  const ValueCodec codec(fixed(100), kSeed);
  std::set<std::string> words;
  std::size_t count = 0;
  for (std::uint64_t index = 0; index < 64; ++index) {
    for (const std::uint64_t version : {1U, 2U, 257U, 65537U}) {
      const std::string value = value_of(codec, index, version);
      for (std::size_t at = 8; at + 4 <= value.size(); at += 4, ++count) {
        words.insert(value.substr(at, 4));
      }
    }
  }
  EXPECT_GE(words.size() + 3, count) << "what a compressor could use, but for chance";
}

TEST(ValueCodec, a_version_changes_every_word_of_the_noise) {
  const ValueCodec codec(fixed(5000), kSeed);
  const std::string one = value_of(codec, 7, 1);
  const std::string other = value_of(codec, 7, 257);
  for (std::size_t at = 8; at + 8 <= one.size(); at += 8) {
    ASSERT_NE(one.substr(at, 8), other.substr(at, 8)) << at;
  }
}

TEST(ValueCodec, values_stay_as_they_are) {
  // A change here is a new kStreamVersion: it makes recorded experiments incomparable.
  EXPECT_EQ(kStreamVersion, 2U);
  const std::string value = value_of(ValueCodec(fixed(2100, 0.1), 1), 3, 9);
  EXPECT_EQ(XXH3_64bits(value.data(), value.size()), 0xf58a89b49b837fb6ULL);
  const std::string small = value_of(ValueCodec(fixed(11), 1), 3, 9);
  EXPECT_EQ(XXH3_64bits(small.data(), small.size()), 0xe235ed41241cfdbdULL);
}

TEST(ValueCodec, uniform_sizes_fill_their_range) {
  ValueSpec spec;
  spec.sizes = ValueSizes::uniform;
  spec.min_bytes = 10;
  spec.max_bytes = 19;
  const ValueCodec codec(spec, kSeed);
  std::vector<double> sizes(20);
  for (std::uint64_t index = 0; index < 10'000; ++index) sizes[codec.size(index, 1)] += 1.0;
  for (std::size_t size = 0; size < 20; ++size) {
    if (size < 10) {
      EXPECT_EQ(sizes[size], 0);
    } else {
      EXPECT_NEAR(sizes[size], 1000, 5 * std::sqrt(900));
    }
  }
  EXPECT_EQ(codec.max_size(), 19U);
}

TEST(ValueCodec, lognormal_sizes_have_their_median_and_spread) {
  ValueSpec spec;
  spec.sizes = ValueSizes::lognormal;
  spec.bytes = 1000;
  spec.sigma = 0.5;
  spec.min_bytes = 1;
  spec.max_bytes = 1'000'000;
  const ValueCodec codec(spec, kSeed);
  constexpr int kSizes = 20'000;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t index = 0; index < kSizes; ++index) {
    const double logarithm = std::log(static_cast<double>(codec.size(index, 7)));
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  const double mean = sum / kSizes;
  EXPECT_NEAR(mean, std::log(1000.0), 5 * 0.5 / std::sqrt(kSizes));
  EXPECT_NEAR(std::sqrt(squares / kSizes - mean * mean), 0.5, 5 * 0.5 / std::sqrt(2.0 * kSizes));
}

TEST(ValueCodec, lognormal_sizes_are_clamped) {
  ValueSpec spec;
  spec.sizes = ValueSizes::lognormal;
  spec.bytes = 100;
  spec.sigma = 2.0;
  spec.min_bytes = 50;
  spec.max_bytes = 200;
  const ValueCodec codec(spec, kSeed);
  bool low = false;
  bool high = false;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const std::uint32_t size = codec.size(index, 1);
    ASSERT_GE(size, 50U);
    ASSERT_LE(size, 200U);
    low = low || size == 50;
    high = high || size == 200;
  }
  EXPECT_TRUE(low && high);
}

TEST(ValueCodec, the_size_depends_on_the_version) {
  ValueSpec spec;
  spec.sizes = ValueSizes::uniform;
  spec.max_bytes = 1'000'000;
  const ValueCodec codec(spec, kSeed);
  EXPECT_NE(codec.size(1, 1), codec.size(1, 2));
}

}  // namespace
}  // namespace assay
