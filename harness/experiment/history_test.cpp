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

}  // namespace
}  // namespace assay
