// What was written is what is read: plain contents, and keys and values at their extremes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A write that must be refused: an error, and nothing of it in the store.
Result<Outcome> must_refuse(Fixture& fixture, const std::string& key, const std::string& value,
                            std::string what) {
  const Status status = fixture.session().put(key, value);
  if (status) return Outcome{CheckResult::failed, what + " is accepted"};
  ASSAY_TRY(fixture.verify());
  return Outcome{CheckResult::passed, what + " is refused"};
}

Result<Outcome> contents(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.verify());
  for (std::uint64_t i = 0; i < 40; ++i) fixture.note_touched(bench.key(i));
  for (std::uint64_t i = 0; i < 40; i += 2) {
    ASSAY_TRY(fixture.put(bench.key(i), fmt::format("value {}", i)));
  }
  ASSAY_TRY(fixture.verify());
  for (std::uint64_t i = 0; i < 40; i += 4) ASSAY_TRY(fixture.erase(bench.key(i)));
  ASSAY_TRY(fixture.verify());
  Result<std::unique_ptr<Session>> other = fixture.another();
  if (!other) return failed_in(other.error(), "second session");
  ASSAY_TRY(fixture.verify(**other));
  return Outcome{};
}

Result<Outcome> sessions_agree(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  Result<std::unique_ptr<Session>> other = fixture.another();
  if (!other) return failed_in(other.error(), "second session");
  const std::string key = bench.key(7);
  ASSAY_TRY(fixture.put(key, "first"));
  ASSAY_TRY(fixture.verify(**other));
  // A value handed out stays readable while another session overwrites it.
  std::string_view held;
  const Result<bool> found = (*other)->get(key, held);
  if (!found) return failed_in(found.error(), "get");
  ASSAY_TRY(fixture.put(key, std::string(3000, 'x')));
  if (held != "first") {
    return wrong(
        fmt::format("a value that one session holds became {} when another session "
                    "overwrote the key",
                    shown(held)));
  }
  ASSAY_TRY(fixture.verify(**other));
  ASSAY_TRY(fixture.erase(key));
  ASSAY_TRY(fixture.verify(**other));
  return Outcome{};
}

Result<Outcome> overwrite(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.put(bench.key(1), "neighbour"));
  ASSAY_TRY(fixture.put(bench.key(3), "neighbour"));
  for (const std::size_t size : {1u, 5000u, 3u, 0u, 200u, 200u, 20000u, 10u}) {
    ASSAY_TRY(fixture.put(bench.key(2), random_bytes(size, size)));
    ASSAY_TRY(fixture.verify());
  }
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> erase_absent(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.erase(bench.key(5)));
  ASSAY_TRY(fixture.put(bench.key(4), "stays"));
  ASSAY_TRY(fixture.erase(bench.key(5)));
  ASSAY_TRY(fixture.put(bench.key(5), "goes"));
  ASSAY_TRY(fixture.erase(bench.key(5)));
  ASSAY_TRY(fixture.erase(bench.key(5)));
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> empty_value(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.put(bench.key(1), ""));
  ASSAY_TRY(fixture.put(bench.key(2), "full"));
  ASSAY_TRY(fixture.put(bench.key(2), ""));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> shortest_key(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const std::string shortest(bench.capabilities.min_key_bytes, 'p');
  ASSAY_TRY(fixture.put(shortest, "the shortest key"));
  ASSAY_TRY(fixture.put(bench.key("x"), "a longer key"));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  if (shortest.empty()) {
    ASSAY_TRY(fixture.erase(shortest));
    ASSAY_TRY(fixture.verify());
    return Outcome{CheckResult::passed, "the empty key works"};
  }
  return must_refuse(fixture, shortest.substr(1), "too short",
                     fmt::format("a key of {} bytes", shortest.size() - 1));
}

