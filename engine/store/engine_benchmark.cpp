// What is asked of lode alone, without the other stores: recovery of small stores, what a load
// writes by kind, markers, and the store as a map in memory. Prints times, asserts nothing. usage:
// lode_engine_benchmark [DIRECTORY]
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/lode.h"

namespace lode {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::string> random_keys(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(u64_key(random()));
  return keys;
}

std::unique_ptr<Store> fresh_store(const std::string& directory) {
  std::filesystem::remove_all(directory);
  Options options;
  options.log_method = LogMethod::fdatasync;
  options.overlay_bytes = std::size_t{256} << 20;
  auto store = Store::open(directory, options);
  LODE_CHECK(store.has_value(), "the store opens");
  return std::move(*store);
}

struct SmallStore {
  double create = 0;  // nanoseconds
  double build = 0;   // one batch of all entries, synced
};

Options small_store_options() {
  Options options;
  options.log_method = LogMethod::fdatasync;
  options.log_prepared_bytes = std::uint64_t{1} << 20;
  return options;
}

// In a process of its own that is killed when the store is durable.
SmallStore build_and_kill(const std::string& directory, const std::vector<std::string>& keys) {
  std::filesystem::remove_all(directory);
  int ends[2];
  LODE_CHECK(::pipe(ends) == 0, "a pipe opens");
  const pid_t child = ::fork();
  if (child == 0) {
    SmallStore times;
    auto begin = Clock::now();
    const auto store = Store::open(directory, small_store_options());
    LODE_CHECK(store.has_value(), "the store opens");
    times.create = nanoseconds_since(begin);
    begin = Clock::now();
    WriteBatch batch;
    for (const std::string& key : keys) batch.put(key, "8 bytes.");
    LODE_CHECK((*store)->commit(batch, Durability::sync).has_value(), "the entries are durable");
    times.build = nanoseconds_since(begin);
    LODE_CHECK(::write(ends[1], &times, sizeof times) == sizeof times, "the times are told");
    ::raise(SIGKILL);
  }
  SmallStore times;
  LODE_CHECK(::read(ends[0], &times, sizeof times) == sizeof times, "the child has built a store");
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return times;
}

// What no recovery can do without: open a file, read what was logged, write it again (it may be in
// the page cache only) and make it durable.
double bare_recovery(const std::string& file, std::size_t bytes) {
  std::vector<char> log(bytes, 'x');
  const int made = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  LODE_CHECK(::write(made, log.data(), bytes) == static_cast<ssize_t>(bytes), "a file is written");
  ::fsync(made);
  ::close(made);
  const auto begin = Clock::now();
  const int opened = ::open(file.c_str(), O_RDWR);
  LODE_CHECK(::pread(opened, log.data(), bytes, 0) == static_cast<ssize_t>(bytes), "it is read");
  LODE_CHECK(::pwrite(opened, log.data(), bytes, 0) == static_cast<ssize_t>(bytes), "and written");
  LODE_CHECK(::fdatasync(opened) == 0, "and synced");
  const double taken = nanoseconds_since(begin);
  ::close(opened);
  ::unlink(file.c_str());
  return taken;
}

void small_recovery(const std::string& directory, std::size_t entries) {
  std::vector<std::string> keys = random_keys(entries);
  for (std::string& key : keys) key += key;  // 16 bytes
  std::vector<double> create;
  std::vector<double> build;
  std::vector<double> recover;
  std::vector<double> bare;
  for (int round = 0; round < 15; ++round) {
    const SmallStore times = build_and_kill(directory, keys);
    create.push_back(times.create);
    build.push_back(times.build);
    const auto begin = Clock::now();
    const auto store = Store::open(directory, small_store_options());
    recover.push_back(nanoseconds_since(begin));
    LODE_CHECK(store.has_value() && (*store)->recovery().replayed_commits == 1,
               "the entries are recovered");
    bare.push_back(bare_recovery(directory + ".bare", entries * 32));
  }
  std::printf(
      "recovery of %zu entries: %.2f ms, x%.2f of insert and sync (%.2f ms), x%.2f with creation "
      "(%.2f ms), x%.2f of a bare open, read, write and fdatasync (%.2f ms)\n",
      entries, median(recover) / 1e6, median(recover) / median(build), median(build) / 1e6,
      median(recover) / (median(build) + median(create)), median(create) / 1e6,
      median(recover) / median(bare), median(bare) / 1e6);
}

double bytes_below(const std::string& directory, std::string_view prefix) {
  double bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (!file.path().filename().string().starts_with(prefix)) continue;
    bytes += static_cast<double>(file.file_size());
  }
  return bytes;
}

// What this process has handed to write calls, zeros of new log included.
double bytes_handed_out() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  double bytes = 0;
  while (counters >> name >> bytes) {
    if (name == "wchar:") return bytes;
  }
  return 0;
}

