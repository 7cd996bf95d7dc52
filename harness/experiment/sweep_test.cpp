// A plan that lists values: cells, their family, their order, their gates.
#include <algorithm>
#include <set>

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/order.h"
#include "harness/experiment/plan_record.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/verify.h"

namespace assay {
namespace {

using nlohmann::json;

class Sweep : public FakeRun {
 protected:
  /// Two axes of two values; alpha and beta are the arms.
  static std::string two_by_two() {
    return "\n[sweep]\nworkload.values.bytes = [10, 1000]\nsettings.alpha.sync = [\"full\", "
           "\"off\"]\n";
  }
  [[nodiscard]] Plan swept(const std::string& before, const std::string& after) const {
    const std::string text = plan_text(before) + after;
    auto parsed = parse_plan(text, folder_ + "/p.toml", stores_.environment());
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }
  [[nodiscard]] Plan small(const std::string& more = "") const {
    return swept("a_a = false\nreferences = []\n" + more,
                 "\n[sweep]\nworkload.values.bytes = [10, 1000]\n");
  }
  [[nodiscard]] std::string refused(const std::string& more, const std::string& before = "") const {
    const auto parsed =
        parse_plan(plan_text(before) + more, folder_ + "/p.toml", stores_.environment());
    EXPECT_FALSE(parsed);
    return parsed ? std::string() : parsed.error().message();
  }
  [[nodiscard]] std::vector<LedgerRecord> records(const RunOutcome& outcome) const {
    auto contents = read_ledger(outcome.ledger_path);
    EXPECT_TRUE(contents);
    return contents->records;
  }
};

TEST_F(Sweep, is_the_cross_product_with_every_arm_in_each_cell) {
  const Plan plan = swept("mixed_durability = true\n", two_by_two());
  ASSERT_EQ(plan.cells.size(), 4U);
  EXPECT_EQ(plan.sweep[0].key, "settings.alpha.sync");  // axes by key
  EXPECT_EQ(plan.cells[0].name, "sync=full,bytes=10");
  EXPECT_EQ(plan.cells[3].name, "sync=off,bytes=1000");
  EXPECT_EQ(plan.cells[3].plan.workload.values.bytes, 1000U);
  EXPECT_EQ(plan.arms.size(), 4U * 5U);  // alpha, beta, the twin, two references
  const Arm* arm = plan.find_arm("alpha@sync=off,bytes=1000");
  ASSERT_NE(arm, nullptr);
  EXPECT_EQ(arm->settings.at("sync"), "off");
  EXPECT_EQ(arm->cell, "sync=off,bytes=1000");
  ASSERT_EQ(plan.hypotheses.size(), 4U);  // within cells only
  for (const Hypothesis& claim : plan.hypotheses) {
    EXPECT_EQ(plan.find_arm(claim.a)->cell, plan.find_arm(claim.b)->cell);
  }
  EXPECT_TRUE(plan.is_a_a_twin(*plan.find_arm("alpha-again@sync=off,bytes=1000")));
}

TEST_F(Sweep, has_an_identity_that_covers_its_values_and_not_how_it_is_spelt) {
  const std::string digest = plan_digest(to_json(small()));
  const auto of = [this](const std::string& sweep) {
    return plan_digest(to_json(swept("a_a = false\nreferences = []\n", sweep)));
  };
  EXPECT_EQ(of("\n[sweep]\n\"workload.values.bytes\" = [10, 1_000]\n"), digest);
  EXPECT_EQ(of("\n[sweep.workload.values]\nbytes = [10, 1000]\n"), digest);
  EXPECT_NE(of("\n[sweep]\nworkload.values.bytes = [10, 1001]\n"), digest);
  EXPECT_NE(of("\n[sweep]\nworkload.values.bytes = [10]\n"), digest);
}

TEST_F(Sweep, is_built_back_from_its_record) {
  const Plan plan = swept("mixed_durability = true\n[positive_control]\ndelay_ns = 1000\n" +
                              std::string("[[hypotheses]]\na = \"beta\"\nb = \"alpha\"\n"),
                          two_by_two());
  const json canonical = to_json(plan);
  const auto again = plan_from_record(canonical, stores_.environment());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(differences(canonical, to_json(*again)), std::vector<std::string>());
  const auto judging = judging_plan(canonical);
  ASSERT_TRUE(judging) << judging.error().message();
  for (const Arm& arm : plan.arms) {
    EXPECT_EQ(judging->is_subject(*judging->find_arm(arm.name)), plan.is_subject(arm)) << arm.name;
  }
}

TEST_F(Sweep, refuses_keys_that_nothing_has_with_their_line_and_the_nearest) {
  const std::string arm = refused("\n[sweep]\nsettings.alhpa.sync = [\"off\"]\n");
  EXPECT_NE(arm.find("p.toml:12"), std::string::npos) << arm;
  EXPECT_NE(arm.find("did you mean 'alpha'?"), std::string::npos) << arm;
  const std::string path = refused("\n[sweep]\nworkload.values.byts = [10, 20]\n");
  EXPECT_NE(path.find("p.toml:12"), std::string::npos) << path;
  EXPECT_NE(path.find("bytes"), std::string::npos) << path;
  const std::string setting = refused("\n[sweep]\nsettings.alpha.snyc = [\"off\"]\n");
  EXPECT_NE(setting.find("p.toml:12"), std::string::npos) << setting;
  EXPECT_NE(setting.find("sync"), std::string::npos) << setting;
  const std::string value = refused("\n[sweep]\nsettings.alpha.sync = [\"full\", \"fulll\"]\n");
  EXPECT_NE(value.find("p.toml:12"), std::string::npos) << value;
  EXPECT_NE(value.find("cell sync=fulll"), std::string::npos) << value;
  const std::string first = refused("\n[sweep]\nworklaod.values.bytes = [10]\n");
  EXPECT_NE(first.find("did you mean 'workload'?"), std::string::npos) << first;
  const std::string words = refused("\n[sweep]\nworkload.name = [\"a\", \"b\"]\n");
  EXPECT_NE(words.find("changes nothing"), std::string::npos) << words;
  const std::string fixed =
      refused("settings = { sync = \"full\" }\n[sweep]\nsettings.beta.sync = [\"full\"]\n");
  EXPECT_NE(fixed.find("also fixed"), std::string::npos) << fixed;
  const std::string twice = refused("\n[sweep]\nworkload.values.bytes = [10, 10]\n");
  EXPECT_NE(twice.find("a value twice"), std::string::npos) << twice;
  const std::string scalar = refused("\n[sweep]\nworkload.values.bytes = 10\n");
  EXPECT_NE(scalar.find("must be an array"), std::string::npos) << scalar;
}

TEST_F(Sweep, has_at_most_64_cells) {
  const std::string many = refused(
      "\n[sweep]\nworkload.values.bytes = [1,2,3,4,5,6,7,8,9]\n"
      "workload.keys.count = [11,12,13,14,15,16,17,18]\n");
  EXPECT_NE(many.find("the sweep has 8 x 9 cells, more than 64"), std::string::npos) << many;
}

TEST_F(Sweep, spreads_each_round_over_all_cells_so_that_drift_falls_on_none) {
  const Plan plan = small("design = \"blocks\"\n");
  const std::vector<Turn> turns = order_of_plan(plan);
  ASSERT_EQ(turns.size(), 16U);  // 2 cells, 2 arms, 4 blocks
  std::set<std::size_t> firsts;
  for (std::size_t i = 0; i < turns.size(); i += 4) {
    std::set<std::size_t> arms;
    for (std::size_t k = i; k < i + 4; ++k) {
      EXPECT_EQ(turns[k].round, i / 4);
      arms.insert(turns[k].arm);
    }
    EXPECT_EQ(arms.size(), 4U);
    // Both arms of a cell follow each other: a block.
    EXPECT_EQ(turns[i].arm / 2, turns[i + 1].arm / 2);
    firsts.insert(turns[i].arm / 2);
  }
  Plan longer = plan;
  longer.set_trials(40);
  for (const Turn& turn : order_of_plan(longer)) firsts.insert(turn.arm / 2);
  EXPECT_EQ(firsts.size(), 2U);
}

TEST_F(Sweep, judges_each_cell_by_itself_and_adjusts_over_all) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    // beta is twice as fast where values are small, and as fast as alpha where they are large.
    if (trial.workload.values.bytes > 100 && trial.arm.store == "beta") {
      raw["phases"][0]["throughput_per_s"] =
          raw["phases"][0]["throughput_per_s"].get<double>() / 2.0;
    }
    raw["stream_digest"] = std::to_string(trial.workload.values.bytes);
    return {};
  };
  const auto outcome = run(small());
  ASSERT_TRUE(outcome) << outcome.error().message();
  const json& verdict = outcome->verdict;
  EXPECT_EQ(verdict["outcome"], "judged");
  ASSERT_EQ(verdict["comparisons"].size(), 2U);
  EXPECT_EQ(verdict["comparisons"][0]["cell"], "bytes=10");
  EXPECT_EQ(verdict["comparisons"][0]["verdict"], "inferior");
  EXPECT_EQ(verdict["comparisons"][1]["verdict"], "inconclusive");
  EXPECT_GE(verdict["comparisons"][0]["p_adjusted"].get<double>(),
            2.0 * verdict["comparisons"][0]["p"].get<double>());
  ASSERT_EQ(verdict["rows"].size(), 4U);
  EXPECT_EQ(verdict["rows"][3]["cell"], "bytes=1000");
  EXPECT_EQ(verdict["cells"][1]["values"]["workload.values.bytes"], 1000);
  for (const LedgerRecord& record : records(*outcome)) {
    if (record.kind != "trial") continue;
    const std::string arm = record.body.at("arm");
    EXPECT_TRUE(arm.ends_with("@" + record.body.at("cell").get<std::string>())) << arm;
  }
}

