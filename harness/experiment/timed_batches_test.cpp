// How many operations a latency sample covers: decided once a result, told in the ledger.
#include "harness/experiment/timed_batches.h"

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/plan_check.h"
#include "harness/ledger/ledger.h"

namespace assay {
namespace {

using nlohmann::json;

class TimedBatches : public FakeRun {
 protected:
  /// A run whose phase leaves the batch open; each decision is another one.
  Result<RunOutcome> run_open(bool stop_early) {
    Plan open = plan("a_a = false\nreferences = []");
    for (Phase& phase : open.workload.phases)
      if (phase.kind == PhaseKind::run) phase.timed_batch = kTimedBatchAuto;
    RunServices fakes = services();
    fakes.choose_timed_batches = [this](const Workload&,
                                        std::uint64_t) -> Result<std::vector<TimedBatchChoice>> {
      return std::vector<TimedBatchChoice>{{"run", 16 * ++decisions_, {{1, 20.0}, {16, 2.0}}}};
    };
    change_ = [this, stop_early](const TrialRequest& trial, json& raw) -> Status {
      if (stop_early && started_.size() == 2) return fail(ErrorKind::interrupted, "stopped");
      used_.push_back(trial.workload.phases.back().timed_batch);
      raw["phases"][0]["operations_per_sample"] = used_.back();
      return {};
    };
    RunRequest request;
    request.tree = folder_;
    RunObserver silent;
    return run_experiment(open, request, fakes, stop_, silent);
  }
  std::uint32_t decisions_ = 0;
  std::vector<std::uint32_t> used_;
};

TEST_F(TimedBatches, are_decided_once_for_every_arm_and_kept_when_a_run_goes_on) {
  ASSERT_FALSE(run_open(true));
  started_.clear();
  const auto resumed = run_open(false);
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(decisions_, 1U);
  EXPECT_EQ(used_, std::vector<std::uint32_t>(8, 16U));
  const auto contents = read_ledger(resumed->ledger_path);
  ASSERT_TRUE(contents) << contents.error().message();
  const json& body = contents->records.front().body;
  EXPECT_EQ(body.at("timed_batches").at(0).at("operations"), 16);
  EXPECT_EQ(timed_batches_from_json(body).at(0).null_ns.at(1).first, 16U);
  EXPECT_EQ(body.at("experiment").at("workload").at("phases").at(1).at("timed_batch"), "auto");
}

TEST_F(TimedBatches, are_told_in_the_rows_and_in_words) {
  const auto outcome = run_open(false);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->verdict.at("rows").at(0).at("operations_per_sample"), 16.0);
  const std::string warnings = outcome->verdict.at("warnings").dump();
  EXPECT_NE(warnings.find("means of batches of 16 operations"), std::string::npos) << warnings;
}

TEST_F(TimedBatches, of_a_mix_have_a_latency_class_of_their_own) {
  const auto workload = parse_workload(
      "name = \"t\"\n[keys]\ncount = 1000\n[[phases]]\nkind = \"run\"\noperations = 10\n"
      "timed_batch = 8\n[[phases.roles]]\nmix = { read = 1, update = 1 }\n",
      "t.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  const Metric reads{.latency = true, .operation_class = "read", .percentile = "p50"};
  const Metric mixed{.latency = true, .operation_class = "mixed", .percentile = "p50"};
  EXPECT_TRUE(impossible_metric(*workload, reads));
  EXPECT_FALSE(impossible_metric(*workload, mixed));
  Workload each = *workload;
  each.phases[0].timed_batch = 1;
  EXPECT_FALSE(impossible_metric(each, reads));
  EXPECT_TRUE(impossible_metric(each, mixed));
}

TEST_F(TimedBatches, stand_beside_the_store_time_without_the_harness) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    const bool null = trial.arm.store == "null";
    raw["phases"][0]["store_ns"] = null ? 200 : 5000;  // of 10 operations
    raw["phases"][0]["store_rate_per_s"] = null ? 5e7 : 2e6;
    return {};
  };
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  for (const json& row : outcome->verdict.at("rows")) {
    if (row.at("arm") != "alpha") continue;
    EXPECT_EQ(row.at("store_ns_per_operation"), 500.0);
    EXPECT_EQ(row.at("store_ns_above_null"), 480.0);
    EXPECT_EQ(row.at("store_rate_per_s"), 2e6);
  }
}

TEST_F(TimedBatches, do_not_matter_to_a_kill_which_needs_a_class_that_survives_it) {
  std::string workload(kFakeWorkload);
  workload += "[[phases]]\nkind = \"restart\"\nhow = \"kill\"\n";
  write(folder_ + "/tiny.toml", workload);
  stores_.driver("alpha").can_.durability.push_back(DurabilityClass::volatile_);
  stores_.driver("alpha").can_.retains_data = true;
  const auto refused = parse_plan("name = \"exp\"\nworkload = \"" + folder_ + "/tiny.toml\"\n" +
                                      "durability = \"volatile\"\n[[arms]]\nstore = \"alpha\"\n",
                                  folder_ + "/p.toml", stores_.environment());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(refused.error().message().find("promises nothing"), std::string::npos)
      << refused.error().message();
}

}  // namespace
}  // namespace assay