// A random load without durability, one flush at its end: bytes over payload, by kind.
void load(const std::string& directory, std::size_t entries) {
  std::filesystem::remove_all(directory);
  Options options;
  options.log_method = LogMethod::fdatasync;
  options.background = true;
  auto store = Store::open(directory, options);
  LODE_CHECK(store.has_value(), "the store opens");
  std::vector<std::string> keys = random_keys(entries);
  for (std::string& key : keys) key += key;  // 16 bytes
  const std::string value(100, 'v');
  const double before = bytes_handed_out();
  const auto begin = Clock::now();
  for (const std::string& key : keys) (void)(*store)->put(key, value, Durability::volatile_);
  LODE_CHECK((*store)->drain().has_value(), "the load is settled");
  const double seconds = nanoseconds_since(begin) / 1e9;
  const auto statistics = (*store)->statistics();
  const double payload = static_cast<double>(entries) * 116;
  const double all = (bytes_handed_out() - before) / payload;
  const double log = statistics.at("log_written_bytes") / payload;
  const double flush = statistics.at("checkpoint_written_bytes") / payload;
  const double merge = statistics.at("merge_written_bytes") / payload;
  std::printf(
      "load of %zu: %.0f k/s; written over payload: %.2f, of it log %.2f, flush %.2f, merge %.2f; "
      "on disk: "
      "data "
      "%.2f (used %.2f), log files %.2f\n",
      entries, static_cast<double>(entries) / seconds / 1000, all, log, flush, merge,
      bytes_below(directory, "data") / payload, statistics.at("data_pages_used") * 8192 / payload,
      bytes_below(directory, "log-") / payload);
}

void markers(const std::string& directory, std::size_t entries) {
  const auto store = fresh_store(directory);
  const std::string value(128, 'v');
  const std::vector<std::string> keys = random_keys(entries);
  for (const std::string& key : keys) (void)store->put(key, value, Durability::volatile_);
  (void)store->sync();
  std::vector<double> memory;
  std::vector<double> durable;
  for (int i = 0; i < 200; ++i) {
    auto begin = Clock::now();
    (void)store->mark("memory", Durability::volatile_);
    memory.push_back(nanoseconds_since(begin));
    (void)store->sync();
    begin = Clock::now();
    (void)store->mark("durable", Durability::sync);
    durable.push_back(nanoseconds_since(begin));
  }
  std::printf("marker at %zu entries: in memory %.0f ns, durable %.0f us\n", entries,
              median(memory), median(durable) / 1000);
}

// Medians of interleaved rounds, nanoseconds an operation.
void in_memory(const std::string& directory, std::size_t entries) {
  const std::vector<std::string> keys = random_keys(entries);
  std::vector<std::string> order = keys;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(8));
  const std::string value(8, 'v');
  std::vector<double> put[2];
  std::vector<double> get[2];
  std::string found;
  std::size_t hits = 0;
  const auto each = [&](const auto& operation) {
    const auto begin = Clock::now();
    for (const std::string& key : order) operation(key);
    return nanoseconds_since(begin) / static_cast<double>(order.size());
  };
  for (int round = 0; round < 7; ++round) {
    const auto store = fresh_store(directory);
    put[0].push_back(
        each([&](const std::string& key) { (void)store->put(key, value, Durability::volatile_); }));
    get[0].push_back(each([&](const std::string& key) { hits += *store->get(key, found); }));
    std::map<std::string, std::string, std::less<>> map;
    put[1].push_back(each([&](const std::string& key) { map.insert_or_assign(key, value); }));
    get[1].push_back(each([&](const std::string& key) {
      const auto at = map.find(key);
      hits += at != map.end();
      if (at != map.end()) found = at->second;
    }));
  }
  LODE_CHECK(hits == 14 * entries, "every key is found");
  std::printf(
      "in memory at %zu entries: put %.0f ns (std::map %.0f, x%.2f), get %.0f ns (%.0f, x%.2f)\n",
      entries, median(put[0]), median(put[1]), median(put[0]) / median(put[1]), median(get[0]),
      median(get[1]), median(get[0]) / median(get[1]));
}

}  // namespace
}  // namespace lode

int main(int count, char** words) {
  const std::string directory =
      count > 1 ? words[1]
                : (std::filesystem::temp_directory_path() / "lode_engine_benchmark").string();
  for (const std::size_t entries : {100, 1000, 5000}) lode::small_recovery(directory, entries);
  lode::load(directory, 1'000'000);
  for (const std::size_t entries : {std::size_t{10'000}, std::size_t{1'000'000}}) {
    lode::markers(directory, entries);
  }
  lode::in_memory(directory, 65'536);
  std::filesystem::remove_all(directory);
  return 0;
}
