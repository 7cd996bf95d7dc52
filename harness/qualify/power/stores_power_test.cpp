// Level F on the stores of the tree at a small scale: what is known to be lost is found to be lost,
// and what is safe loses nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/qualify/power/explore.h"
#include "harness/qualify/power/store_life.h"

namespace assay::qualify::power {
namespace {

struct Case {
  const char* name;
  const char* store;
  Settings settings;
  Profile profile;
  Loss at_most;   ///< the contract
  Loss at_least;  ///< what has to be reached
};

std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.name;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

/// Few where a state is dear: a test in continuous integration has to see the mistake, not to prove
/// its absence. scripts/qualify-full asks for many.
std::uint64_t states_of(const Case& each) {
  if (each.store == std::string("rocksdb")) return 40;
  return each.name == std::string("lode_defaults") ? 24 : 200;
}

class StorePower : public testing::TestWithParam<Case> {};

TEST_P(StorePower, ReachesWhatItsSettingMayLoseAndNoMore) {
  const Case& each = GetParam();
  const TemporaryDirectory home;
  const auto driver = find_driver(each.store);
  ASSERT_TRUE(driver) << driver.error().message();
  const auto shape = shape_for((*driver)->capabilities(), 1);
  ASSERT_TRUE(shape) << shape.error().message();
  const History history(7, *shape);
  LifeOfStore life;
  life.driver = *driver;
  life.options.directory = home.path();
  life.options.durability = DurabilityClass::power;
  life.options.settings = each.settings;
  life.options.memory_bytes = 16U << 20;
  life.history = &history;
  life.transactions = from_environment("ASSAY_TEST_TRANSACTIONS", 24);
  const auto recorded = record_store(life);
  ASSERT_TRUE(recorded) << recorded.error().message();

  const auto states = make_state_directory(home.path());
  ASSERT_TRUE(states);
  ExplorePlan plan;
  plan.profile = each.profile;
  plan.states_max = from_environment("ASSAY_TEST_STATES", states_of(each));
  plan.allowed = each.at_most;
  plan.pool.directory = *states;
  plan.pool.check = check_of(life);
  const auto found = explore(recorded->trace, recorded->receipts, plan);
  std::filesystem::remove_all(*states);
  ASSERT_TRUE(found) << found.error().message();
  fmt::print(
      "{}: {} events, {} cuts, {} built, {} distinct, {} checked in {:.2f} s ({:.0f}/s), "
      "built in {:.2f} s, worst {}, lost at most {}, pending at most {}\n",
      each.name, recorded->trace.events.size(), found->cuts, found->built, found->distinct,
      found->checked, found->seconds_checking,
      static_cast<double>(found->checked) / found->seconds_checking, found->seconds_building,
      to_string(found->worst), found->lost_most, found->pending_most);
  for (const Failure& failure : found->kept_failures) {
    ADD_FAILURE() << to_string(failure.choice.kind) << " at cut " << failure.choice.cut << ": "
                  << to_string(failure.judgement.loss) << ": "
                  << (failure.judgement.findings.empty() ? "" : failure.judgement.findings[0].text);
  }
  EXPECT_GE(found->worst, each.at_least);
  EXPECT_GT(found->checked, 20U);
}

/// SQLite writes random numbers into its files: they must decide nothing.
TEST(Explore, LooksAtTheSameStatesOfTwoRecordingsOfOneHistory) {
  std::vector<Exploration> found;
  for (int recording = 0; recording < 2; ++recording) {
    const TemporaryDirectory home;
    const auto driver = find_driver("sqlite");
    ASSERT_TRUE(driver);
    const History history(7, *shape_for((*driver)->capabilities(), 1));
    LifeOfStore life;
    life.driver = *driver;
    life.options.directory = home.path();
    life.options.settings = {{"journal_mode", "delete"}, {"synchronous", "full"}};
    life.options.memory_bytes = 16U << 20;
    life.history = &history;
    life.transactions = 10;
    const auto recorded = record_store(life);
    ASSERT_TRUE(recorded) << recorded.error().message();
    const auto states = make_state_directory(home.path());
    ASSERT_TRUE(states);
    ExplorePlan plan;
    plan.profile = Profile::strict;
    plan.states_max = 120;
    plan.allowed = Loss::last;
    plan.pool.directory = *states;
    plan.pool.check = check_of(life);
    auto one = explore(recorded->trace, recorded->receipts, plan);
    std::filesystem::remove_all(*states);
    ASSERT_TRUE(one) << one.error().message();
    found.push_back(std::move(*one));
  }
  EXPECT_EQ(found[0].distinct, found[1].distinct);
  EXPECT_EQ(found[0].by_loss, found[1].by_loss);
  EXPECT_EQ(found[0].worst, Loss::last) << "the states of its own syncs come first";
}

const Settings kWalFull{{"journal_mode", "wal"}, {"synchronous", "full"}};
const Settings kWalNormal{{"journal_mode", "wal"}, {"synchronous", "normal"}};
const Settings kWalOff{{"journal_mode", "wal"}, {"synchronous", "off"}};
const Settings kDeleteExtra{{"journal_mode", "delete"}, {"synchronous", "extra"}};
const Settings kDeleteFull{{"journal_mode", "delete"}, {"synchronous", "full"}};
const Settings kTruncateFull{{"journal_mode", "truncate"}, {"synchronous", "full"}};
const Settings kPersistFull{{"journal_mode", "persist"}, {"synchronous", "full"}};
const Settings kNoJournal{{"journal_mode", "off"}, {"synchronous", "full"}};
const Settings kWritemap{{"writemap", "on"}, {"map_bytes", "4194304"}};
const Settings kMapasync{{"writemap", "on"}, {"mapasync", "on"}, {"map_bytes", "4194304"}};
const Settings kSmallLog{{"log_segment_bytes", "65536"}};
const Settings kSmallBuffered{{"durability", "buffered"}, {"log_segment_bytes", "65536"}};
const Settings kSmallRaw{{"segment_bytes", "65536"}, {"prepare_bytes", "65536"}};
const Settings kRawUnsynced{
    {"method", "none"}, {"segment_bytes", "65536"}, {"prepare_bytes", "65536"}};

const Case kCases[] = {
    {"raw_file", "raw-file", kSmallRaw, Profile::strict, Loss::intact, Loss::intact},
    {"raw_file_unsynced", "raw-file", kRawUnsynced, Profile::ordered, Loss::suffix, Loss::suffix},
    {"sqlite_wal_full", "sqlite", kWalFull, Profile::strict, Loss::intact, Loss::intact},
    {"sqlite_wal_full_btrfs", "sqlite", kWalFull, Profile::btrfs, Loss::intact, Loss::intact},
    {"sqlite_wal_normal", "sqlite", kWalNormal, Profile::ordered, Loss::suffix, Loss::suffix},
    {"sqlite_wal_off", "sqlite", kWalOff, Profile::ordered, Loss::unopenable, Loss::suffix},
    {"sqlite_delete_extra", "sqlite", kDeleteExtra, Profile::strict, Loss::intact, Loss::intact},
    {"sqlite_delete_full", "sqlite", kDeleteFull, Profile::strict, Loss::last, Loss::last},
    {"sqlite_truncate_full", "sqlite", kTruncateFull, Profile::strict, Loss::intact, Loss::intact},
    {"sqlite_persist_full", "sqlite", kPersistFull, Profile::strict, Loss::intact, Loss::intact},
    {"sqlite_no_journal", "sqlite", kNoJournal, Profile::ordered, Loss::unopenable, Loss::suffix},
    {"lmdb", "lmdb", {}, Profile::strict, Loss::intact, Loss::intact},
    {"lmdb_writemap", "lmdb", kWritemap, Profile::strict, Loss::intact, Loss::intact},
    {"lmdb_nometasync", "lmdb", {{"sync", "nometasync"}}, Profile::ordered, Loss::last, Loss::last},
    {"lmdb_nosync", "lmdb", {{"sync", "nosync"}}, Profile::ordered, Loss::unopenable, Loss::suffix},
    {"lmdb_mapasync", "lmdb", kMapasync, Profile::ordered, Loss::unopenable, Loss::suffix},
    {"lode", "lode", kSmallLog, Profile::strict, Loss::intact, Loss::intact},
    {"lode_buffered", "lode", kSmallBuffered, Profile::strict, Loss::suffix, Loss::suffix},
    {"lode_defaults", "lode", {}, Profile::ordered, Loss::intact, Loss::intact},
    {"rocksdb", "rocksdb", {}, Profile::ordered, Loss::intact, Loss::intact},
    {"rocksdb_strict", "rocksdb", {}, Profile::strict, Loss::intact, Loss::intact},
    {"rocksdb_unsynced",
     "rocksdb",
     {{"sync", "off"}},
     Profile::ordered,
     Loss::suffix,
     Loss::suffix},
};

INSTANTIATE_TEST_SUITE_P(Settings, StorePower, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace assay::qualify::power
