// A random history against a model. It replays from its seed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

class History {
 public:
  History(const Bench& bench, Fixture& fixture)
      : bench_(bench), fixture_(fixture), random_(bench.options.seed) {
    const std::uint64_t shortest = std::max<std::uint64_t>(bench.capabilities.min_key_bytes, 1);
    const std::uint64_t longest = std::min<std::uint64_t>(bench.capabilities.max_key_bytes, 120);
    for (std::size_t i = 0; i < 60; ++i) {
      // Half of the keys share prefixes, the others are any bytes.
      const std::uint64_t size = shortest + below(longest - shortest + 1);
      keys_.push_back(i % 2 == 0 ? random_bytes(random_(), size)
                                 : std::string(size - 1, 'a') + static_cast<char>('a' + i % 26));
      fixture_.note_touched(keys_.back());
    }
  }

  Status step() {
    const std::uint64_t choice = below(100);
    if (choice < 40) return fixture_.put(key(), value());
    if (choice < 55) return fixture_.erase(key());
    if (choice < 68) return fixture_.verify_key(fixture_.session(), key());
    if (choice < 80) return bench_.capabilities.atomic_batches ? batch(false) : Status{};
    if (choice < 86) return bench_.capabilities.rollback ? batch(true) : Status{};
    if (choice < 94) return bench_.capabilities.ordered ? scan() : Status{};
    if (choice < 96) return fixture_.store().sync();
    if (choice < 98) return maintain();
    ASSAY_TRY(fixture_.reopen());
    return fixture_.verify();
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  const std::string& key() { return keys_[below(keys_.size())]; }
  std::string value() {
    const std::uint64_t size = below(20) == 0 ? below(20'000) : below(300);
    return random_bytes(random_(), std::min(size, bench_.capabilities.max_value_bytes));
  }

  Status batch(bool roll_back) {
    Entries entries;
    for (std::uint64_t i = below(12) + 1; i > 0; --i) entries.emplace_back(key(), value());
    std::vector<Mutation> mutations;
    for (const auto& [name, content] : entries) {
      if (below(3) == 0) {
        mutations.push_back({Mutation::Kind::erase, name, {}});
      } else {
        mutations.push_back({Mutation::Kind::put, name, content});
      }
    }
    if (!roll_back) return fixture_.apply(mutations);
    const Status status = fixture_.session().rollback(mutations);
    if (!status) return failed_in(status.error(), "rollback");
    return fixture_.verify();
  }

  Status scan() {
    const std::string first = key();
    const std::string last = key();
    return fixture_.verify_scan(fixture_.session(), ScanRange{.first = first,
                                                              .last = last,
                                                              .from_start = below(4) == 0,
                                                              .to_end = below(4) == 0,
                                                              .backward = below(2) == 0,
                                                              .limit = below(10)});
  }

  Status maintain() {
    for (const Status& status : {fixture_.store().checkpoint(), fixture_.store().settle()}) {
      if (!status && status.error().kind() != ErrorKind::unsupported) return status;
    }
    return {};
  }

  const Bench& bench_;
  Fixture& fixture_;
  std::mt19937_64 random_;
  std::vector<std::string> keys_;
};

Result<Outcome> random_history(const Bench& bench) {
  const std::uint64_t seed = bench.options.seed;
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  History history(bench, fixture);
  for (std::uint64_t i = 0; i < bench.options.history_operations; ++i) {
    const Status status = history.step();
    if (status) continue;
    return failed_in(status.error(), fmt::format("seed {}, operation {}", seed, i + 1));
  }
  const auto after = [seed](const Status& status) -> Status {
    if (status) return {};
    return failed_in(status.error(), fmt::format("seed {}, at the end", seed));
  };
  ASSAY_TRY(after(fixture.verify()));
  ASSAY_TRY(after(fixture.reopen()));
  ASSAY_TRY(after(fixture.verify()));
  return Outcome{CheckResult::passed,
                 fmt::format("{} operations, seed {}", bench.options.history_operations, seed)};
}

constexpr std::array kChecks{
    Check{"random_history", "a random history ends as a model says", random_history},
};

}  // namespace

std::span<const Check> history_checks() {
  return kChecks;
}

}  // namespace assay::conformance
