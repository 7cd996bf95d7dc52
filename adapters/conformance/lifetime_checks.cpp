// Closing, reopening, maintenance, and space on disk.
#include <fmt/format.h>

#include <array>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

Result<Outcome> reopen(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 10; ++i) {
      ASSAY_TRY(fixture.put(bench.key(round * 7 + i), fmt::format("{} of round {}", i, round)));
    }
    ASSAY_TRY(fixture.erase(bench.key(round * 7 + 3)));
    ASSAY_TRY(fixture.reopen());
    ASSAY_TRY(fixture.verify());
  }
  // Twice in a row without a write, and once with create = true on what is there.
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.close());
  ASSAY_TRY(fixture.open(true));
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> no_create(const Bench& bench) {
  Fixture fixture(bench);
  if (fixture.open(false)) {
    return Outcome{CheckResult::failed, "an empty directory opens with create = false"};
  }
  ASSAY_TRY(fixture.open(true));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.put(bench.key(1), "one"));
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> maintenance(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  std::string detail;
  const auto step = [&](const char* name, const Status& status) -> Status {
    if (!status && status.error().kind() == ErrorKind::unsupported) {
      detail += fmt::format("{}{} is not supported", detail.empty() ? "" : ", ", name);
      return {};
    }
    if (!status) return failed_in(status.error(), name);
    ASSAY_TRY(fixture.verify());
    return {};
  };
  for (std::uint64_t round = 0; round < 3; ++round) {
    Entries entries;
    for (std::uint64_t i = 0; i < 200; ++i) {
      entries.emplace_back(bench.key(i * 3 + round), random_bytes(i + round, 100));
    }
    ASSAY_TRY(fixture.load(entries));
    ASSAY_TRY(fixture.erase(bench.key(round * 30)));
    if (round == 0) ASSAY_TRY(step("sync", fixture.store().sync()));
    if (round != 1) ASSAY_TRY(step("checkpoint", fixture.store().checkpoint()));
    ASSAY_TRY(step("settle", fixture.store().settle()));
  }
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{CheckResult::passed, detail};
}

Result<Outcome> footprint(const Bench& bench) {
  constexpr std::uint64_t kValues = 64;
  constexpr std::uint64_t kValueBytes = std::uint64_t{16} << 10;
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const Result<Footprint> before = fixture.store().footprint();
  if (!before) return failed_in(before.error(), "footprint");
  Entries entries;
  for (std::uint64_t i = 0; i < kValues; ++i) {
    entries.emplace_back(bench.key(i), random_bytes(i, kValueBytes));
  }
  ASSAY_TRY(fixture.load(entries));
  ASSAY_TRY(fixture.store().sync());
  const Result<Footprint> after = fixture.store().footprint();
  if (!after) return failed_in(after.error(), "footprint");
  const std::string seen =
      fmt::format("{} files with {} bytes ({} allocated) hold {} bytes of values", after->files,
                  after->apparent_bytes, after->allocated_bytes, kValues * kValueBytes);
  const bool covered = after->files > 0 && after->apparent_bytes >= kValues * kValueBytes;
  if (!covered || after->apparent_bytes < before->apparent_bytes) {
    return Outcome{CheckResult::failed, seen};
  }
  return Outcome{CheckResult::passed, seen};
}

constexpr std::array kChecks{
    Check{"reopen", "closing and opening again keeps everything", reopen},
    Check{"no_create", "an empty directory does not open with create = false", no_create},
    Check{"maintenance", "sync, checkpoint and settle keep the contents", maintenance},
    Check{"footprint", "the bytes on disk cover what was written", footprint},
};

}  // namespace

std::span<const Check> lifetime_checks() {
  return kChecks;
}

}  // namespace assay::conformance
