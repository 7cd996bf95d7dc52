#include "harness/qualify/history.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::qualify {
namespace {

constexpr std::uint32_t kMagic = 0x61737161;  // "aqsa" in a file, to be found by eye

/// The finaliser of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// 2014): every bit of the input changes half of the output's.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t a, std::uint64_t b)
      : state_(mix(mix(seed ^ mix(a)) + b)) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    return mix(state_);
  }
  /// 0 to `count` - 1.
  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : next() % count; }
  bool chance(std::uint32_t permille) { return below(1000) < permille; }

 private:
  std::uint64_t state_;
};

std::uint64_t value_bytes(Random& random, const HistoryShape& shape) {
  const std::uint32_t most = random.chance(shape.large_permille)
                                 ? std::max(shape.large_value_bytes_max, shape.value_bytes_max)
                                 : shape.value_bytes_max;
  return kStampBytes + random.below(most - kStampBytes + 1);
}

/// Of the fields that a value's stamp carries; little-endian on every machine that we run on.
struct Stamp {
  std::uint32_t magic = kMagic;
  std::uint32_t writer = 0;
  std::uint64_t number = 0;
  std::uint32_t index = 0;
  std::uint32_t position = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Stamp) == kStampBytes);
static_assert(std::endian::native == std::endian::little);

}  // namespace

nlohmann::json to_json(const HistoryShape& shape) {
  return {{"writers", shape.writers},
          {"keys", shape.keys},
          {"changes_max", shape.changes_max},
          {"value_bytes_max", shape.value_bytes_max},
          {"large_value_bytes_max", shape.large_value_bytes_max},
          {"large_permille", shape.large_permille},
          {"erase_permille", shape.erase_permille},
          {"rollback_permille", shape.rollback_permille},
          {"key_kind", shape.key_kind == KeyKind::u64 ? "u64" : "bytes"}};
}

Result<HistoryShape> history_shape_from_json(const nlohmann::json& json) {
  HistoryShape shape;
  try {
    shape.writers = json.at("writers");
    shape.keys = json.at("keys");
    shape.changes_max = json.at("changes_max");
    shape.value_bytes_max = json.at("value_bytes_max");
    shape.large_value_bytes_max = json.at("large_value_bytes_max");
    shape.large_permille = json.at("large_permille");
    shape.erase_permille = json.at("erase_permille");
    shape.rollback_permille = json.at("rollback_permille");
    shape.key_kind = json.at("key_kind") == "u64" ? KeyKind::u64 : KeyKind::bytes;
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input,
                fmt::format("not the shape of a history: {}", exception.what()));
  }
  const auto fits = [](std::uint32_t value, std::uint32_t least, std::uint32_t most) {
    return value >= least && value <= most;
  };
  if (!fits(shape.writers, 1, 64) || !fits(shape.keys, 1, 100'000) ||
      !fits(shape.changes_max, 0, 1000) || !fits(shape.value_bytes_max, kStampBytes, 1 << 24) ||
      !fits(shape.large_value_bytes_max, kStampBytes, 1 << 28))
    return fail(ErrorKind::bad_input, "the shape of a history is out of range");
  return shape;
}

Result<HistoryShape> shape_for(const Capabilities& capabilities, std::uint32_t writers) {
  HistoryShape shape;
  shape.writers = writers;
  if (capabilities.max_key_bytes < 8)
    return fail(ErrorKind::unsupported, "qualification needs keys of at least 8 bytes");
  if (capabilities.max_value_bytes < kStampBytes)
    return fail(ErrorKind::unsupported,
                fmt::format("qualification needs values of at least {} bytes", kStampBytes));
  if (capabilities.max_key_bytes < 48) shape.key_kind = KeyKind::u64;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(capabilities.max_value_bytes, shape.large_value_bytes_max));
  shape.large_value_bytes_max = most;
  shape.value_bytes_max = std::min(shape.value_bytes_max, most);
  if (!capabilities.atomic_batches) shape.changes_max = 0;
  if (!capabilities.rollback) shape.rollback_permille = 0;
  return shape;
}

History::History(std::uint64_t seed, const HistoryShape& shape) : seed_(seed), shape_(shape) {
  ASSAY_CHECK(shape.writers > 0 && shape.keys > 0, "a history needs a writer and a key");
  ASSAY_CHECK(shape.value_bytes_max >= kStampBytes, "a value holds at least its stamp");
}

