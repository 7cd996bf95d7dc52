#include "workloads/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workloads/memory_session.h"

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 42;
using Entries = std::vector<std::pair<std::string, std::string>>;

/// A workload, a store in memory that went through it, and the model that followed.
struct Trial {
  explicit Trial(const std::string& toml)
      : workload(parse(toml)), session(), model(workload, kSeed), keys(workload.keys, kSeed) {}

  static Workload parse(const std::string& toml) {
    auto workload = parse_workload(toml, "test.toml");
    if (!workload) check_failed(__FILE__, __LINE__, "parse", workload.error().message());
    return *workload;
  }
  /// Runs at most `operations` of every thread of a phase, a few of each thread in turn.
  void run(std::size_t phase, std::uint64_t operations = ~std::uint64_t{0}) {
    const std::uint32_t threads = thread_count(workload.phases[phase]);
    std::vector<std::unique_ptr<Stream>> streams;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      streams.push_back(make_stream(workload, kSeed, phase, thread));
    }
    Executed done{phase, std::vector<std::uint64_t>(threads)};
    bool more = true;
    while (more) {
      more = false;
      for (std::uint32_t thread = 0; thread < threads; ++thread) {
        Chunk chunk;
        const std::uint64_t left = operations - done.operations[thread];
        if (left == 0) continue;
        streams[thread]->fill(chunk, std::min<std::uint64_t>(7, left));
        for (const Operation& operation : chunk.operations) execute(operation, chunk, session);
        done.operations[thread] += chunk.operations.size();
        more = more || !chunk.operations.empty();
      }
    }
    model.apply(done);
    executed.push_back(done);
  }
  ModelCheck check(bool ordered = true) {
    auto result = model.check(session, ordered);
    EXPECT_TRUE(result);
    return *result;
  }
  std::string key(std::uint64_t index) const {
    std::string bytes(keys.size(), '\0');
    keys.encode(index, bytes.data());
    return bytes;
  }

  Workload workload;
  MemorySession session;
  std::vector<Executed> executed;
  Model model;
  KeyCodec keys;
};

const std::string kMixed = R"(
name = "mixed"
[keys]
count = 1000
[values]
sizes = "uniform"
min_bytes = 20
max_bytes = 90
[[phases]]
kind = "load"
load_batch = 50
load_threads = 2
[[phases]]
kind = "run"
duration_ms = 10
[[phases.roles]]
name = "writers"
threads = 3
batch_keys = 5
[phases.roles.mix]
read = 1
update = 3
insert = 1
erase = 1
batch = 0.2
rollback = 0.2
read_modify_write = 0.5
[[phases.roles]]
name = "one"
mix = { update = 1 }
distribution = { kind = "zipfian" }
[[phases]]
kind = "run"
name = "more"
operations = 300
[[phases.roles]]
threads = 2
mix = { insert = 1, erase = 1 }
)";

TEST(Model, agrees_with_a_store_after_every_phase) {
  Trial trial(kMixed);
  trial.run(0);
  EXPECT_EQ(trial.model.entries(), 1000U);
  EXPECT_TRUE(trial.check().ok);
  trial.run(1, 2000);
  trial.run(2);
  EXPECT_EQ(trial.model.entries(), trial.session.entries.size());
  EXPECT_NE(trial.model.entries(), 1000U);
  for (const bool ordered : {true, false}) {
    const ModelCheck check = trial.check(ordered);
    EXPECT_TRUE(check.ok) << check.first_difference;
    EXPECT_EQ(check.entries, trial.session.entries.size());
    EXPECT_EQ(check.digest, check.expected_digest);
  }
}

TEST(Model, follows_a_phase_that_was_cut_short) {
  for (const std::uint64_t operations : {0ULL, 1ULL, 13ULL, 257ULL}) {
    Trial trial(kMixed);
    trial.run(0, operations);
    trial.run(1, operations);
    const ModelCheck check = trial.check();
    EXPECT_TRUE(check.ok) << operations << ": " << check.first_difference;
  }
}

