// Ledgers of past schemas stay readable, in the form of the current one.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/merge.h"
#include "harness/ledger/migration.h"
#include "harness/ledger/results.h"
#include "harness/ledger/verify.h"

namespace assay {
namespace {

using nlohmann::json;

std::string corpus(const std::string& name) {
  return std::string(ASSAY_LEDGER_TESTDATA) + "/" + name;
}

TEST(PastLedgers, are_all_read_and_their_chains_hold) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_LEDGER_TESTDATA)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    const auto contents = read_ledger(entry.path().string());
    ASSERT_TRUE(contents) << contents.error().message();
    EXPECT_FALSE(contents->records.empty());
    EXPECT_TRUE(contents->torn.empty());
    const auto results = read_results(entry.path().string());
    ASSERT_TRUE(results);
    EXPECT_FALSE(results->results.front().verdict.is_null());
  }
  EXPECT_GE(files, 2U);
}

TEST(PastLedgers, of_schema_1_are_given_what_schema_2_demands_without_inventing_figures) {
  const auto contents = read_ledger(corpus("v1-first.jsonl"));
  ASSERT_TRUE(contents) << contents.error().message();
  const auto is_unknown = [](const json& value) {
    return value.is_object() && value.contains("unknown");
  };
  const LedgerRecord& plan = contents->records.front();
  EXPECT_EQ(plan.schema, 1);
  EXPECT_TRUE(is_unknown(plan.body.at("power")));
  EXPECT_EQ(plan.body.at("timed_batches"), json::array());
  const json& trial = contents->records[1].body;
  EXPECT_TRUE(is_unknown(trial.at("memory")));
  const json& phase = trial.at("phases").at(0);
  EXPECT_TRUE(is_unknown(phase.at("store_ns")));
  EXPECT_TRUE(is_unknown(phase.at("cpu").at("foreign_user_ns")));
  // Before there were timed batches every operation was timed by itself.
  EXPECT_EQ(phase.at("operations_per_sample"), 1);
  const json& verdict = contents->records.back().body;
  EXPECT_TRUE(is_unknown(verdict.at("rows").at(0).at("store_ns_per_operation")));
  EXPECT_TRUE(is_unknown(verdict.at("comparisons").at(0).at("rank_p_smallest")));
}

TEST(PastLedgers, that_hold_what_schema_2_demands_are_read_as_they_are) {
  const std::string path = corpus("v1-last.jsonl");
  std::vector<json> as_written;
  ASSERT_TRUE(scan_ledger(
      path,
      [&](LedgerRecord&& record) -> Status {
        as_written.push_back(std::move(record.body));
        return {};
      },
      BodyForm::as_written));
  const auto contents = read_ledger(path);
  ASSERT_EQ(contents->records.size(), as_written.size());
  for (std::size_t i = 0; i < as_written.size(); ++i) {
    EXPECT_EQ(contents->records[i].body, as_written[i]) << "line " << i + 1;
  }
}

TEST(PastLedgers, are_continued_in_the_current_schema_and_merged_in_their_own) {
  const TemporaryDirectory own;
  const std::string path = own.file("ledger.jsonl");
  std::filesystem::copy_file(corpus("v1-first.jsonl"), path);
  const std::string before = read_whole_file(path).value();
  {
    auto writer = LedgerWriter::open(path);
    ASSERT_TRUE(writer) << writer.error().message();
    ASSERT_TRUE(writer->append("interrupted", {{"result", "x"}}));
  }
  // What was written stays as it was, byte for byte.
  EXPECT_EQ(read_whole_file(path)->substr(0, before.size()), before);
  const auto grown = read_ledger(path);
  ASSERT_TRUE(grown) << grown.error().message();
  EXPECT_EQ(grown->records.back().schema, kLedgerSchema);
  const std::string merged = own.file("merged.jsonl");
  ASSERT_TRUE(merge_ledgers({path, corpus("v1-last.jsonl")}, merged));
  const auto all = read_ledger(merged);
  ASSERT_TRUE(all) << all.error().message();
  for (const LedgerRecord& record : all->records) {
    if (record.kind != "trial") continue;
    EXPECT_TRUE(record.body.contains("memory"));  // migrated from the schema of its source
    EXPECT_EQ(record.source.at("schema"), 1);
  }
  const auto verified = verify_ledger(merged, RawCheck::none, {});
  for (const Finding& finding : verified->findings)
    EXPECT_EQ(finding.code, "samples") << finding.what;
}

}  // namespace
}  // namespace assay
