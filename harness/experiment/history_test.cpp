#include "harness/experiment/history.h"

#include "harness/experiment/fake_trial_test.h"

namespace assay {
namespace {

using nlohmann::json;

class History : public FakeRun {
 protected:
  static HistoryPoint at(const std::string& commit, double alpha, double beta, double raw = 4000) {
    const auto around = [](double rate) {
      return std::vector<double>{rate * 0.99, rate, rate * 1.01, rate * 1.005, rate * 0.995};
    };
    return {"r-" + commit,
            commit,
            "2026-01-01T00:00:00Z",
            {{"alpha", around(alpha)}, {"beta", around(beta)}, {"raw-file", around(raw)}}};
  }
  static std::vector<std::string> changed(const json& arm) {
    std::vector<std::string> commits;
    for (const json& point : arm["points"]) {
      if (point["changed"] == true) commits.push_back(point["commit"]);
    }
    return commits;
  }
};

TEST_F(History, names_the_first_commit_that_changed_an_arm_and_no_later_one) {
  const json all = history_of({at("c1", 1000, 2000), at("c2", 1010, 2000), at("c3", 700, 2000),
                               at("c4", 705, 2010), at("c5", 1000, 2000)},
                              plan(), 1.1, "");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["arm"], "alpha");
  EXPECT_EQ(changed(all[0]), (std::vector<std::string>{"c3", "c5"}));
  EXPECT_EQ(changed(all[1]), std::vector<std::string>());
  const std::string sentence = all[0]["changes"][0];
  EXPECT_NE(sentence.find("alpha changed at commit c3: 0.69"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("until commit c2"), std::string::npos) << sentence;
}

TEST_F(History, takes_what_stays_inside_the_corridor_for_the_drift_of_sessions) {
  const std::vector<HistoryPoint> points = {at("c1", 1000, 2000), at("c2", 1060, 2000)};
  EXPECT_EQ(changed(history_of(points, plan(), 1.1, "")[0]), std::vector<std::string>());
  EXPECT_EQ(changed(history_of(points, plan(), 1.01, "")[0]), std::vector<std::string>{"c2"});
}

TEST_F(History, of_shares_leaves_out_what_the_machine_did) {
  const std::vector<HistoryPoint> points = {at("c1", 1000, 2000), at("c2", 500, 1000, 2000)};
  EXPECT_EQ(changed(history_of(points, plan(), 1.1, "")[0]), std::vector<std::string>{"c2"});
  EXPECT_EQ(changed(history_of(points, plan(), 1.1, "raw-file")[0]), std::vector<std::string>());
}

TEST_F(History, tells_the_interval_and_the_record_of_every_result_and_which_is_accepted) {
  std::vector<HistoryPoint> points = {at("c1", 1000, 2000), at("c2", 1010, 2000)};
  points[0].record = "hash";
  points[0].accepted = true;
  const json first = history_of(points, plan(), 1.1, "")[0]["points"][0];
  EXPECT_EQ(first["record"], "hash");
  EXPECT_EQ(first["accepted"], true);
  EXPECT_LT(first["low"].get<double>(), first["value"].get<double>());
  EXPECT_GT(first["high"].get<double>(), first["value"].get<double>());
}

TEST_F(History, of_a_sweep_is_one_of_each_arm_in_each_cell_with_its_own_reference) {
  const auto swept = parse_plan(plan_text() + "[sweep]\nworkload.values.bytes = [10, 1000]\n",
                                folder_ + "/p.toml", stores_.environment());
  ASSERT_TRUE(swept) << swept.error().message();
  HistoryPoint before = {"r1", "c1", "", {}, "", false};
  for (const char* cell : {"@bytes=10", "@bytes=1000"}) {
    for (const char* arm : {"alpha", "beta", "raw-file"}) {
      before.values[std::string(arm) + cell] = {100, 101, 99, 100, 102};
    }
  }
  HistoryPoint after = before;
  after.commit = "c2";
  after.values["beta@bytes=1000"] = {50, 51, 49, 50, 52};
  after.values["alpha@bytes=10"] = after.values["raw-file@bytes=10"] = {50, 51, 49, 50, 52};
  const json all = history_of({before, after}, *swept, 1.1, "raw-file");
  ASSERT_EQ(all.size(), 4U);
  for (const json& arm : all) {
    const bool moved = arm["arm"] == "beta@bytes=1000" || arm["arm"] == "beta@bytes=10";
    EXPECT_EQ(changed(arm).size(), moved ? 1U : 0U) << arm.dump();
  }
}

}  // namespace
}  // namespace assay
