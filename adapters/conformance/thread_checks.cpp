// Sessions of several threads at the same time.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <thread>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

constexpr std::uint64_t kGroup = 8;         // keys that carry the same stamp
constexpr std::uint64_t kGenerations = 60;  // commits of the writer

std::string stamped(std::uint64_t generation) {
  return fmt::format("{}:{}", generation,
                     std::string(100, static_cast<char>('a' + generation % 26)));
}

/// The stamp of a value that stamped() made; anything else is a value nobody wrote.
Result<std::uint64_t> generation_of(std::string_view key, std::string_view value) {
  std::uint64_t generation = 0;
  std::from_chars(value.data(), value.data() + value.size(), generation);
  if (value != stamped(generation)) {
    return wrong(fmt::format("{} holds {}, which nobody wrote", shown(key), shown(value)));
  }
  return generation;
}

/// Writes the whole group with one stamp after another: in batches, or key by key.
Status write_generations(const Bench& bench, Session& session) {
  for (std::uint64_t generation = 1; generation <= kGenerations; ++generation) {
    const std::string value = stamped(generation);
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < kGroup; ++i) keys.push_back(bench.key(i));
    if (bench.capabilities.atomic_batches) {
      std::vector<Mutation> batch;
      for (const std::string& key : keys) batch.push_back({Mutation::Kind::put, key, value});
      ASSAY_TRY(session.apply(batch));
    } else {
      for (const std::string& key : keys) ASSAY_TRY(session.put(key, value));
    }
  }
  return {};
}

/// What one reader has seen so far: stamps never go back.
class Reader {
 public:
  Reader(const Bench& bench, Session& session) : bench_(bench), session_(session) {}

  Status read_keys() {
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      const std::string key = bench_.key(i);
      std::string_view value;
      const Result<bool> found = session_.get(key, value);
      if (!found) return failed_in(found.error(), "get beside a writer");
      if (!*found) return wrong(fmt::format("{} is missing beside a writer", shown(key)));
      const Result<std::uint64_t> generation = generation_of(key, value);
      if (!generation) return std::unexpected(generation.error());
      if (*generation < seen_[i]) {
        return wrong(
            fmt::format("{} went back from commit {} to {}", shown(key), seen_[i], *generation));
      }
      seen_[i] = *generation;
    }
    return {};
  }

  /// With order and batches: one snapshot holds one stamp.
  Status read_snapshot() {
    const Result<Entries> entries = collect(session_, ScanRange{});
    if (!entries) return std::unexpected(entries.error());
    if (entries->size() != kGroup) {
      return wrong(fmt::format("a scan beside a writer shows {} entries instead of {}",
                               entries->size(), kGroup));
    }
    for (const auto& [key, value] : *entries) {
      const Result<std::uint64_t> generation = generation_of(key, value);
      if (!generation) return std::unexpected(generation.error());
      if (value != entries->front().second) {
        return wrong(fmt::format("a scan shows half a batch: {} and {}",
                                 shown(entries->front().second), shown(value)));
      }
    }
    return {};
  }

 private:
  const Bench& bench_;
  Session& session_;
  std::array<std::uint64_t, kGroup> seen_{};
};

Status read_until(const Bench& bench, Session& session, const std::atomic<bool>& done) {
  Reader reader(bench, session);
  bool last = false;
  while (!last) {
    last = done.load();  // one more round after the writer has finished
    ASSAY_TRY(reader.read_keys());
    if (bench.capabilities.ordered && bench.capabilities.atomic_batches) {
      ASSAY_TRY(reader.read_snapshot());
    }
    // Leaves the writer room even where readers and a writer exclude each other.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return {};
}

Result<Outcome> readers_beside_writer(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  for (std::uint64_t i = 0; i < kGroup; ++i) ASSAY_TRY(fixture.put(bench.key(i), stamped(0)));
  std::atomic<bool> done{false};
  std::array<Status, 2> read;
  {
    std::vector<std::jthread> threads;
    for (Status& status : read) {
      threads.emplace_back([&bench, &fixture, &done, &status] {
        const Result<std::unique_ptr<Session>> session = fixture.another();
        status =
            session ? read_until(bench, **session, done) : Status(std::unexpected(session.error()));
      });
    }
    const Status written = write_generations(bench, fixture.session());
    done = true;
    threads.clear();
    if (!written) return failed_in(written.error(), "write beside readers");
  }
  for (const Status& status : read) ASSAY_TRY(status);
  for (std::uint64_t i = 0; i < kGroup; ++i) {
    fixture.note_put(bench.key(i), stamped(kGenerations));
  }
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

constexpr std::uint64_t kOwn = 25;  // keys of each writer

Status write_own(const Bench& bench, Session& session, std::uint64_t writer) {
  for (std::uint64_t i = 0; i < kOwn; ++i) {
    const std::string key = bench.key(writer * 1000 + i);
    ASSAY_TRY(session.put(key, "to be overwritten"));
    ASSAY_TRY(session.put(key, fmt::format("{} of writer {}", i, writer)));
    if (i % 5 == 4) ASSAY_TRY(session.erase(key));
  }
  return {};
}

Result<Outcome> concurrent_writers(const Bench& bench) {
  if (!bench.capabilities.concurrent_writers) {
    return Outcome{CheckResult::not_supported, "declared not supported"};
  }
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  std::array<Status, 3> written;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t writer = 0; writer < written.size(); ++writer) {
      threads.emplace_back([&bench, &fixture, &written, writer] {
        const Result<std::unique_ptr<Session>> session = fixture.another();
        written[writer] = session ? write_own(bench, **session, writer)
                                  : Status(std::unexpected(session.error()));
      });
    }
  }
  for (const Status& status : written) {
    if (!status) return failed_in(status.error(), "write beside other writers");
  }
  for (std::uint64_t writer = 0; writer < written.size(); ++writer) {
    for (std::uint64_t i = 0; i < kOwn; ++i) {
      const std::string key = bench.key(writer * 1000 + i);
      fixture.note_put(key, fmt::format("{} of writer {}", i, writer));
      if (i % 5 == 4) fixture.note_erase(key);
    }
  }
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

constexpr std::array kChecks{
    Check{"readers_beside_writer", "readers see whole commits, in order, beside a writer",
          readers_beside_writer},
    Check{"concurrent_writers", "writers in several threads lose nothing", concurrent_writers},
};

}  // namespace

std::span<const Check> thread_checks() {
  return kChecks;
}

}  // namespace assay::conformance
