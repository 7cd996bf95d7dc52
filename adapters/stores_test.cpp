// What every store that keeps data must do, by its declared capabilities, for both kinds of key.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ostream>
#include <random>
#include <thread>

#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::Collector;
using testing::Entries;
using testing::key_of;
using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

struct Case {
  std::string store;
  KeyKind kind = KeyKind::bytes;
  DurabilityClass durability = DurabilityClass::process;
};

// GoogleTest would print the bytes, padding included.
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.store << (one.kind == KeyKind::u64 ? ", u64 keys, " : ", bytes keys, ")
       << to_string(one.durability);
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.store + (info.param.kind == KeyKind::u64 ? "_u64" : "_bytes");
  name += info.param.durability == DurabilityClass::power ? "_power" : "_process";
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& name : testing::quick_stores()) {
    if (!find_driver(name).value()->capabilities().retains_data) continue;
    for (const KeyKind kind : {KeyKind::bytes, KeyKind::u64}) {
      for (const auto durability : {DurabilityClass::process, DurabilityClass::power}) {
        all.push_back({name, kind, durability});
      }
    }
  }
  return all;
}

class EveryStore : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    // Small files, and no probe: the tests are about contents.
    if (GetParam().store == "raw-file") {
      settings_["segment_bytes"] = std::to_string(1 << 20);
      if (GetParam().durability == DurabilityClass::power) {
        settings_["method"] = "fdatasync";
      }
    }
    reopen();
  }
  void TearDown() override {
    session_.reset();
    if (store_ != nullptr) {
      EXPECT_TRUE(ok(store_->close()));
    }
  }
  void reopen() {
    session_.reset();
    if (store_ != nullptr) {
      ASSERT_TRUE(ok(store_->close()));
    }
    store_.reset();
    OpenOptions options;
    options.directory = directory_.path();
    options.durability = GetParam().durability;
    options.key_kind = GetParam().kind;
    options.memory_bytes = 8 << 20;
    options.settings = settings_;
    store_ = open_store(GetParam().store, options);
    ASSERT_NE(store_, nullptr);
    session_ = new_session(*store_);
    ASSERT_NE(session_, nullptr);
  }
  [[nodiscard]] std::string key(std::uint64_t n) const { return key_of(GetParam().kind, n); }
  [[nodiscard]] Capabilities can() const {
    return find_driver(GetParam().store).value()->capabilities();
  }
  [[nodiscard]] std::string get(std::uint64_t n) { return read(*session_, key(n)); }
  void put(std::uint64_t n, std::string_view value) {
    ASSERT_TRUE(ok(session_->put(key(n), value)));
  }

  TemporaryDirectory directory_;
  Settings settings_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> session_;
};

INSTANTIATE_TEST_SUITE_P(Stores, EveryStore, ::testing::ValuesIn(cases()), case_name);

TEST_P(EveryStore, returns_what_was_put_last) {
  EXPECT_EQ(get(1), "(none)");
  put(1, "one");
  put(2, "two");
  put(1, "uno, and longer");
  EXPECT_EQ(get(1), "uno, and longer");
  EXPECT_EQ(get(2), "two");
  EXPECT_EQ(get(3), "(none)");
  put(2, "");
  EXPECT_EQ(get(2), "");
}

TEST_P(EveryStore, keeps_bytes_as_they_are) {
  std::string value;
  for (int i = 0; i < 1024; ++i) value.push_back(static_cast<char>(i * 7));
  put(0, value);
  put(UINT64_MAX, value);
  EXPECT_EQ(get(0), value);
  EXPECT_EQ(get(UINT64_MAX), value);
  if (GetParam().kind == KeyKind::u64) return;
  const std::string zeros("a\0b\0", 4);
  ASSERT_TRUE(ok(session_->put(zeros, "zeros")));
  EXPECT_EQ(read(*session_, zeros), "zeros");
  EXPECT_EQ(read(*session_, "a"), "(none)");
}

