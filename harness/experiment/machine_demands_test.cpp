#include "harness/experiment/machine_demands.h"

#include "harness/experiment/fake_trial_test.h"
#include "harness/ledger/ledger.h"

namespace assay {
namespace {

using nlohmann::json;

/// Runs on a machine whose huge pages (and load) a test sets.
class MachineDemands : public FakeRun {
 protected:
  Result<RunOutcome> run_on(const Plan& plan) {
    RunServices with = services();
    with.look_at_machine = [this](const Plan& asked, bool watching) {
      ++looks_;
      watched_ += watching ? 1 : 0;
      std::vector<doctor::Finding> found;
      for (const std::string& id : doctor::check_ids()) {
        doctor::Finding one{.id = id,
                            .title = "the " + id,
                            .found = "always",
                            .wanted = "never",
                            .how = "write it"};
        one.state = bad_.contains(id) ? doctor::State::differs : doctor::State::fine;
        one.demanded = std::ranges::find(asked.machine_demands, id) != asked.machine_demands.end();
        found.push_back(std::move(one));
      }
      return found;
    };
    RunRequest request;
    request.tree = folder_;
    return run_experiment(plan, request, with, stop_, notes_);
  }
  [[nodiscard]] static std::vector<LedgerRecord> records(const RunOutcome& outcome) {
    return read_ledger(outcome.ledger_path)->records;
  }

  struct Notes : RunObserver {
    void note(const std::string& sentence) override { told.push_back(sentence); }
    std::vector<std::string> told;
  };
  Notes notes_;
  std::set<std::string> bad_;
  int looks_ = 0;
  int watched_ = 0;
};

TEST_F(MachineDemands, that_are_not_met_refuse_the_run_with_a_message_each) {
  bad_ = {"thp", "load", "smt"};
  const auto refused = run_on(plan("machine_demands = [\"load\", \"thp\"]\n"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::environment);
  EXPECT_NE(refused.error().what().find("load, thp"), std::string::npos) << refused.error().what();
  ASSERT_EQ(notes_.told.size(), 2U);
  for (const char* part : {"the thp (thp)", "found always", "demands never", "write it"}) {
    EXPECT_NE(notes_.told[1].find(part), std::string::npos) << notes_.told[1];
  }
  EXPECT_TRUE(started_.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/runs"));
}

TEST_F(MachineDemands, that_are_met_are_in_the_plan_record_as_found) {
  bad_ = {"smt"};
  const auto done = run_on(plan("machine_demands = [\"thp\"]\n"));
  ASSERT_TRUE(done) << done.error().message();
  const auto all = records(*done);
  EXPECT_EQ(all[0].body["experiment"]["machine_demands"], json({"thp"}));
  const json expected =
      json::array({{{"id", "thp"}, {"found", "always"}, {"wanted", "never"}, {"state", "fine"}}});
  EXPECT_EQ(all[0].body["machine_demands"], expected);
  EXPECT_EQ(watched_, 1);  // once before the first sample, never around a trial
  EXPECT_EQ(looks_, 1 + 2 * 5 * 4);
}

TEST_F(MachineDemands, that_change_void_the_trials_they_touched_and_no_other) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    bad_.clear();
    if (started_.size() == 3) bad_ = {"thp", "load"};
    return {};
  };
  const auto done = run_on(plan("machine_demands = [\"thp\", \"load\"]\n"));
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->end, RunEnd::judged);
  std::vector<std::string> reasons;
  std::vector<std::size_t> numbers;
  std::size_t number = 0;
  for (const LedgerRecord& record : records(*done)) {
    if (record.kind != "trial") continue;
    ++number;
    if (record.body["status"] != "void") continue;
    numbers.push_back(number);
    reasons.push_back(record.body["reason"]);
  }
  // The third saw the change at its end, the fourth began in it.
  ASSERT_EQ(numbers, (std::vector<std::size_t>{3, 4}));
  EXPECT_EQ(reasons[0],
            "the machine did not stay as the plan demands, seen after the trial: thp: always "
            "(demanded: never)");
  EXPECT_NE(reasons[1].find("seen before the trial"), std::string::npos) << reasons[1];
}

TEST_F(MachineDemands, that_change_for_good_make_the_experiment_void) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    bad_ = {"thp"};
    return {};
  };
  const auto done = run_on(plan("machine_demands = [\"thp\"]\nvoid_trials_max = 2\n"));
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->end, RunEnd::void_experiment);
  EXPECT_NE(done->verdict["void_reasons"].dump().find("thp: always"), std::string::npos);
}

TEST_F(MachineDemands, void_a_whole_set_of_windows) {
  bool once = true;
  change_ = [&](const TrialRequest&, json&) -> Status {
    bad_.clear();
    if (once && started_.size() == 5) bad_ = {"thp"};
    once = once && started_.size() != 5;
    return {};
  };
  const auto done = run_on(plan("design = \"windows\"\nmachine_demands = [\"thp\"]\n"));
  ASSERT_TRUE(done) << done.error().message();
  std::size_t voids = 0;
  for (const LedgerRecord& record : records(*done)) {
    voids += record.kind == "trial" && record.body["status"] == "void" ? 1U : 0U;
  }
  EXPECT_EQ(voids, 10U);  // the set that ended in it and the one that began in it
}

TEST_F(MachineDemands, of_an_unknown_name_are_refused_with_place_and_nearest_name) {
  const auto refused = parse_plan(plan_text("machine_demands = [\"thp\", \"governer\"]\n"),
                                  folder_ + "/p.toml", stores_.environment());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().where().find("p.toml:5"), std::string::npos) << refused.error().where();
  EXPECT_NE(refused.error().message().find("did you mean \"governor\"?"), std::string::npos)
      << refused.error().message();
}

TEST_F(MachineDemands, are_one_plan_in_any_order_and_leave_other_plans_digests_alone) {
  EXPECT_EQ(to_json(plan("machine_demands = [\"thp\", \"load\", \"thp\"]\n")),
            to_json(plan("machine_demands = [\"load\", \"thp\"]\n")));
  EXPECT_FALSE(to_json(plan()).contains("machine_demands"));
  EXPECT_EQ(plan_digest(to_json(plan("machine_demands = []\n"))), plan_digest(to_json(plan())));
}

}  // namespace
}  // namespace assay
