#include "harness/ledger/results.h"

#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/junit.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_lines_test.h"
#include "harness/ledger/merge.h"

namespace assay {
namespace {

using namespace ledger_lines;

class Results : public ::testing::Test {
 protected:
  std::string ledger(const std::string& name, const std::string& machine, bool judged) const {
    const std::string path = own_.file(name);
    auto writer = LedgerWriter::open(path);
    EXPECT_TRUE(writer->append("plan", plan_body("r", machine)));
    EXPECT_TRUE(writer->append("trial", trial_body("r", "a", 0, "x", "x")));
    nlohmann::json verdict = verdict_body("r", 1);
    verdict["status"] = "registered";
    verdict["comparisons"] = {{{"a", "a"},
                               {"b", "b"},
                               {"kind", "superiority"},
                               {"declared", true},
                               {"verdict", "inferior"},
                               {"sentence", "a < b & \x01"}}};
    if (judged) {
      EXPECT_TRUE(writer->append("verdict", verdict));
    }
    return path;
  }

  const TemporaryDirectory own_;
};

TEST_F(Results, are_read_with_their_verdicts_and_places) {
  const auto all = read_results(ledger("l", "m1", true));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->results.size(), 1U);
  const LedgerResult& one = all->results[0];
  EXPECT_EQ(one.machine, "m1");
  EXPECT_EQ(one.outcome, "judged");
  EXPECT_EQ(one.trials, 1U);
  EXPECT_EQ(one.verdicts.at("inferior"), 1U);
  EXPECT_EQ(one.plan_line, 1U);
  EXPECT_EQ(one.verdict_line, 3U);
  EXPECT_EQ(one.verdict_hash, all->end.head);
  const auto open = read_results(ledger("open", "m1", false));
  EXPECT_EQ(open->results[0].outcome, "not complete");
}

TEST_F(Results, of_one_name_on_two_machines_are_two) {
  ASSERT_TRUE(merge_ledgers({ledger("x", "m1", true), ledger("y", "m2", false)}, own_.file("all")));
  const auto all = read_results(own_.file("all"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->merged_from, 2U);
  ASSERT_EQ(all->results.size(), 2U);
  EXPECT_EQ(all->results[0].trials, 1U);
  const auto unclear = choose_result(*all, "r", "");
  ASSERT_FALSE(unclear);
  EXPECT_NE(unclear.error().message().find("2 machines"), std::string::npos);
  EXPECT_EQ((*choose_result(*all, "r", "m2"))->machine, "m2");
  EXPECT_EQ((*choose_result(*all, "", ""))->machine, "m1");
  EXPECT_NE(choose_result(*all, "s", "").error().message().find("there are: r, r"),
            std::string::npos);
}

TEST_F(Results, are_written_as_junit_whatever_is_in_their_texts) {
  const auto all = read_results(ledger("l", "m1", true));
  const std::string xml = junit_xml({*all});
  EXPECT_NE(xml.find("tests=\"2\" failures=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("a vs b (superiority)"), std::string::npos);
  EXPECT_NE(xml.find("a &lt; b &amp; ?"), std::string::npos) << xml;
}

}  // namespace
}  // namespace assay