TEST_F(Sweep, over_the_measured_phase_has_a_figure_of_each_from_the_same_trials) {
  const std::string more =
      "a_a = false\nreferences = []\ndesign = \"blocks\"\n"
      "workload_overrides = { phases.0.timed = true }\n";
  const Plan plan = swept(more, "\n[sweep]\nworkload.measured_phase = [\"load\", \"run\"]\n");
  ASSERT_EQ(plan.cells.size(), 2U);
  EXPECT_EQ(plan.find_arm("beta@measured_phase=run")->trials_of, "beta@measured_phase=load");
  EXPECT_EQ(plan.trials_in_all(), 8U);  // 2 arms, 4 blocks
  change_ = [](const TrialRequest&, json& raw) -> Status {
    json load = raw["phases"][0];
    load["name"] = "load";
    load["throughput_per_s"] = load["throughput_per_s"].get<double>() * 10.0;
    raw["phases"].push_back(std::move(load));
    return {};
  };
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(started_.size(), 8U);
  const json& rows = outcome->verdict["rows"];
  ASSERT_EQ(rows.size(), 4U);
  for (const json& row : rows) EXPECT_EQ(row["n"], 4) << row.dump();
  EXPECT_NEAR(rows[0]["value"].get<double>() / rows[2]["value"].get<double>(), 10.0, 1e-9);
  EXPECT_EQ(outcome->verdict["comparisons"].size(), 2U);
  const auto verified = verify_ledger(outcome->ledger_path, RawCheck::all, {});
  ASSERT_TRUE(verified) << verified.error().message();
  EXPECT_TRUE(verified->findings.empty()) << verified->findings.front().what;
  const std::string windows =
      refused("\n[sweep]\nworkload.measured_phase = [\"run\"]\n", "design = \"windows\"\n");
  EXPECT_NE(windows.find("p.toml:13: windows are of one phase"), std::string::npos) << windows;
}

