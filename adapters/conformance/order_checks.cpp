// Scans: order, bounds, limits, and one snapshot whatever others write meanwhile.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

/// For a store without order: scan must say so.
Result<Outcome> no_order(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.put(bench.key(1), "one"));
  const Result<Entries> entries = collect(fixture.session(), ScanRange{});
  return refusal(entries ? Status{} : Status(std::unexpected(entries.error())), "scan");
}

/// Even numbers below `count`, put in an order that is not theirs.
Status load_even(const Bench& bench, Fixture& fixture, std::uint64_t count) {
  Entries entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = i * 37 % count * 2;  // a permutation: 37 and count are coprime
    entries.emplace_back(bench.key(number), fmt::format("value {}", number));
  }
  return fixture.load(entries);
}

Result<Outcome> order(const Bench& bench) {
  if (!bench.capabilities.ordered) return no_order(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  for (const bool backward : {false, true}) {
    ASSAY_TRY(fixture.verify_scan(fixture.session(), ScanRange{.backward = backward}));
  }
  ASSAY_TRY(load_even(bench, fixture, 100));
  for (const char* tail : {"z", "a", "", "zz", "\xff", "A", "aa", "\x01"}) {
    if (bench.key(tail).empty()) continue;
    ASSAY_TRY(fixture.put(bench.key(tail), "odd length"));
  }
  for (const bool backward : {false, true}) {
    ASSAY_TRY(fixture.verify_scan(fixture.session(), ScanRange{.backward = backward}));
  }
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify_scan(fixture.session(), ScanRange{}));
  return Outcome{};
}

