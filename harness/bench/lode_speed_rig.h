// What the rows of lode_speed_benchmark share: the plan, the open stores, their turns.
//
// Within a row the stores take turns, slice by slice, in a rotating order, so that whatever
// disturbs the machine disturbs all. Errors end the program. Threads: each function by one.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"

namespace assay {

namespace fs = std::filesystem;

struct Plan {
  std::vector<std::string> rows = {
      "get",      "get2", "scan",   "range100",     "reverse", "durable1",  "durable16",
      "batch128", "load", "reopen", "reopen-clean", "reader",  "admission", "admission-pending"};
  std::vector<std::string> stores = {"lode", "lmdb", "rocksdb"};
  std::uint64_t entries = 1'000'000;
  std::uint64_t value_bytes = 128;
  std::uint64_t load_entries = 300'000;
  std::uint64_t reopen_entries = 200'000;
  std::uint64_t durable_commits = 48;
  int rounds = 5;
  KeyKind keys = KeyKind::bytes;
  fs::path directory = fs::temp_directory_path();

  std::size_t key_size = 16;

  [[nodiscard]] std::size_t key_bytes() const { return key_size; }
};

template <class T>
T take(Result<T> result) {
  if (!result) check_failed(__FILE__, __LINE__, "result", result.error().message());
  return std::move(*result);
}
inline void take(const Status& status) {
  if (!status) check_failed(__FILE__, __LINE__, "status", status.error().message());
}

inline std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The key of entry `i`: its hash, so that neighbours are strangers.
inline std::string key_of(std::uint64_t i, std::size_t bytes) {
  std::string key(bytes, '\0');
  const std::uint64_t words[2] = {mixed(i), mixed(i + (std::uint64_t{1} << 40))};
  std::memcpy(key.data(), words, bytes);
  return key;
}

enum class Clock : std::uint8_t { wall, thread_cpu };

inline double seconds_now(Clock clock) {
  timespec now{};
  ::clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double seconds_of(const std::function<void()>& work, Clock clock = Clock::wall) {
  const double begin = seconds_now(clock);
  work();
  return seconds_now(clock) - begin;
}

/// Pins the calling thread to one CPU, counted round robin, as long as it lives.
class Pinned {
 public:
  explicit Pinned(unsigned cpu) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % std::max(1U, std::thread::hardware_concurrency()), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  }
  ~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// One open store.
struct Rig {
  std::string name;
  std::unique_ptr<TemporaryDirectory> scratch;
  std::unique_ptr<Store> store;
  std::vector<double> rates;

  ~Rig() {
    if (store) (void)store->close();
  }
};

inline OpenOptions options_for(const Plan& plan, const std::string& directory,
                               DurabilityClass durability, std::uint64_t entries) {
  OpenOptions options;
  options.directory = directory;
  options.durability = durability;
  options.key_kind = plan.keys;
  options.expected_bytes = entries * (plan.key_bytes() + plan.value_bytes);
  options.memory_bytes =
      std::max<std::uint64_t>(std::uint64_t{256} << 20, 4 * options.expected_bytes);
  return options;
}

inline std::unique_ptr<Rig> open_rig(const Plan& plan, const std::string& name,
                                     DurabilityClass durability, std::uint64_t entries) {
  auto rig = std::make_unique<Rig>();
  rig->name = name;
  rig->scratch = std::make_unique<TemporaryDirectory>(plan.directory.string());
  const Driver* const driver = take(find_driver(name));
  rig->store = take(driver->open(options_for(plan, rig->scratch->path(), durability, entries)));
  return rig;
}

inline void load(const Plan& plan, Session& session, std::uint64_t entries) {
  constexpr std::uint64_t batch = 1000;
  const std::string value(plan.value_bytes, 'v');
  std::vector<std::string> keys(batch);
  std::vector<Mutation> mutations(batch);
  for (std::uint64_t first = 0; first < entries; first += batch) {
    const std::uint64_t count = std::min(batch, entries - first);
    for (std::uint64_t i = 0; i < count; ++i) {
      keys[i] = key_of(first + i, plan.key_bytes());
      mutations[i] = {Mutation::Kind::put, keys[i], value};
    }
    take(session.apply(std::span(mutations).first(count)));
  }
}

inline std::unique_ptr<Rig> loaded_rig(const Plan& plan, const std::string& name) {
  auto rig = open_rig(plan, name, DurabilityClass::volatile_, plan.entries);
  load(plan, *take(rig->store->session()), plan.entries);
  take(rig->store->checkpoint());
  take(rig->store->settle());
  return rig;
}

using Rigs = std::vector<std::unique_ptr<Rig>>;

/// Takes turns: `slice` returns the operations a second of one store in one round.
inline void take_turns(const Plan& plan, Rigs& rigs,
                       const std::function<double(Rig&, int)>& slice) {
  for (auto& rig : rigs) {
    rig->rates.clear();
    (void)slice(*rig, 0);  // warms up
  }
  for (int round = 1; round <= plan.rounds; ++round) {
    for (std::size_t i = 0; i < rigs.size(); ++i) {
      Rig& rig = *rigs[(i + static_cast<std::size_t>(round)) % rigs.size()];
      rig.rates.push_back(slice(rig, round));
    }
  }
}

inline void show(const std::string& row, const Rigs& rigs, const std::string& unit = "/s") {
  std::string line = fmt::format("{:<10}", row);
  const Rig* lode = nullptr;
  for (const auto& rig : rigs) {
    if (rig->name == "lode") lode = rig.get();
  }
  for (const auto& rig : rigs) {
    line += fmt::format("  {} {:.4g}{}", rig->name, median(rig->rates), unit);
    if (lode == nullptr || rig.get() == lode) continue;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rig->rates.size(); ++i) {
      ratios.push_back(lode->rates[i] / rig->rates[i]);
    }
    line += fmt::format(" (lode x{:.2f})", median(ratios));
  }
  fmt::print("{}\n", line);
  (void)std::fflush(stdout);
}

/// Runs `work(thread)` in pinned threads; returns the seconds of the whole.
inline double in_threads(unsigned threads, const std::function<void(unsigned)>& work) {
  return seconds_of([&] {
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        const Pinned pinned(t);
        work(t);
      });
    }
    for (std::thread& thread : all) thread.join();
  });
}

/// Opening a store that was closed after a checkpoint, with few and with many entries.
void reopen_clean_row(const Plan& plan);
/// The 99th percentile of single reads beside a thread that commits durably.
void reader_row(const Plan& plan);
/// Durable commits into a bounded data file under the three admission policies (lode alone).
void admission_row(const Plan& plan);
/// A commit against the number of pending entries, nanoseconds.
void admission_pending_row(const Plan& plan);

}  // namespace assay
