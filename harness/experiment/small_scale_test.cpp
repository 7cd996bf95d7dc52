// What is lowered for a run of everything in minutes, and what never is.
#include "harness/experiment/small_scale.h"

#include <algorithm>

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/plan_check.h"

namespace assay {
namespace {

class SmallScaleOf : public FakeRun {
 protected:
  [[nodiscard]] Plan with(const std::string& before, const std::string& after) const {
    auto parsed = parse_plan(plan_text(before) + after, folder_ + "/p.toml", stores_.environment());
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }
};

bool holds(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

TEST_F(SmallScaleOf, a_plan_lowers_trials_keys_and_operations_and_says_so) {
  Plan plan = with(
      "design = \"blocks\"\n[workload_overrides]\nkeys.count = 500_000\n"
      "phases.run.operations = 70_000\n",
      "");
  plan.set_trials(48);
  const std::string before = plan_digest(to_json(plan));
  const std::vector<std::string> told = make_small(plan);
  EXPECT_EQ(plan.trials, 2U);
  EXPECT_EQ(plan.workload.keys.count, 10'000U);
  EXPECT_EQ(plan.workload.phases[1].operations, 2'000U);
  EXPECT_TRUE(holds(told, "blocks: 48 -> 2"));
  EXPECT_TRUE(holds(told, "keys: 500000 -> 10000"));
  EXPECT_TRUE(holds(told, "run.operations: 70000 -> 2000"));
  EXPECT_TRUE(holds(told, "foreign_cpus_max: 0.25 -> off"));
  EXPECT_EQ(plan.foreign_cpus_max, 0.0);
  EXPECT_EQ(told.size(), 6U);
  ASSERT_FALSE(plan.notes.empty());
  EXPECT_EQ(plan.notes[0],
            "small scale, exploratory; lowered: blocks: 48 -> 2; foreign_cpus_max: 0.25 -> off; "
            "frequency_change_max: 0.2 -> off; steal_share_max: 0.1 -> off; keys: 500000 -> 10000; "
            "run.operations: 70000 -> 2000");
  EXPECT_NE(plan_digest(to_json(plan)), before) << "it is no more what was registered";
}

TEST_F(SmallScaleOf, a_small_plan_changes_nothing_of_it) {
  Plan plan = with("foreign_cpus_max = 0\nfrequency_change_max = 0\nsteal_share_max = 0\n", "");
  plan.set_trials(2);
  const auto before = to_json(plan);
  EXPECT_TRUE(make_small(plan).empty());
  EXPECT_EQ(to_json(plan), before);
  EXPECT_EQ(plan.notes[0], "small scale, exploratory: nothing had to be lowered");
}

TEST_F(SmallScaleOf, large_values_lowers_the_keys_further_and_keeps_the_values) {
  Plan plan = with("[workload_overrides]\nkeys.count = 50_000\nvalues.bytes = 20_000\n", "");
  (void)make_small(plan);
  EXPECT_EQ(plan.workload.values.bytes, 20'000U);
  EXPECT_EQ(plan.workload.keys.count, (std::uint64_t{16} << 20) / 20'008);
}

TEST_F(SmallScaleOf, a_sweep_of_keys_leaves_out_large_cells_and_keeps_the_names_true) {
  Plan plan = with("", "\n[sweep]\nworkload.keys.count = [100, 1_000, 5_000, 1_000_000]\n");
  const std::vector<std::string> told = make_small(plan);
  ASSERT_EQ(plan.cells.size(), 2U);
  EXPECT_EQ(plan.cells[0].plan.workload.keys.count, 100U);
  EXPECT_EQ(plan.cells[1].name, "count=5000");
  EXPECT_EQ(plan.cells[1].plan.workload.keys.count, 5'000U);
  EXPECT_EQ(plan.sweep[0].values, (std::vector<std::string>{"100", "5000"}));
  EXPECT_TRUE(holds(told, "count: 2 of 4 values (100, 5000)"));
  for (const Arm& arm : plan.arms) EXPECT_NE(arm.cell, "count=1000000") << arm.name;
  for (const Hypothesis& claim : plan.hypotheses) {
    EXPECT_NE(plan.find_arm(claim.a), nullptr) << claim.a;
    EXPECT_NE(plan.find_arm(claim.b), nullptr) << claim.b;
  }
  EXPECT_TRUE(run(plan)) << "what is left of a sweep is a plan that runs";
}

TEST_F(SmallScaleOf, a_sweep_of_large_keys_alone_keeps_the_smallest) {
  Plan plan = with("", "\n[sweep]\nworkload.keys.count = [2_000_000, 1_000_000]\n");
  (void)make_small(plan);
  ASSERT_EQ(plan.cells.size(), 1U);
  EXPECT_EQ(plan.cells[0].plan.workload.keys.count, 1'000'000U);
}

TEST_F(SmallScaleOf, a_rank_test_of_medians_keeps_as_many_trials_as_it_needs) {
  Plan plan = with("", "\n[aggregation]\nof_trials = \"median\"\n");
  plan.set_trials(30);
  (void)make_small(plan);
  EXPECT_EQ(plan.trials, least_trials_of_median(plan.alpha, plan.design));
  EXPECT_GT(plan.trials, 2U);
}

TEST_F(SmallScaleOf, windows_lowers_those_of_every_cell) {
  Plan plan = with("design = \"windows\"\n",
                   "\n[windows]\nwindows = 40\noperations = 50\n[sweep]\n"
                   "workload.values.bytes = [10, 20, 30]\n");
  (void)make_small(plan);
  ASSERT_EQ(plan.cells.size(), 2U);
  for (const Cell& cell : plan.cells) {
    EXPECT_EQ(cell.plan.windows.windows, 6U);
    EXPECT_EQ(cell.plan.windows.operations, 5U);
    EXPECT_EQ(cell.plan.trials, 2U);
  }
}

}  // namespace
}  // namespace assay