TEST(Model, one_operation_more_or_less_is_noticed) {
  for (const std::int64_t off : {-1, 1}) {
    Trial trial(R"(
name = "updates"
[keys]
count = 100
[[phases]]
kind = "load"
[[phases]]
kind = "run"
duration_ms = 1
[[phases.roles]]
mix = { update = 1 }
)");
    trial.run(0);
    trial.run(1, 500);
    Model told_wrong(trial.workload, kSeed);
    told_wrong.apply({0, {1}});
    told_wrong.apply({1, {static_cast<std::uint64_t>(500 + off)}});
    const auto check = told_wrong.check(trial.session, true);
    ASSERT_TRUE(check);
    EXPECT_FALSE(check->ok) << off;
  }
}

TEST(Model, another_seed_is_noticed) {
  Trial trial(kMixed);
  trial.run(0);
  Model other(trial.workload, kSeed + 1);
  other.apply({0, {10, 10}});
  EXPECT_FALSE(other.check(trial.session, true)->ok);
}

/// Each fault a store could have, and what must be said about it.
struct Fault {
  const char* name;
  void (*plant)(Trial&);
  const char* sentence;  ///< part of the first difference
  bool by_gets;          ///< a check by gets can see it too
};

void scan_of(Trial& trial, std::function<void(Entries&)> change) {
  trial.session.scan_fault = std::move(change);
}