std::string History::value_of(KeyId key, Version version, std::uint64_t bytes) const {
  const Stamp stamp{.writer = key.writer,
                    .number = version.number,
                    .index = key.index,
                    .position = version.position,
                    .bytes = bytes};
  std::string value(bytes, '\0');
  std::memcpy(value.data(), &stamp, sizeof stamp);
  std::uint64_t state =
      mix(seed_ ^ mix(version.number) ^ (std::uint64_t{key.writer} << 40) ^ key.index) +
      version.position;
  for (std::size_t at = sizeof stamp; at < bytes; at += sizeof state) {
    state = mix(state);
    std::memcpy(value.data() + at, &state, std::min<std::size_t>(sizeof state, bytes - at));
  }
  return value;
}

Transaction History::transaction(std::uint32_t writer, std::uint64_t number) const {
  Random random(seed_, writer, number);
  Transaction made{.writer = writer, .number = number, .rolled_back = false, .changes = {}};
  made.rolled_back = random.chance(shape_.rollback_permille);
  const auto add = [&](std::uint32_t key, bool erase) {
    const Version version{number, static_cast<std::uint32_t>(made.changes.size())};
    Change change{.erase = erase, .key = key, .value = {}};
    if (!erase) change.value = value_of({writer, key}, version, value_bytes(random, shape_));
    made.changes.push_back(std::move(change));
  };
  const auto some_key = [&] { return static_cast<std::uint32_t>(1 + random.below(shape_.keys)); };
  if (shape_.changes_max == 0) {
    // One change a transaction: the counter now and then, so that progress shows.
    if (random.below(4) == 0)
      add(0, false);
    else
      add(some_key(), random.chance(shape_.erase_permille));
    return made;
  }
  const std::uint64_t count = 1 + random.below(shape_.changes_max);
  const std::uint64_t counter_at = random.below(count + 1);
  for (std::uint64_t at = 0; at <= count; ++at) {
    if (at == counter_at)
      add(0, false);
    else
      add(some_key(), random.chance(shape_.erase_permille));
  }
  return made;
}

std::string History::key_bytes(KeyId key) const {
  if (shape_.key_kind == KeyKind::u64) {
    const std::uint64_t number = (std::uint64_t{key.writer} << 32) | key.index;
    std::string bytes(8, '\0');
    for (std::size_t at = 0; at < 8; ++at)
      bytes[at] = static_cast<char>((number >> (56 - 8 * at)) & 0xff);
    return bytes;
  }
  // The tail gives keys of many lengths; it follows from the index, so that key_of() can check it.
  return fmt::format("w{:02}/{:05}{}", key.writer, key.index,
                     std::string(key.index * 7 % 31, static_cast<char>('a' + key.index % 26)));
}

std::optional<KeyId> History::key_of(std::string_view bytes) const {
  KeyId key;
  if (shape_.key_kind == KeyKind::u64) {
    if (bytes.size() != 8) return std::nullopt;
    std::uint64_t number = 0;
    for (const char byte : bytes) number = (number << 8) | static_cast<unsigned char>(byte);
    key = {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)};
  } else {
    if (bytes.size() < 9 || bytes[0] != 'w' || bytes[3] != '/') return std::nullopt;
    const char* const begin = bytes.data();
    const auto writer = std::from_chars(begin + 1, begin + 3, key.writer);
    const auto index = std::from_chars(begin + 4, begin + 9, key.index);
    if (writer.ptr != begin + 3 || index.ptr != begin + 9) return std::nullopt;
  }
  if (key.writer >= shape_.writers || key.index > shape_.keys) return std::nullopt;
  if (key_bytes(key) != bytes) return std::nullopt;
  return key;
}

std::optional<Version> History::writer_of(KeyId key, std::string_view value) const {
  Stamp stamp;
  if (value.size() < sizeof stamp) return std::nullopt;
  std::memcpy(&stamp, value.data(), sizeof stamp);
  if (stamp.magic != kMagic || stamp.writer != key.writer || stamp.index != key.index ||
      stamp.bytes != value.size() || stamp.number == 0)
    return std::nullopt;
  const Transaction made = transaction(stamp.writer, stamp.number);
  if (stamp.position >= made.changes.size()) return std::nullopt;
  const Change& change = made.changes[stamp.position];
  if (change.erase || change.key != key.index || change.value != value) return std::nullopt;
  return Version{stamp.number, stamp.position};
}

}  // namespace assay::qualify