TEST_P(EveryStore, takes_an_empty_key_or_says_so) {
  if (GetParam().kind == KeyKind::u64) return;
  const Status status = session_->put("", "nothing before it");
  if (can().min_key_bytes == 0) {
    ASSERT_TRUE(ok(status));
    EXPECT_EQ(read(*session_, ""), "nothing before it");
  } else {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::bad_input);
  }
}

TEST_P(EveryStore, refuses_a_key_beyond_its_declared_size) {
  const std::uint64_t most = GetParam().kind == KeyKind::u64 ? 8 : can().max_key_bytes;
  const std::string largest(most, 'k');
  ASSERT_TRUE(ok(session_->put(largest, "largest")));
  EXPECT_EQ(read(*session_, largest), "largest");
  const Status status = session_->put(largest + "k", "too large");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(status.error().message().find(std::to_string(most + 1)), std::string::npos);
}

TEST_P(EveryStore, erases_and_does_not_mind_a_missing_key) {
  put(7, "seven");
  ASSERT_TRUE(ok(session_->erase(key(7))));
  EXPECT_EQ(get(7), "(none)");
  EXPECT_TRUE(ok(session_->erase(key(7))));
  EXPECT_TRUE(ok(session_->erase(key(8))));
  put(7, "again");
  EXPECT_EQ(get(7), "again");
}

TEST_P(EveryStore, keeps_values_of_a_megabyte) {
  const std::string large(1 << 20, 'x');
  for (std::uint64_t n = 0; n < 4; ++n) put(n, large + std::to_string(n));
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_TRUE(get(n) == large + std::to_string(n)) << n;
  put(0, "small now");
  EXPECT_EQ(get(0), "small now");
}

TEST_P(EveryStore, applies_a_batch_in_its_order) {
  const std::string a = key(1);
  const std::string b = key(2);
  const std::vector<Mutation> batch{{Mutation::Kind::put, a, "first"},
                                    {Mutation::Kind::put, b, "doomed"},
                                    {Mutation::Kind::put, a, "second"},
                                    {Mutation::Kind::erase, b, {}}};
  ASSERT_TRUE(ok(session_->apply(batch)));
  EXPECT_EQ(get(1), "second");
  EXPECT_EQ(get(2), "(none)");
  EXPECT_TRUE(ok(session_->apply({})));
}

TEST_P(EveryStore, applies_nothing_of_a_batch_that_it_refuses) {
  const std::string good = key(1);
  const std::string bad(can().max_key_bytes + 1, 'b');
  const std::vector<Mutation> batch{{Mutation::Kind::put, good, "kept?"},
                                    {Mutation::Kind::put, bad, "refused"}};
  ASSERT_FALSE(session_->apply(batch));
  EXPECT_EQ(get(1), "(none)");
  put(1, "still usable");
  EXPECT_EQ(get(1), "still usable");
}

TEST_P(EveryStore, rolls_back_or_says_that_it_cannot) {
  put(1, "before");
  const std::string a = key(1);
  const std::string b = key(2);
  const std::vector<Mutation> mutations{{Mutation::Kind::put, a, "after"},
                                        {Mutation::Kind::put, b, "new"},
                                        {Mutation::Kind::erase, a, {}}};
  const Status status = session_->rollback(mutations);
  if (can().rollback) {
    ASSERT_TRUE(ok(status));
  } else {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::unsupported);
  }
  EXPECT_EQ(get(1), "before");
  EXPECT_EQ(get(2), "(none)");
}

