// Which acceptance is the baseline where a ledger holds several.
#include "harness/experiment/baseline.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using nlohmann::json;

LedgerRecord acceptance(const std::string& result, const std::string& machine) {
  LedgerRecord record;
  record.kind = "accept";
  record.hash = "hash of " + result;
  record.body = {
      {"result", result}, {"fingerprint", machine}, {"values", {{"lmdb", {10.0, 0.0, 12.0}}}}};
  return record;
}

class AcceptedBaseline : public ::testing::Test {
 protected:
  const std::vector<LedgerRecord> merged_ = {acceptance("old", "here"), acceptance("new", "here"),
                                             acceptance("newest", "elsewhere")};
};

TEST_F(AcceptedBaseline, is_the_newest_of_the_machine_that_is_asked_for) {
  ASSERT_NE(newest_acceptance(merged_, "here"), nullptr);
  EXPECT_EQ(newest_acceptance(merged_, "here")->body["result"], "new");
  EXPECT_EQ(newest_acceptance(merged_, "elsewhere")->body["result"], "newest");
}

TEST_F(AcceptedBaseline, is_the_newest_of_all_where_the_machine_has_none) {
  ASSERT_NE(newest_acceptance(merged_, "a third"), nullptr);
  EXPECT_EQ(newest_acceptance(merged_, "a third")->body["result"], "newest");
  EXPECT_EQ(newest_acceptance({}, "here"), nullptr);
}

TEST_F(AcceptedBaseline, of_a_run_is_its_machines_and_another_machines_is_refused) {
  const auto found = accepted_baseline(merged_, "", {{"fingerprint", "here"}}, "ledger.jsonl");
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->result, "new");
  EXPECT_EQ((*found)->values.at("lmdb"), (std::vector<double>{10.0, 12.0}));
  const auto kept =
      accepted_baseline(merged_, "hash of newest", {{"fingerprint", "here"}}, "ledger.jsonl");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind(), ErrorKind::environment);
}

}  // namespace
}  // namespace assay
