#include "harness/experiment/gate.h"

#include "harness/experiment/fake_trial_test.h"

namespace assay {
namespace {

using nlohmann::json;

class Gate : public FakeRun {
 protected:
  static std::vector<double> around(double rate, double spread = 0.01) {
    return {rate * (1 - spread), rate, rate * (1 + spread), rate * (1 + spread / 2),
            rate * (1 - spread / 2)};
  }
  static json verdict(const std::map<std::string, std::vector<double>>& values) {
    json rows = json::array();
    for (const auto& [arm, list] : values) rows.push_back({{"arm", arm}, {"values", list}});
    return {{"rows", rows}};
  }
  static Baseline baseline(const std::map<std::string, std::vector<double>>& values) {
    return {.result = "old", .record = "hash", .values = values};
  }
};

TEST_F(Gate, is_passed_by_what_stays_inside_its_corridor_and_shut_by_what_leaves_it) {
  const Baseline old = baseline({{"alpha", around(1000)}, {"beta", around(2000)}});
  const auto same =
      judge_gate(plan(), verdict({{"alpha", around(990)}, {"beta", around(2100)}}), old, {});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->end, GateEnd::within);
  const auto slow =
      judge_gate(plan(), verdict({{"alpha", around(990)}, {"beta", around(1500)}}), old, {});
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->end, GateEnd::regression);
  EXPECT_EQ(slow->comparisons[0]["claim"], "shown");
  EXPECT_EQ(slow->comparisons[1]["claim"], "refuted");
  const auto wide = judge_gate(plan(), verdict({{"alpha", around(990)}, {"beta", around(1500)}}),
                               old, {.corridor = 1.5, .relative_to = ""});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->end, GateEnd::within);
}

TEST_F(Gate, is_undecided_where_the_scatter_is_wider_than_the_corridor) {
  const Baseline old = baseline({{"alpha", around(1000)}, {"beta", around(2000)}});
  const auto noisy =
      judge_gate(plan(), verdict({{"alpha", around(1000)}, {"beta", around(1800, 0.4)}}), old, {});
  ASSERT_TRUE(noisy);
  EXPECT_EQ(noisy->end, GateEnd::undecided);
}

TEST_F(Gate, takes_the_drift_of_the_machine_out_by_a_reference) {
  const Baseline old =
      baseline({{"alpha", around(1000)}, {"beta", around(2000)}, {"raw-file", around(4000)}});
  // Everything, the reference too, is half as fast today.
  const json today =
      verdict({{"alpha", around(500)}, {"beta", around(1000)}, {"raw-file", around(2000)}});
  EXPECT_EQ(judge_gate(plan(), today, old, {})->end, GateEnd::regression);
  const GateRequest relative{.corridor = 0.0, .relative_to = "raw-file"};
  EXPECT_EQ(judge_gate(plan(), today, old, relative)->end, GateEnd::within);
  const auto refused = judge_gate(plan(), today, old, {.corridor = 0.0, .relative_to = "raw-fil"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("raw-file"), std::string::npos);
}

TEST_F(Gate, is_shut_by_another_access_path_whatever_the_times_are) {
  Baseline old = baseline({{"alpha", around(1000)}, {"beta", around(2000)}});
  old.table_work = {{"alpha", "path"}};
  json today = verdict({{"alpha", around(5000)}, {"beta", around(2000)}});
  today["rows"][0]["access_path_digest"] = "path";
  EXPECT_EQ(judge_gate(plan(), today, old, {})->end, GateEnd::within);
  today["rows"][0]["access_path_digest"] = "another path";
  const auto shut = judge_gate(plan(), today, old, {});
  ASSERT_TRUE(shut);
  EXPECT_EQ(shut->end, GateEnd::regression);
  EXPECT_EQ(shut->comparisons[0]["verdict"], "void");
  EXPECT_EQ(shut->comparisons[1]["claim"], "shown");
}

TEST_F(Gate, lets_a_new_arm_decide_nothing_and_refuses_a_baseline_of_something_else) {
  const json today = verdict({{"alpha", around(1000)}, {"beta", around(2000)}});
  const auto one = judge_gate(plan(), today, baseline({{"alpha", around(1000)}}), {});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->end, GateEnd::within);
  EXPECT_EQ(one->comparisons[1]["verdict"], "void");
  const auto none = judge_gate(plan(), today, baseline({{"omega", around(1000)}}), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::bad_input);
}

}  // namespace
}  // namespace assay