TEST_F(Sweep, has_shares_of_the_references_of_its_own_cell) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    const bool large = trial.workload.values.bytes > 100;
    if (large && trial.arm.store == "raw-file") {
      raw["phases"][0]["throughput_per_s"] =
          raw["phases"][0]["throughput_per_s"].get<double>() / 2.0;
    }
    raw["stream_digest"] = std::string(large ? "large" : "small");
    return {};
  };
  const auto outcome =
      run(swept("a_a = false\n", "\n[sweep]\nworkload.values.bytes = [10, 1000]\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  for (const json& row : outcome->verdict["rows"]) {
    if (row["store"] != "alpha") continue;
    EXPECT_NEAR(row["share_of_raw"].get<double>(), row["cell"] == "bytes=10" ? 0.25 : 0.5, 0.01);
  }
}

TEST_F(Sweep, a_gate_that_is_shut_voids_its_cell_alone) {
  change_ = [this](const TrialRequest& trial, json& raw) -> Status {
    const bool large = trial.workload.values.bytes > 100;
    if (large && trial.arm.name.starts_with("alpha-again")) {
      raw["phases"][0]["throughput_per_s"] =
          raw["phases"][0]["throughput_per_s"].get<double>() * (started_.size() % 2 == 0 ? 3 : 1);
    }
    raw["stream_digest"] = std::string(large ? "large" : "small");
    return {};
  };
  const auto outcome =
      run(swept("references = []\n", "\n[sweep]\nworkload.values.bytes = [10, 1000]\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::judged);
  EXPECT_EQ(outcome->verdict["comparisons"][0]["verdict"], "inferior");
  EXPECT_EQ(outcome->verdict["comparisons"][1]["verdict"], "void");
  EXPECT_EQ(outcome->verdict["cells"][0]["a_a"]["ok"], true);
  EXPECT_EQ(outcome->verdict["cells"][1]["a_a"]["ok"], false);
  const std::string warnings = outcome->verdict["warnings"].dump();
  EXPECT_NE(warnings.find("cell bytes=1000 is not judged: A/A gate"), std::string::npos);
}

TEST_F(Sweep, wrong_contents_in_one_cell_put_the_arm_out_of_all) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta@bytes=1000") {
      raw["status"] = "disqualified";
      raw["reason"] = "a value was lost";
    }
    raw["stream_digest"] = trial.arm.cell;
    return {};
  };
  const auto outcome = run(small());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::disqualified);
  for (const json& row : outcome->verdict["rows"]) {
    EXPECT_EQ(row["disqualified"] == true, row["store"] == "beta") << row.dump();
  }
}

