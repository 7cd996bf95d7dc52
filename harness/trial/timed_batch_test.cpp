// How many operations a sample covers where the plan leaves it open.
#include "harness/trial/timed_batch.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TimedBatch, is_the_smallest_with_which_the_clock_adds_at_most_a_tenth) {
  // 16 ns of clock and 2 ns of call: 18, 10, 6, 4, 3, 2.5, 2.25, 2.125, 2.0625.
  EXPECT_EQ(fewest_operations({{1, 18.0},
                               {2, 10.0},
                               {4, 6.0},
                               {8, 4.0},
                               {16, 3.0},
                               {32, 2.5},
                               {64, 2.25},
                               {128, 2.125},
                               {256, 2.0625}}),
            64U);
  EXPECT_EQ(fewest_operations({{1, 100.0}, {2, 99.0}, {4, 98.0}}), 1U);
  EXPECT_EQ(fewest_operations({{1, 3.0}, {2, 2.0}, {4, 2.1}}), 2U) << "noise is no order";
}

TEST(TimedBatch, is_chosen_for_the_phases_that_leave_it_open_and_for_no_other) {
  const auto workload = parse_workload(
      "name = \"t\"\n[keys]\ncount = 1000\n[[phases]]\nkind = \"load\"\n"
      "[[phases]]\nkind = \"run\"\nname = \"reads\"\noperations = 10\ntimed_batch = \"auto\"\n"
      "[[phases.roles]]\nname = \"churn\"\nbackground = true\nmix = { update = 1 }\n"
      "[[phases.roles]]\nname = \"readers\"\nmix = { read = 1 }\n"
      "[[phases]]\nkind = \"run\"\nname = \"plain\"\noperations = 10\n"
      "[[phases.roles]]\nmix = { read = 1 }\n",
      "t.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  const auto choices = choose_timed_batches(*workload, 1);
  ASSERT_TRUE(choices) << choices.error().message();
  ASSERT_EQ(choices->size(), 1U);
  EXPECT_EQ(choices->front().phase, "reads");
  EXPECT_EQ(choices->front().null_ns.size(), 9U);
  EXPECT_GE(choices->front().operations, 1U);
  EXPECT_LE(choices->front().operations, kTimedBatchMax);
  Workload decided = *workload;
  apply_timed_batches(*choices, decided);
  EXPECT_EQ(decided.phases[1].timed_batch, choices->front().operations);
  EXPECT_EQ(decided.phases[2].timed_batch, 1U);
}

}  // namespace
}  // namespace assay
