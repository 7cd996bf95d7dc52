// Syncs that a store needs are told from those that it does not.
#include "harness/qualify/power/barrier_audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/qualify/power/store_life.h"

namespace assay::qualify::power {
namespace {

std::vector<SyncSite> audit(const std::string& store, const Settings& settings) {
  const TemporaryDirectory home;
  const auto states = make_state_directory(home.path());
  const auto driver = find_driver(store);
  const History history(7, *shape_for((*driver)->capabilities(), 1));
  LifeOfStore life;
  life.driver = *driver;
  life.options.directory = home.path();
  life.options.settings = settings;
  life.options.memory_bytes = 16U << 20;
  life.history = &history;
  life.transactions = 16;
  life.checkpoint_every = 8;
  const auto recorded = record_store(life);
  EXPECT_TRUE(recorded) << (recorded ? "" : recorded.error().message());
  if (!recorded) return {};
  ExplorePlan plan;
  plan.profile = Profile::strict;
  const char* const given = std::getenv("ASSAY_TEST_STATES");
  plan.states_max = given == nullptr ? 150 : std::strtoull(given, nullptr, 10);
  plan.pool.directory = *states;
  plan.pool.check = check_of(life);
  const auto sites = audit_barriers(recorded->trace, recorded->receipts, plan);
  std::filesystem::remove_all(*states);
  EXPECT_TRUE(sites) << (sites ? "" : sites.error().message());
  if (!sites) return {};
  for (const SyncSite& site : *sites) {
    fmt::print("{} {}: {} uses, {} states, worst {}; {}\n",
               site.necessary ? "necessary" : "redundant", site.call, site.uses, site.states,
               to_string(site.worst), site.stack.size() > 1 ? site.stack[1] : "");
  }
  return *sites;
}

bool needs(const std::vector<SyncSite>& sites, const std::string& file) {
  return std::ranges::any_of(sites, [&](const SyncSite& site) {
    return site.necessary && site.call.find(file) != std::string::npos;
  });
}

TEST(BarrierAudit, FindsThatSqliteNeedsTheSyncOfItsLogAndOfItsDatabase) {
  const auto sites = audit("sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}});
  EXPECT_TRUE(needs(sites, "-wal"));
  EXPECT_TRUE(std::ranges::any_of(sites, [](const SyncSite& site) {
    return site.necessary && site.call.find("-wal") == std::string::npos;
  }));
}

TEST(BarrierAudit, FindsThatLmdbNeedsBothItsSyncAndItsSynchronousWrite) {
  const auto sites = audit("lmdb", {});
  EXPECT_EQ(std::ranges::count_if(sites, [](const SyncSite& site) { return site.necessary; }), 2);
}

}  // namespace
}  // namespace assay::qualify::power