const Fault kFaults[] = {
    {"a flipped bit in a value",
     [](Trial& trial) {
       std::string& value = trial.session.entries[trial.key(5)];
       value.back() = static_cast<char>(value.back() ^ 1);
     },
     "is not the version last acknowledged (an update was lost or undone) or is damaged", true},
    {"a value of another key",
     [](Trial& trial) {
       trial.session.entries[trial.key(5)] = trial.session.entries[trial.key(6)];
     },
     "is of no version of that key", true},
    {"a value cut short", [](Trial& trial) { trial.session.entries[trial.key(5)].pop_back(); },
     "is another version of that key", true},
    {"an empty value", [](Trial& trial) { trial.session.entries[trial.key(5)].clear(); },
     "0 bytes found", true},
    {"a lost key", [](Trial& trial) { trial.session.entries.erase(trial.key(7)); },
     "of index 7 is lost: it was acknowledged and is not there", true},
    {"the last key in order is lost",
     [](Trial& trial) { trial.session.entries.erase(std::prev(trial.session.entries.end())); },
     "is lost", true},
    {"a key that nobody wrote",
     [](Trial& trial) { trial.session.entries[trial.key(123'456)] = "boo"; },
     "is there, but was never written or was deleted", false},
    {"bytes that are no key", [](Trial& trial) { trial.session.entries["nonsense"] = "boo"; }, "",
     false},
    {"a key of another length", [](Trial& trial) { trial.session.entries["x"] = "boo"; },
     "no key of this workload has these bytes", false},
    {"a scan out of order",
     [](Trial& trial) {
       scan_of(trial, [](Entries& entries) { std::swap(entries[3], entries[4]); });
     },
     "the scan is out of order", false},
    {"a scan that repeats an entry",
     [](Trial& trial) {
       scan_of(trial, [](Entries& entries) { entries.insert(entries.begin() + 3, entries[3]); });
     },
     "the scan is out of order", false},
    {"a scan that ends early",
     [](Trial& trial) { scan_of(trial, [](Entries& entries) { entries.pop_back(); }); }, "is lost",
     false},
    {"a scan that starts late",
     [](Trial& trial) { scan_of(trial, [](Entries& entries) { entries.erase(entries.begin()); }); },
     "is lost", false},
};

TEST(Model, finds_and_names_every_planted_fault) {
  for (const Fault& fault : kFaults) {
    for (const bool ordered : {true, false}) {
      if (!ordered && !fault.by_gets) continue;
      Trial trial(kMixed);
      trial.run(0);
      fault.plant(trial);
      const ModelCheck check = trial.check(ordered);
      EXPECT_FALSE(check.ok) << fault.name;
      EXPECT_NE(check.first_difference.find(fault.sentence), std::string::npos)
          << fault.name << ": " << check.first_difference;
      EXPECT_EQ(check.first_difference.find('\n'), std::string::npos);
      if (std::string_view(fault.name).find("scan") == std::string_view::npos || !ordered) {
        EXPECT_NE(check.digest, check.expected_digest) << fault.name;
      }
    }
  }
}

/// The same workload over keys of every form.
std::string with_keys(const std::string& keys) {
  std::string text = kMixed;
  const std::string declared = "count = 1000\n";
  return text.replace(text.find(declared), declared.size(), keys);
}

TEST(Model, says_the_same_in_many_ranges_as_in_one) {
  for (const char* keys : {"count = 1000\n", "count = 1000\norder = \"ordered\"\n",
                           "count = 1000\nkind = \"bytes\"\nbytes = 20\nprefix = \"user\"\n",
                           "count = 1000\nkind = \"bytes\"\nbytes = 9\norder = \"ordered\"\n"}) {
    std::vector<const Fault*> faults{nullptr};
    for (const Fault& fault : kFaults)
      if (std::string_view(fault.name).find("scan") == std::string_view::npos)
        faults.push_back(&fault);
    for (const Fault* fault : faults) {
      Trial trial(with_keys(keys));
      trial.run(0);
      trial.run(1, 400);
      trial.run(2);
      Model ranges(trial.workload, kSeed, 3500);  // 192 keys a range
      for (const Executed& executed : trial.executed) ranges.apply(executed);
      EXPECT_EQ(ranges.entries(), trial.session.entries.size());
      if (fault != nullptr) {
        for (const std::uint64_t index : {5U, 6U, 7U}) {  // some phase may have erased them
          if (!trial.session.entries.contains(trial.key(index))) fault = nullptr;
        }
      }
      if (fault != nullptr) fault->plant(trial);
      for (const bool ordered : {true, false}) {
        if (!ordered && fault != nullptr && !fault->by_gets) continue;
        const ModelCheck one = trial.check(ordered);
        const auto many = ranges.check(trial.session, ordered);
        ASSERT_TRUE(many) << many.error().message();
        EXPECT_EQ(many->ok, fault == nullptr) << many->first_difference;
        EXPECT_EQ(many->ok, one.ok) << one.first_difference;
        EXPECT_EQ(many->entries, one.entries);
        EXPECT_EQ(many->expected_entries, one.expected_entries);
        EXPECT_EQ(many->digest, one.digest);
        EXPECT_EQ(many->expected_digest, one.expected_digest);
        if (ordered) {
          EXPECT_EQ(many->first_difference, one.first_difference);
        }
      }
    }
  }
}

TEST(Model, notices_a_scan_of_a_range_that_shows_keys_outside_of_it) {
  Trial trial(kMixed);
  trial.run(0);
  Model ranges(trial.workload, kSeed, 300);
  for (const Executed& executed : trial.executed) ranges.apply(executed);
  const Entries all(trial.session.entries.begin(), trial.session.entries.end());
  scan_of(trial, [all](Entries& entries) { entries = all; });
  const auto check = ranges.check(trial.session, true);
  ASSERT_TRUE(check);
  EXPECT_FALSE(check->ok);
  EXPECT_NE(check->first_difference.find("lies outside of it"), std::string::npos)
      << check->first_difference;
}

TEST(VersionTable, takes_a_bounded_memory_whatever_the_number_of_keys) {
  const VersionTable huge(100'000'000, Model::kTableBytes);
  EXPECT_LE(huge.bytes(), std::size_t{16} << 20);
  EXPECT_GE(huge.capacity(), 700'000U);
  EXPECT_LT(VersionTable(100, Model::kTableBytes).bytes(), 10'000U);
}

TEST(VersionTable, holds_what_was_put_until_it_is_full) {
  VersionTable table(1000, Model::kTableBytes);
  ASSERT_GE(table.capacity(), 1000U);
  for (std::uint64_t key = 0; key < table.capacity(); ++key)
    ASSERT_TRUE(table.put(key * 1'000'003, static_cast<std::uint32_t>(key)));
  EXPECT_FALSE(table.put(1, 1));
  EXPECT_TRUE(table.put(1'000'003, 77));
  EXPECT_EQ(table.version_of(1'000'003), 77U);
  EXPECT_EQ(table.version_of(2'000'006), 2U);
  EXPECT_EQ(table.version_of(1), 0U);
  EXPECT_TRUE(table.mark(2'000'006));
  EXPECT_FALSE(table.mark(2'000'006));
  table.put_all_below(2'000'006, 5);
  EXPECT_EQ(table.version_of(1'000'003), 5U);
  EXPECT_EQ(table.version_of(2'000'006), 2U);
  table.clear();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.version_of(2'000'006), 0U);
}

TEST(Model, finds_a_stale_version) {
  Trial trial(kMixed);
  trial.run(0);
  const auto old = trial.session.entries;
  trial.run(1, 500);
  std::string changed;
  for (const auto& [key, value] : trial.session.entries) {
    const auto before = old.find(key);
    if (before != old.end() && before->second != value) changed = key;
  }
  ASSERT_FALSE(changed.empty());
  trial.session.entries[changed] = old.at(changed);
  for (const bool ordered : {true, false}) {
    const ModelCheck check = trial.check(ordered);
    EXPECT_FALSE(check.ok);
    EXPECT_NE(check.first_difference.find("an update was lost or undone"), std::string::npos)
        << check.first_difference;
  }
}

TEST(Model, finds_a_deleted_key_that_is_back) {
  Trial trial(kMixed);
  trial.run(0);
  const auto old = trial.session.entries;
  trial.run(1, 500);
  for (const auto& [key, value] : old) {
    if (!trial.session.entries.contains(key)) {
      trial.session.entries[key] = value;
      break;
    }
  }
  for (const bool ordered : {true, false}) {
    const ModelCheck check = trial.check(ordered);
    EXPECT_FALSE(check.ok);
    EXPECT_NE(check.first_difference.find("was deleted or not yet written"), std::string::npos)
        << check.first_difference;
  }
}

TEST(Model, finds_a_rollback_that_left_something) {
  Trial trial(R"(
name = "rollbacks"
[keys]
count = 100
[[phases]]
kind = "load"
[[phases]]
kind = "run"
operations = 20
[[phases.roles]]
mix = { rollback = 1 }
batch_keys = 3
)");
  trial.run(0);
  trial.run(1);
  EXPECT_TRUE(trial.check().ok);
  Chunk chunk;
  make_stream(trial.workload, kSeed, 1, 0)->fill(chunk);
  const Mutation& mutation = chunk.mutations[4];
  ASSERT_TRUE(trial.session.put(mutation.key, mutation.value));
  EXPECT_FALSE(trial.check().ok);
}

TEST(Model, finds_a_batch_of_which_a_part_is_missing) {
  Trial trial(R"(
name = "batches"
[keys]
count = 100
[[phases]]
kind = "run"
operations = 1
[[phases.roles]]
mix = { batch = 1 }
batch_keys = 10
)");
  trial.run(0);
  EXPECT_TRUE(trial.check().ok);
  trial.session.entries.erase(trial.session.entries.begin());
  EXPECT_NE(trial.check().first_difference.find("is lost"), std::string::npos);
}

TEST(Model, works_for_small_byte_keys_and_empty_values) {
  Trial trial(R"(
name = "tiny"
[keys]
count = 200
kind = "bytes"
bytes = 1
[values]
bytes = 0
[[phases]]
kind = "load"
[[phases]]
kind = "run"
operations = 100
[[phases.roles]]
mix = { erase = 1, update = 1 }
)");
  trial.run(0);
  trial.run(1);
  const ModelCheck check = trial.check();
  EXPECT_TRUE(check.ok) << check.first_difference;
  EXPECT_LT(check.entries, 200U);
}

TEST(Model, passes_on_an_error_of_the_store) {
  class Broken final : public Session {
   public:
    Result<bool> get(std::string_view, std::string_view&) override {
      return fail(ErrorKind::store, "broken");
    }
    Status put(std::string_view, std::string_view) override { return {}; }
    Status erase(std::string_view) override { return {}; }
    Status apply(std::span<const Mutation>) override { return {}; }
    Status rollback(std::span<const Mutation>) override { return {}; }
    Result<std::uint64_t> scan(const ScanRange&, ScanSink&) override {
      return fail(ErrorKind::store, "broken");
    }
  } broken;
  Trial trial(kMixed);
  trial.run(0);
  EXPECT_FALSE(trial.model.check(broken, true));
  EXPECT_FALSE(trial.model.check(broken, false));
}

}  // namespace
}  // namespace assay
