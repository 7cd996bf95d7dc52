// Level F has teeth: each classic mistake of a storage engine is found, at the weakest profile
// under which it can do harm, as a failure of few lost calls; and the engine without it passes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "adapters/temporary_directory.h"
#include "harness/qualify/power/minimise.h"
#include "harness/qualify/power/nested.h"
#include "harness/qualify/power/store_life.h"
#include "harness/qualify/power/toy/toy_store.h"

namespace assay::qualify::power {
namespace {

using toy::log_engine;
using toy::slot_engine;
using toy::undo_engine;

struct Mistake;
std::ostream& operator<<(std::ostream& out, const Mistake& mistake);

struct Mistake {
  std::string name;
  toy::MakeEngine engine;
  toy::Mistakes mistakes;
  Profile caught_under = Profile::prefix;    ///< the profile with the most guarantees that shows it
  std::optional<Profile> passes_under = {};  ///< one where it does no harm
  Loss at_least = Loss::last;
  bool creation = false;
  std::uint64_t fail_sync = 0;
  bool in_recovery = false;  ///< shows only when the recovery is cut, too
};

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.name;
}

/// What `otherwise` says, unless the environment asks for more: scripts/qualify-full does.
std::uint64_t states(std::uint64_t otherwise) {
  const char* const given = std::getenv("ASSAY_TEST_STATES");
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

class Bench {
 public:
  explicit Bench(const Mistake& mistake) : history_(11, shape()) {
    driver_ = toy::make_driver(mistake.engine, mistake.mistakes);
    life_.driver = driver_.get();
    life_.options.directory = home_.path();
    life_.history = &history_;
    life_.transactions = 13;
    life_.checkpoint_every = 0;
    life_.creation = mistake.creation;
    life_.fail_sync = mistake.fail_sync;
  }

  Result<RecordedLife> record() const { return record_store(life_); }

  [[nodiscard]] ExplorePlan plan(Profile profile) const {
    ExplorePlan plan;
    plan.profile = profile;
    plan.states_max = states(1500);
    plan.stop_at_failure = true;
    plan.pool.directory = states_.path();
    plan.pool.check = check_of(life_);
    plan.pool.timeout = std::chrono::seconds(5);
    return plan;
  }

  [[nodiscard]] const LifeOfStore& life() const { return life_; }

 private:
  static HistoryShape shape() {
    HistoryShape shape;
    shape.keys = 7;
    shape.changes_max = 3;
    shape.value_bytes_max = 900;
    shape.large_permille = 0;
    shape.rollback_permille = 0;
    return shape;
  }
  TemporaryDirectory home_{memory()};
  TemporaryDirectory states_{memory()};
  static std::string memory() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; }
  History history_;
  std::unique_ptr<Driver> driver_;
  LifeOfStore life_;
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> all = {
      // The log and its snapshots.
      {"acknowledges before the sync", log_engine, {"acknowledges-before-sync"}},
      {"keeps commits in a stdio buffer", log_engine, {"stdio-buffer"}},
      {"syncs every second commit only", log_engine, {"syncs-every-second-commit"}},
      {"takes sync_file_range for a sync (sled 1452)", log_engine, {"sync-file-range"}},
      {"takes close for a sync", log_engine, {"close-as-sync"}},
      {"syncs the wrong descriptor", log_engine, {"syncs-the-wrong-descriptor"}, Profile::ordered},
      {"syncs before the end of the record", log_engine, {"syncs-before-the-end-of-the-record"}},
      {"opens another handle as synchronous", log_engine, {"synchronous-on-another-handle"}},
      {"tries a failed sync again",
       log_engine,
       {"tries-a-failed-sync-again"},
       Profile::prefix,
       {},
       Loss::last,
       false,
       20},
      {"reads a log without checksums",
       log_engine,
       {"log-without-checksum"},
       Profile::prefix,
       {},
       Loss::torn},
      {"skips damaged records",
       log_engine,
       {"skips-damaged-records", "syncs-every-second-commit", "records-begin-a-page"},
       Profile::ordered,
       {},
       Loss::hole},
      {"appends behind what a crash left",
       log_engine,
       {"appends-behind-a-crash"},
       Profile::prefix,
       {},
       Loss::intact},
      {"makes a new log without syncing the directory (LevelDB)",
       log_engine,
       {"logs-follow-each-other", "new-log-without-directory-sync"},
       Profile::strict,
       Profile::ordered},
      {"renames a log into place and syncs only its data (etcd 6368)",
       log_engine,
       {"logs-follow-each-other", "log-renamed-into-place", "new-log-without-directory-sync"},
       Profile::strict,
       Profile::ordered},
      {"keeps logs in a folder that is never synced",
       log_engine,
       {"log-in-an-unsynced-folder", "new-log-without-directory-sync"},
       Profile::strict,
       Profile::ordered},
      {"renames a snapshot before it is synced",
       log_engine,
       {"renames-before-sync"},
       Profile::ordered,
       Profile::prefix,
       Loss::unopenable},
      {"overwrites the snapshot in place",
       log_engine,
       {"snapshot-in-place"},
       Profile::prefix,
       {},
       Loss::unopenable},
      {"copies a snapshot and does not sync the copy",
       log_engine,
       {"snapshot-copied-without-sync"},
       Profile::ordered,
       Profile::prefix,
       Loss::unopenable},
      {"believes a snapshot without a checksum that was not synced",
       log_engine,
       {"renames-before-sync", "snapshot-without-checksum"},
       Profile::ordered,
       {},
       Loss::suffix},
      {"empties the log before the snapshot is there",
       log_engine,
       {"log-truncated-before-the-snapshot"},
       Profile::prefix,
       {},
       Loss::suffix},
      {"unlinks the log before the rename is durable (leveldb 189)",
       log_engine,
       {"unlinks-before-the-rename-is-durable"},
       Profile::strict,
       Profile::ordered,
       Loss::suffix},
      {"syncs the directory before the rename",
       log_engine,
       {"directory-synced-before-the-rename"},
       Profile::strict,
       Profile::ordered,
       Loss::suffix},
      {"unlinks and links where it should rename",
       log_engine,
       {"unlinks-and-links"},
       Profile::prefix,
       {},
       Loss::suffix},
      // Two slots and a header.
      {"writes data and header under one sync",
       slot_engine,
       {"one-sync-for-data-and-header"},
       Profile::ordered,
       Profile::prefix,
       Loss::suffix},
      {"writes the header before the data",
       slot_engine,
       {"header-before-the-data"},
       Profile::prefix,
       {},
       Loss::suffix},
      {"does not sync the header", slot_engine, {"header-not-synced"}},
      {"has one header over several sectors",
       slot_engine,
       {"one-header", "torn-header"},
       Profile::prefix,
       {},
       Loss::suffix},
      {"makes the header durable before the file grows (redb 1276)",
       slot_engine,
       {"grows-after-the-header"},
       Profile::prefix,
       {},
       Loss::unopenable,
       true},
      {"stores to a mapping without msync", slot_engine, {"mapping-without-msync"}},
      {"takes an asynchronous msync for a sync", slot_engine, {"asynchronous-msync"}},
      {"syncs another range of the mapping",
       slot_engine,
       {"msync-of-another-range"},
       Profile::ordered},
      // Pages in place and a journal.
      {"has no journal", undo_engine, {"no-journal"}, Profile::prefix, {}, Loss::suffix},
      {"does not sync the journal",
       undo_engine,
       {"journal-not-synced"},
       Profile::ordered,
       {},
       Loss::suffix},
      {"empties the journal before the data are on the disk",
       undo_engine,
       {"journal-emptied-before-the-data"},
       Profile::ordered,
       {},
       Loss::suffix},
      {"does not sync the data",
       undo_engine,
       {"data-not-synced"},
       Profile::ordered,
       {},
       Loss::suffix},
      {"does not make the end of the journal durable",
       undo_engine,
       {"journal-not-emptied-durably"}},
      {"puts back a journal without a checksum",
       undo_engine,
       {"journal-without-checksum"},
       Profile::ordered,
       {},
       Loss::suffix},
      {"empties the journal first when it recovers",
       undo_engine,
       {"recovery-empties-the-journal-first"},
       Profile::prefix,
       {},
       Loss::suffix,
       false,
       0,
       true},
      {"does not sync what it put back",
       undo_engine,
       {"recovery-does-not-sync"},
       Profile::ordered,
       {},
       Loss::suffix,
       false,
       0,
       true},
  };
  return all;
}

class ToyMistake : public testing::TestWithParam<std::size_t> {};

TEST_P(ToyMistake, IsFoundWithFewLostCallsWhereItCanDoHarm) {
  const Mistake& mistake = mistakes()[GetParam()];
  SCOPED_TRACE(mistake.name);
  const Bench bench(mistake);
  const auto recorded = bench.record();
  ASSERT_TRUE(recorded) << recorded.error().message();
  ExplorePlan plan = bench.plan(mistake.caught_under);
  // What loses less is not what this mistake is known for.
  if (mistake.at_least > Loss::intact) {
    plan.allowed = static_cast<Loss>(static_cast<int>(mistake.at_least) - 1);
  }
  const auto found = explore(recorded->trace, recorded->receipts, plan);
  ASSERT_TRUE(found) << found.error().message();
  const RecordedLife* life = &*recorded;
  std::optional<Failure> failure;
  std::optional<NestedExploration> nested;
  if (mistake.in_recovery) {
    EXPECT_EQ(found->failures, 0U) << "it shows without a crash in recovery";
    const TemporaryDirectory again("/dev/shm");
    NestedPlan twice;
    twice.explore = plan;
    twice.recoveries = 60;
    twice.directory = again.path();
    auto looked = explore_nested(bench.life(), recorded->trace, recorded->receipts, twice);
    ASSERT_TRUE(looked) << looked.error().message();
    nested = std::move(*looked);
    ASSERT_FALSE(nested->failures.empty());
    life = &nested->failures[0].recovery;
    failure = nested->failures[0].failure;
  } else {
    ASSERT_FALSE(found->kept_failures.empty()) << found->checked << " states";
    failure = found->kept_failures[0];
  }
  const auto small = minimise(life->trace, life->receipts, plan, *failure);
  ASSERT_TRUE(small) << small.error().message();
  EXPECT_TRUE(small->reproduced);
  EXPECT_GE(small->judgement.loss, mistake.at_least);
  EXPECT_LT(small->lost.size(), 10U);
  if (std::getenv("ASSAY_TEST_STORIES") != nullptr) {
    fmt::print("== {}\n", mistake.name);
    for (const std::string& line : story_of(life->trace, plan.profile, *small)) {
      fmt::print("  {}\n", line);
    }
  }
}

/// Those that do no harm under some profile.
std::vector<std::size_t> forgiven_mistakes() {
  std::vector<std::size_t> all;
  for (std::size_t index = 0; index < mistakes().size(); ++index)
    if (mistakes()[index].passes_under) all.push_back(index);
  return all;
}

class ForgivenToyMistake : public testing::TestWithParam<std::size_t> {};

TEST_P(ForgivenToyMistake, DoesNoHarmUnderAProfileThatPromisesMore) {
  const Mistake& mistake = mistakes()[GetParam()];
  SCOPED_TRACE(mistake.name);
  const Bench bench(mistake);
  const auto recorded = bench.record();
  ASSERT_TRUE(recorded) << recorded.error().message();
  const auto found =
      explore(recorded->trace, recorded->receipts, bench.plan(*mistake.passes_under));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, ToyMistake, testing::Range<std::size_t>(0, mistakes().size()));
INSTANTIATE_TEST_SUITE_P(All, ForgivenToyMistake, testing::ValuesIn(forgiven_mistakes()));

class ToyTwin : public testing::TestWithParam<Mistake> {};

TEST_P(ToyTwin, LosesNothingUnderAnyProfileNorInRecovery) {
  const Bench bench(GetParam());
  const auto recorded = bench.record();
  ASSERT_TRUE(recorded) << recorded.error().message();
  for (const Profile profile : kProfiles) {
    const ExplorePlan plan = bench.plan(profile);
    const auto found = explore(recorded->trace, recorded->receipts, plan);
    ASSERT_TRUE(found) << found.error().message();
    for (const Failure& failure : found->kept_failures) {
      const auto small = minimise(recorded->trace, recorded->receipts, plan, failure);
      for (const std::string& line : story_of(recorded->trace, profile, *small)) {
        ADD_FAILURE() << line;
      }
    }
    EXPECT_GT(found->checked, 30U);
    const TemporaryDirectory again("/dev/shm");
    NestedPlan twice;
    twice.explore = plan;
    twice.explore.states_max = 50;
    twice.recoveries = 5;
    twice.directory = again.path();
    const auto nested = explore_nested(bench.life(), recorded->trace, recorded->receipts, twice);
    ASSERT_TRUE(nested) << nested.error().message();
    EXPECT_EQ(nested->sum.failures, 0U);
    EXPECT_TRUE(nested->sum.checked > 0 || nested->untouched == nested->recoveries);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Engines, ToyTwin,
    testing::Values(Mistake{"log", log_engine, {}},
                    Mistake{"logs that follow each other", log_engine, {"logs-follow-each-other"}},
                    Mistake{"slot", slot_engine, {}},
                    Mistake{"mapped slot", slot_engine, {"mapped"}},
                    Mistake{"undo", undo_engine, {}}));

}  // namespace
}  // namespace assay::qualify::power
