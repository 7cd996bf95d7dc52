// What is asked of lode alone, without the other stores: markers, and the store as a map in memory.
// Prints nanoseconds, asserts nothing. usage: lode_engine_benchmark [DIRECTORY]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
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
  for (const std::size_t entries : {std::size_t{10'000}, std::size_t{1'000'000}}) {
    lode::markers(directory, entries);
  }
  lode::in_memory(directory, 65'536);
  std::filesystem::remove_all(directory);
  return 0;
}