Result<Outcome> bounds(const Bench& bench) {
  if (!bench.capabilities.ordered) return no_order(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(load_even(bench, fixture, 20));  // 0, 2, ... 38
  struct Ends {
    std::uint64_t first;
    std::uint64_t last;
  };
  // On keys, between keys, one key, a gap, beyond both ends, and turned round (nothing).
  constexpr std::array<Ends, 10> kEnds{
      {{4, 10}, {3, 11}, {4, 11}, {3, 10}, {6, 6}, {7, 7}, {0, 38}, {39, 99}, {20, 1}, {38, 38}}};
  std::uint64_t scans = 0;
  for (const Ends& ends : kEnds) {
    const std::string first = bench.key(ends.first);
    const std::string last = bench.key(ends.last);
    for (const std::uint64_t limit : {0, 1, 3, 1000}) {
      for (const unsigned shape : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
        const ScanRange range{.first = first,
                              .last = last,
                              .from_start = (shape & 1u) != 0,
                              .to_end = (shape & 2u) != 0,
                              .backward = (shape & 4u) != 0,
                              .limit = limit};
        ASSAY_TRY(fixture.verify_scan(fixture.session(), range));
        ++scans;
      }
    }
  }
  return Outcome{CheckResult::passed, fmt::format("{} ranges", scans)};
}

/// Ends the scan after some entries.
class EarlyEnd final : public ScanSink {
 public:
  explicit EarlyEnd(std::uint64_t most) : most_(most) {}
  bool entry(std::string_view, std::string_view) override { return ++seen_ < most_; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

 private:
  std::uint64_t most_;
  std::uint64_t seen_ = 0;
};

Result<Outcome> early_end(const Bench& bench) {
  if (!bench.capabilities.ordered) return no_order(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(load_even(bench, fixture, 20));
  for (const std::uint64_t most : {1u, 5u, 20u}) {
    EarlyEnd sink(most);
    const Result<std::uint64_t> visited = fixture.session().scan(ScanRange{}, sink);
    if (!visited) return failed_in(visited.error(), "scan");
    if (sink.seen() != most || *visited != most) {
      return wrong(
          fmt::format("a scan that its receiver ended after {} entries showed {} and "
                      "returned {}",
                      most, sink.seen(), *visited));
    }
  }
  ASSAY_TRY(fixture.put(bench.key(1), "the session still works"));
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

/// A thread that, on a signal from a scan's receiver, writes through a session of its own.
class Writer {
 public:
  Writer(Session& session, std::function<Status(Session&)> write)
      : thread_([this, &session, write = std::move(write)] {
          {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return started_; });
          }
          Status status = write(session);
          const std::lock_guard lock(mutex_);
          status_ = std::move(status);
          changed_.notify_all();
        }) {}
  ~Writer() { static_cast<void>(finish()); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Lets it write, and waits for it, but not for long: a store may hold writers back while a scan
  /// is under way. True if it has finished.
  bool write_now() {
    std::unique_lock lock(mutex_);
    started_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::milliseconds(300),
                             [this] { return status_.has_value(); });
  }
  Status finish() {
    {
      const std::lock_guard lock(mutex_);
      started_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    return *status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::optional<Status> status_;
  std::thread thread_;
};

class WritingSink final : public ScanSink {
 public:
  WritingSink(Writer& writer, std::size_t at) : writer_(writer), at_(at) {}
  bool entry(std::string_view key, std::string_view value) override {
    entries.emplace_back(key, value);
    if (entries.size() == at_) finished_meanwhile = writer_.write_now();
    return true;
  }
  Entries entries;
  bool finished_meanwhile = false;

 private:
  Writer& writer_;
  std::size_t at_;
};

Result<Outcome> snapshot(const Bench& bench) {
  if (!bench.capabilities.ordered) return no_order(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(load_even(bench, fixture, 100));  // 0, 2, ... 198
  bool meanwhile = true;
  for (const bool backward : {false, true}) {
    Result<std::unique_ptr<Session>> other = fixture.another();
    if (!other) return failed_in(other.error(), "second session");
    const ScanRange range{.backward = backward};
    const Entries expected = expected_entries(fixture.model(), range);
    // On both sides of where the scan stands: overwritten, erased, and new.
    const std::array changed{bench.key(20), bench.key(180)};
    const std::array erased{bench.key(backward ? 30 : 32), bench.key(backward ? 170 : 172)};
    const std::array added{bench.key(backward ? 41 : 43), bench.key(backward ? 161 : 163)};
    const std::string value = backward ? "second round" : "first round";
    Writer writer(**other, [&](Session& session) -> Status {
      for (const std::string& key : changed) ASSAY_TRY(session.put(key, value));
      for (const std::string& key : erased) ASSAY_TRY(session.erase(key));
      for (const std::string& key : added) ASSAY_TRY(session.put(key, value));
      return {};
    });
    WritingSink sink(writer, 50);
    const Result<std::uint64_t> visited = fixture.session().scan(range, sink);
    const Status written = writer.finish();
    if (!visited) return failed_in(visited.error(), "scan beside a writer");
    if (!written) return failed_in(written.error(), "write beside a scan");
    ASSAY_TRY(same_entries(sink.entries, expected, "a scan beside a writer"));
    for (const std::string& key : changed) fixture.note_put(key, value);
    for (const std::string& key : erased) fixture.note_erase(key);
    for (const std::string& key : added) fixture.note_put(key, value);
    ASSAY_TRY(fixture.verify());
    meanwhile = meanwhile && sink.finished_meanwhile;
  }
  return Outcome{CheckResult::passed, meanwhile ? "the writer went on beside the scan"
                                                : "the writer waited for the scan"};
}

constexpr std::array kU64{0x0ull,        0x1ull,           0xffull,       0x100ull,
                          0xffffull,     0x10000ull,       0x7fffffffull, 0x80000000ull,
                          0xffffffffull, 0x100000000ull,   (1ull << 62),  (1ull << 63) - 1,
                          (1ull << 63),  (1ull << 63) + 1, ~0ull - 1,     ~0ull};

std::string big_endian(std::uint64_t number) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (56 - 8 * i));
  return bytes;
}

Result<Outcome> u64_keys(const Bench& bench) {
  if (!bench.u64_keys) return Outcome{CheckResult::not_supported, "refuses keys of kind u64"};
  Fixture fixture(bench, KeyKind::u64);
  ASSAY_TRY(fixture.open());
  for (std::size_t i = 0; i < kU64.size(); ++i) {
    const std::uint64_t number = kU64[i * 7 % kU64.size()];  // 7 and 16 are coprime
    ASSAY_TRY(fixture.put(big_endian(number), fmt::format("{}", number)));
  }
  fixture.note_touched(big_endian(2));
  fixture.note_touched(big_endian(~0ull - 2));
  ASSAY_TRY(fixture.erase(big_endian(0x10000)));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  if (!bench.capabilities.ordered) return Outcome{};
  const std::string low = big_endian(0x100);
  const std::string high = big_endian(1ull << 63);
  for (const bool backward : {false, true}) {
    ASSAY_TRY(fixture.verify_scan(fixture.session(), ScanRange{.first = low,
                                                               .last = high,
                                                               .from_start = false,
                                                               .to_end = false,
                                                               .backward = backward,
                                                               .limit = 5}));
    ASSAY_TRY(fixture.verify_scan(fixture.session(), ScanRange{.backward = backward}));
  }
  return Outcome{};
}

constexpr std::array kChecks{
    Check{"order", "a scan shows every entry once, in order of bytes, both ways", order},
    Check{"bounds", "both bounds are inclusive, and a limit holds, both ways", bounds},
    Check{"early_end", "a receiver can end a scan", early_end},
    Check{"snapshot", "a scan does not see what is written during it", snapshot},
    Check{"u64_keys", "keys of kind u64 work, in numeric order", u64_keys, true, false},
};

}  // namespace

std::span<const Check> order_checks() {
  return kChecks;
}

}  // namespace assay::conformance
