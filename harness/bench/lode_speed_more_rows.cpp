// Rows of lode_speed_benchmark about opening and about readers beside a writer.
#include <atomic>

#include "harness/bench/lode_speed_rig.h"

namespace assay {
namespace {

double opening_seconds(const Plan& plan, const Rig& rig, std::uint64_t entries) {
  const OpenOptions options =
      options_for(plan, rig.scratch->path(), DurabilityClass::power, entries);
  std::unique_ptr<Store> store;
  const double seconds =
      seconds_of([&] { store = take(take(find_driver(rig.name))->open(options)); });
  take(store->close());
  return seconds;
}

std::unique_ptr<Rig> closed_rig(const Plan& plan, const std::string& name, std::uint64_t entries) {
  auto rig = open_rig(plan, name, DurabilityClass::volatile_, entries);
  load(plan, *take(rig->store->session()), entries);
  take(rig->store->checkpoint());
  take(rig->store->settle());
  take(rig->store->close());
  rig->store.reset();
  return rig;
}

/// Nanoseconds of each of `count` reads.
std::vector<double> read_times(const Plan& plan, Session& session, std::uint64_t seed,
                               std::uint64_t count) {
  std::vector<double> times;
  times.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = key_of(mixed(seed + i) % plan.entries, plan.key_bytes());
    std::string_view value;
    const double seconds = seconds_of([&] {
      if (!take(session.get(key, value))) {
        check_failed(__FILE__, __LINE__, "get", "a key that was loaded is missing");
      }
    });
    times.push_back(1e9 * seconds);
  }
  return times;
}

}  // namespace

void reopen_clean_row(const Plan& plan) {
  for (const std::uint64_t entries : {std::uint64_t{10'000}, plan.entries}) {
    Rigs rigs;
    for (const std::string& name : plan.stores) rigs.push_back(closed_rig(plan, name, entries));
    take_turns(plan, rigs, [&](Rig& rig, int) { return 1 / opening_seconds(plan, rig, entries); });
    show(fmt::format("reopen-clean {}", entries), rigs, " openings/s");
  }
}

void reader_row(const Plan& plan) {
  constexpr std::uint64_t reads = 40'000;
  constexpr double percentile = 0.99;
  Rigs rigs;
  for (const std::string& name : plan.stores) {
    rigs.push_back(open_rig(plan, name, DurabilityClass::power, plan.entries));
    load(plan, *take(rigs.back()->store->session()), plan.entries);
    take(rigs.back()->store->checkpoint());
    take(rigs.back()->store->settle());
  }
  const Pinned pinned(0);
  // Rates are one over the percentile, so that a ratio above 1 is lode's advantage as elsewhere.
  take_turns(plan, rigs, [&](Rig& rig, int round) {
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      const Pinned other(1);
      const auto session = take(rig.store->session());
      const std::string value(plan.value_bytes, 'w');
      for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        take(session->put(key_of(mixed(i) % plan.entries, plan.key_bytes()), value));
      }
    });
    std::vector<double> times;
    {
      const auto session = take(rig.store->session());
      times = read_times(plan, *session, static_cast<std::uint64_t>(round) << 32, reads);
    }
    stop.store(true);
    writer.join();
    std::sort(times.begin(), times.end());
    return 1e9 / times[static_cast<std::size_t>(percentile * static_cast<double>(times.size()))];
  });
  show("reader", rigs, " = 1 s / p99");
}

}  // namespace assay