TEST_F(Sweep, of_sets_is_resumed_where_it_was_stopped) {
  const Plan plan = small("design = \"windows\"\n");
  change_ = [this](const TrialRequest& trial, json& raw) -> Status {
    raw["stream_digest"] = trial.arm.cell;
    if (started_.size() == 6) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  const auto stopped = run(plan);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::interrupted);
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_TRUE(outcome->resumed);
  std::set<std::string> seen;  // arm and round, each once
  std::vector<std::string> sets;
  for (const LedgerRecord& record : records(*outcome)) {
    if (record.kind != "trial") continue;
    const std::string round = record.body.at("round").dump();
    EXPECT_TRUE(seen.insert(record.body.at("arm").get<std::string>() + " " + round).second);
    sets.push_back(record.body.at("cell").get<std::string>() + " " + round);
  }
  EXPECT_EQ(seen.size(), 16U);
  for (std::size_t i = 0; i < sets.size(); i += 2) EXPECT_EQ(sets[i], sets[i + 1]);
  EXPECT_EQ(outcome->verdict["n"], 4);
}

TEST_F(Sweep, a_void_trial_voids_the_set_of_its_cell_and_no_other) {
  bool once = true;
  change_ = [&once](const TrialRequest& trial, json& raw) -> Status {
    raw["stream_digest"] = trial.arm.cell;
    if (once && trial.arm.name == "beta@bytes=1000") {
      once = false;
      raw["status"] = "void";
      raw["reason"] = "killed";
    }
    return {};
  };
  const auto outcome = run(small("design = \"windows\"\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  for (const json& row : outcome->verdict["rows"]) {
    EXPECT_EQ(row["n"], 4) << row.dump();
    EXPECT_EQ(row["void"], row["cell"] == "bytes=1000" ? 1 : 0) << row.dump();
  }
}

}  // namespace
}  // namespace assay
