// The counters that experiments report, against what the history must have cost.
#include "engine/store/batch.h"
#include "engine/store/store_fixture.h"
#include "engine/tree/page.h"

namespace lode {
namespace {

TEST(Statistics, count_bytes_barriers_groups_and_pages_by_kind) {
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.tree_bytes = 1 << 20;
  auto store = Store::open(disk, options).value();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store->put("k" + std::to_string(i), "12345678", Durability::sync));
  }
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(store->put("v" + std::to_string(i), "12345678", Durability::volatile_));
  }
  ASSERT_TRUE(store->sync());
  auto now = store->statistics();
  EXPECT_EQ(now.at("commits"), 11.0);
  EXPECT_EQ(now.at("commit_groups"), 6.0);
  EXPECT_EQ(now.at("commit_groups_from_1"), 5.0);
  EXPECT_EQ(now.at("commit_groups_from_4"), 1.0) << "of six commits";
  EXPECT_EQ(now.at("largest_commit_group"), 6.0);
  EXPECT_EQ(now.at("log_frames"), 6.0);
  // A commit: its length, kind, two lengths (1 byte each), key, value.
  EXPECT_EQ(now.at("log_requested_bytes"), 11.0 * (4 + 2 + 8));
  EXPECT_GT(now.at("log_written_bytes"), now.at("log_requested_bytes"));
  EXPECT_EQ(now.at("checkpoint_barriers"), 0.0);
  const std::string large(20000, 'L');
  ASSERT_TRUE(store->put("w", large, Durability::volatile_));
  ASSERT_TRUE(store->checkpoint());
  now = store->statistics();
  EXPECT_EQ(now.at("checkpoints"), 1.0);
  EXPECT_EQ(now.at("checkpoint_barriers"), 2.0);
  EXPECT_EQ(now.at("data_barriers"), 2.0);
  EXPECT_EQ(now.at("checkpoint_requested_bytes"), 11.0 * 10 + 1 + 20000);
  EXPECT_EQ(now.at("value_requested_bytes"), 20000.0);
  EXPECT_GE(now.at("value_written_bytes"), 20000.0);
  EXPECT_LE(now.at("value_written_bytes"), 20000.0 + 64 + 2 * page_bytes);
  EXPECT_EQ(now.at("leaf_pages_written"), 1.0);
  EXPECT_EQ(now.at("inner_pages_written"), 0.0);
  EXPECT_EQ(now.at("checkpoint_written_bytes"), page_bytes + now.at("value_written_bytes"));
  EXPECT_EQ(now.at("tree_entries"), 12.0);
  EXPECT_EQ(now.at("merge_debt_bytes"), 0.0);
}

TEST(Statistics, show_what_merging_is_due_and_what_it_has_cost) {
  auto store = open_small(SimDisk::make());  // two runs a level
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(
          store->put("k" + std::to_string(i), std::string(100, 'v'), Durability::volatile_));
    }
    ASSERT_TRUE(store->checkpoint());
  }
  auto now = store->statistics();
  EXPECT_EQ(now.at("runs"), 2.0);
  EXPECT_EQ(now.at("merge_due_bytes"), now.at("tree_pages") * page_bytes);
  EXPECT_EQ(now.at("merge_debt_bytes"), now.at("tree_pages") / 2 * page_bytes);
  EXPECT_EQ(now.at("merge_written_bytes"), 0.0);
  ASSERT_TRUE(store->drain());
  now = store->statistics();
  EXPECT_EQ(now.at("merges"), 1.0);
  EXPECT_EQ(now.at("merge_barriers"), 2.0);
  EXPECT_EQ(now.at("runs"), 1.0);
  EXPECT_EQ(now.at("merge_due_bytes"), 0.0);
  EXPECT_EQ(now.at("merge_debt_bytes"), 0.0);
  EXPECT_EQ(now.at("merge_written_bytes"), now.at("tree_pages") * page_bytes);
  double payload = 0;
  for (int i = 0; i < 20; ++i) payload += static_cast<double>(1 + std::to_string(i).size()) + 100;
  EXPECT_EQ(now.at("merge_requested_bytes"), payload);
}

TEST(Statistics, tell_what_recovery_has_done) {
  const auto disk = SimDisk::make();
  {
    auto store = open_small(disk);
    ASSERT_TRUE(store->put("a", "1", Durability::sync));
    ASSERT_TRUE(store->checkpoint());
    ASSERT_TRUE(store->put("b", "2", Durability::sync));
    ASSERT_TRUE(store->put("c", "3", Durability::sync));
  }
  auto store = open_small(disk->killed());
  const auto now = store->statistics();
  EXPECT_EQ(now.at("replayed_commits"), 2.0);
  EXPECT_EQ(now.at("replayed_frames"), 2.0);
  EXPECT_EQ(now.at("dropped_frames"), 0.0);
  EXPECT_EQ(now.at("recovered_trees"), 1.0);
  EXPECT_EQ(now.at("root_generation_opened"), 2.0);
  EXPECT_EQ(now.at("root_fallback"), 0.0);
  const RecoveryReport& report = store->recovery();
  EXPECT_EQ(report.microseconds,
            report.files_microseconds + report.roots_microseconds + report.replay_microseconds);
}

}  // namespace
}  // namespace lode
