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
  DurabilityClass durability;
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
  life.options.durability = each.durability;
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
  plan.states_max = from_environment("ASSAY_TEST_STATES", 300);
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

constexpr auto kPower = DurabilityClass::power;
const Case kCases[] = {
    {"raw_file", "raw-file", kPower, {}, Profile::strict, Loss::intact, Loss::intact},
    {"sqlite_wal_full",
     "sqlite",
     kPower,
     {{"journal_mode", "WAL"}, {"synchronous", "FULL"}},
     Profile::ordered,
     Loss::intact,
     Loss::intact},
    {"sqlite_wal_normal",
     "sqlite",
     kPower,
     {{"journal_mode", "WAL"}, {"synchronous", "NORMAL"}},
     Profile::ordered,
     Loss::suffix,
     Loss::suffix},
    {"sqlite_wal_off",
     "sqlite",
     kPower,
     {{"journal_mode", "WAL"}, {"synchronous", "OFF"}},
     Profile::ordered,
     Loss::unopenable,
     Loss::suffix},
    {"sqlite_delete_extra",
     "sqlite",
     kPower,
     {{"journal_mode", "DELETE"}, {"synchronous", "EXTRA"}},
     Profile::strict,
     Loss::intact,
     Loss::intact},
    {"sqlite_delete_full",
     "sqlite",
     kPower,
     {{"journal_mode", "DELETE"}, {"synchronous", "FULL"}},
     Profile::strict,
     Loss::last,
     Loss::last},
    {"lmdb", "lmdb", kPower, {}, Profile::strict, Loss::intact, Loss::intact},
    {"lode",
     "lode",
     kPower,
     {{"log_segment_bytes", "65536"}},
     Profile::strict,
     Loss::intact,
     Loss::intact},
    {"rocksdb", "rocksdb", kPower, {}, Profile::ordered, Loss::intact, Loss::intact},
};

INSTANTIATE_TEST_SUITE_P(Settings, StorePower, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace assay::qualify::power