Result<Outcome> longest_key(const Bench& bench) {
  const std::uint64_t most = bench.capabilities.max_key_bytes;
  const std::uint64_t size = std::min(most, std::uint64_t{64} << 10);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  // Three long keys that differ in their last bytes only.
  for (const char last : {'a', 'b', 'c'}) {
    ASSAY_TRY(fixture.put(std::string(size - 1, 'k') + last, fmt::format("value {}", last)));
  }
  ASSAY_TRY(fixture.put(std::string(size - 1, 'k'), "one byte shorter"));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.erase(std::string(size - 1, 'k') + 'b'));
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  if (size < most) {
    return Outcome{CheckResult::passed, fmt::format("tried {} bytes of {}", size, most)};
  }
  return must_refuse(fixture, std::string(size + 1, 'k'), "too long",
                     fmt::format("a key of {} bytes", size + 1));
}

Result<Outcome> large_values(const Bench& bench) {
  const std::uint64_t most = bench.capabilities.max_value_bytes;
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  std::uint64_t largest = std::min(most, kMiB);
  ASSAY_TRY(fixture.put(bench.key(1), random_bytes(1, largest)));
  if (most >= 16 * kMiB) {
    largest = 16 * kMiB;
    ASSAY_TRY(fixture.put(bench.key(2), random_bytes(2, largest)));
  }
  ASSAY_TRY(fixture.put(bench.key(3), "small"));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.put(bench.key(1), "small"));
  ASSAY_TRY(fixture.erase(bench.key(2)));
  ASSAY_TRY(fixture.verify());
  if (largest < most) {
    return Outcome{CheckResult::passed, fmt::format("tried {} bytes of {}", largest, most)};
  }
  return must_refuse(fixture, bench.key(4), std::string(most + 1, 'v'),
                     fmt::format("a value of {} bytes", most + 1));
}

Result<Outcome> prefix_keys(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const std::size_t room = bench.capabilities.max_key_bytes - bench.capabilities.min_key_bytes;
  const std::size_t depth = std::min<std::size_t>(room, 40);
  // Every key is a prefix of the next; written from the middle outwards.
  for (std::size_t i = 0; i < depth; ++i) {
    const std::size_t size = 1 + (i % 2 == 0 ? depth / 2 + i / 2 : depth / 2 - i / 2 - 1);
    if (size > depth) continue;
    ASSAY_TRY(fixture.put(bench.key(std::string(size, 'a')), fmt::format("{}", size)));
  }
  ASSAY_TRY(fixture.verify());
  for (std::size_t size = 1; size <= depth; size += 3) {
    ASSAY_TRY(fixture.erase(bench.key(std::string(size, 'a'))));
  }
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> binary_keys(const Bench& bench) {
  using std::string_literals::operator""s;
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const std::array tails{"\0"s,   "\0\0"s,     "\0\xff"s,   "a\0"s,  "a\0b"s,   "a"s,
                         "\xff"s, "\xff\0"s,   "\xff\xff"s, "\x7f"s, "\x80"s,   "\x01"s,
                         "a\nb"s, "\xc3\xa4"s, "'; --"s,    "%s\\"s, "a\0\0b"s, "\xfe\xff"s};
  for (const std::string& tail : tails) {
    ASSAY_TRY(fixture.put(bench.key(tail), "\0"s + tail + "\0\xff"s));
  }
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.erase(bench.key("a\0"s)));
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

constexpr std::array kChecks{
    Check{"contents", "what was put is there, what was erased or never put is not", contents},
    Check{"sessions_agree", "a write that has returned is seen by every session", sessions_agree},
    Check{"overwrite", "the last value of a key wins, whatever the sizes", overwrite},
    Check{"erase_absent", "erasing a key that is not there is no error", erase_absent},
    Check{"empty_value", "an empty value is a value", empty_value},
    Check{"shortest_key", "the shortest key works, a shorter one is refused", shortest_key},
    Check{"longest_key", "the longest key works, a longer one is refused", longest_key},
    Check{"large_values", "values of 1 MiB and 16 MiB, as far as declared", large_values},
    Check{"prefix_keys", "keys that are prefixes of others are different keys", prefix_keys},
    Check{"binary_keys", "keys and values with NUL, 0xff and every other byte", binary_keys},
};

}  // namespace

std::span<const Check> contents_checks() {
  return kChecks;
}

}  // namespace assay::conformance