TEST_P(EveryStore, has_everything_after_a_reopen) {
  std::map<std::uint64_t, std::string> model;
  const std::uint32_t seed = 20'261'130;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t n = random() % 64;
    if (random() % 4 == 0) {
      ASSERT_TRUE(ok(session_->erase(key(n))));
      model.erase(n);
    } else {
      model[n] = std::string(random() % 300, static_cast<char>('a' + i % 26));
      put(n, model[n]);
    }
    if (i % 50 == 49) reopen();
  }
  ASSERT_TRUE(ok(store_->sync()));
  ASSERT_TRUE(ok(store_->checkpoint()));
  ASSERT_TRUE(ok(store_->settle()));
  reopen();
  for (std::uint64_t n = 0; n < 64; ++n) {
    EXPECT_EQ(get(n), model.contains(n) ? model[n] : "(none)") << n;
  }
}

TEST_P(EveryStore, reports_its_footprint_and_settings) {
  put(1, std::string(100'000, 'v'));
  ASSERT_TRUE(ok(store_->sync()));
  const Result<Footprint> footprint = store_->footprint();
  ASSERT_TRUE(footprint);
  EXPECT_GE(footprint->files, 1U);
  EXPECT_GE(footprint->allocated_bytes, 100'000U);
  const Result<Settings> settings = store_->effective_settings();
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_FALSE(settings->empty());
  EXPECT_FALSE(store_->counters().empty());
}

TEST_P(EveryStore, serves_many_sessions_at_once) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 40;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Result<std::unique_ptr<Session>> session = store_->session();
      if (!session) {
        ++failures;
        return;
      }
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const std::string mine = key(t * kEach + i);
        if (!(*session)->put(mine, std::to_string(t))) ++failures;
        if (read(**session, mine) != std::to_string(t)) ++failures;
        const std::string shared = read(**session, key(((t + 1) % kThreads) * kEach + i));
        if (shared != "(none)" && shared != std::to_string((t + 1) % kThreads)) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  for (std::uint64_t n = 0; n < kThreads * kEach; ++n) EXPECT_EQ(get(n), std::to_string(n / kEach));
}

class EveryOrderedStore : public EveryStore {
 protected:
  Entries scan(const ScanRange& range, std::size_t stop_after = SIZE_MAX) {
    Collector collector(stop_after);
    const Result<std::uint64_t> visited = session_->scan(range, collector);
    EXPECT_TRUE(visited) << visited.error().message();
    if (visited) {
      EXPECT_EQ(*visited, collector.entries.size());
    }
    return collector.entries;
  }
  [[nodiscard]] Entries expect(const std::vector<std::uint64_t>& numbers) const {
    Entries entries;
    for (const std::uint64_t n : numbers) entries.emplace_back(key(n), std::to_string(n));
    return entries;
  }
};

std::vector<Case> ordered_cases() {
  std::vector<Case> all = cases();
  std::erase_if(
      all, [](const Case& one) { return !find_driver(one.store).value()->capabilities().ordered; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Stores, EveryOrderedStore, ::testing::ValuesIn(ordered_cases()),
                         case_name);

TEST_P(EveryOrderedStore, scans_both_ways_with_inclusive_bounds_and_a_limit) {
  EXPECT_TRUE(scan({}).empty());
  const std::uint64_t high = std::uint64_t{1} << 63;  // the sign bit must not change the order
  const std::vector<std::uint64_t> numbers{2, 4, 6, 255, 256, high, high + 1, UINT64_MAX};
  for (const std::uint64_t n :
       {high + 1, std::uint64_t{6}, std::uint64_t{2}, high, std::uint64_t{256}, std::uint64_t{4},
        UINT64_MAX, std::uint64_t{255}}) {
    put(n, std::to_string(n));
  }
  std::vector<std::uint64_t> reversed(numbers.rbegin(), numbers.rend());
  ScanRange all;
  EXPECT_EQ(scan(all), expect(numbers));
  all.backward = true;
  EXPECT_EQ(scan(all), expect(reversed));

  const std::string four = key(4);
  const std::string five = key(5);
  const std::string top = key(high);
  ScanRange range{.first = four, .last = top, .from_start = false, .to_end = false};
  EXPECT_EQ(scan(range), expect({4, 6, 255, 256, high}));
  range.backward = true;
  EXPECT_EQ(scan(range), expect({high, 256, 255, 6, 4}));
  range.limit = 2;
  EXPECT_EQ(scan(range), expect({high, 256}));
  range = {.first = five, .last = five, .from_start = false, .to_end = false};
  EXPECT_TRUE(scan(range).empty());
  range = {.last = five, .from_start = true, .to_end = false, .backward = true};
  EXPECT_EQ(scan(range), expect({4, 2}));
  range = {.first = five, .from_start = false, .limit = 3};
  EXPECT_EQ(scan(range), expect({6, 255, 256}));
  EXPECT_EQ(scan({}, 2), expect({2, 4}));  // the sink has had enough
  const std::string beyond = key(UINT64_MAX - 1);
  range = {.last = beyond, .from_start = true, .to_end = false, .backward = true, .limit = 1};
  EXPECT_EQ(scan(range), expect({high + 1}));
}

class WritingSink final : public ScanSink {
 public:
  WritingSink(Session& writer, std::string key) : writer_(writer), key_(std::move(key)) {}
  bool entry(std::string_view, std::string_view value) override {
    if (visited_++ == 0) {
      EXPECT_TRUE(ok(writer_.put(key_, "written meanwhile")));
    }
    EXPECT_NE(value, "written meanwhile");
    return true;
  }

 private:
  Session& writer_;
  std::string key_;
  int visited_ = 0;
};

TEST_P(EveryOrderedStore, scans_a_snapshot_that_a_writer_does_not_change) {
  for (std::uint64_t n = 0; n < 10; ++n) put(n, "old");
  const std::unique_ptr<Session> writer = new_session(*store_);
  WritingSink sink(*writer, key(9));
  const Result<std::uint64_t> visited = session_->scan({}, sink);
  ASSERT_TRUE(visited);
  EXPECT_EQ(*visited, 10U);
  EXPECT_EQ(get(9), "written meanwhile");
}

TEST(NullStore, accepts_everything_and_keeps_nothing) {
  const Driver& driver = *find_driver("null").value();
  EXPECT_FALSE(driver.capabilities().retains_data);
  EXPECT_TRUE(driver.capabilities().reference);
  OpenOptions options;
  const std::unique_ptr<Store> store = open_store("null", options);
  const std::unique_ptr<Session> session = new_session(*store);
  const Mutation mutation{Mutation::Kind::put, "k", "v"};
  EXPECT_TRUE(ok(session->put("k", "v")));
  EXPECT_TRUE(ok(session->erase("k")));
  EXPECT_TRUE(ok(session->apply({&mutation, 1})));
  EXPECT_TRUE(ok(session->rollback({&mutation, 1})));
  EXPECT_EQ(read(*session, "k"), "(none)");
  Collector collector;
  EXPECT_EQ(session->scan({}, collector).value(), 0U);
}

TEST(NullStore, answers_every_get_with_a_value_of_the_declared_size) {
  OpenOptions options;
  options.value_bytes = 100;
  const std::unique_ptr<Store> store = open_store("null", options);
  const std::unique_ptr<Session> session = new_session(*store);
  EXPECT_EQ(read(*session, "any").size(), 100U);
  EXPECT_EQ(read(*session, "other").size(), 100U);
}

TEST(Registry, names_the_nearest_store) {
  const auto names = store_names();
  for (const char* name : {"sqlite", "rocksdb", "lmdb", "raw-file", "null"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
  const Result<const Driver*> driver = find_driver("rockdb");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(driver.error().message().find("did you mean \"rocksdb\"?"), std::string::npos);
}

TEST(Registry, reports_versions_at_run_time) {
  EXPECT_EQ(find_driver("sqlite").value()->version().substr(0, 2), "3.");
  EXPECT_EQ(find_driver("lmdb").value()->version().substr(0, 2), "0.");
  EXPECT_NE(find_driver("rocksdb").value()->version().find('.'), std::string::npos);
}

}  // namespace
}  // namespace assay
