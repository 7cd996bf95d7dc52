// Phases over the trade tables, with real child processes.
#include <gtest/gtest.h>

#include <atomic>

#include "adapters/temporary_directory.h"
#include "harness/trade/trade_data.h"
#include "harness/trial/trial.h"

namespace assay {
namespace {

using nlohmann::json;

class TablePhase : public ::testing::Test {
 protected:
  json run(const std::string& store, const std::string& phases, const Settings& settings = {},
           const std::string& rows = "2000") {
    const Result<Workload> workload =
        parse_workload("name = \"small\"\n[keys]\ncount = " + rows +
                           "\nkind = \"bytes\"\nbytes = 19\n"
                           "[[phases]]\nkind = \"load-tables\"\nload_batch = 500\ndata_seed = 7\n" +
                           phases,
                       "small.toml");
    EXPECT_TRUE(workload) << workload.error().message();
    TrialRequest asked;
    asked.arm.name = "arm";
    asked.arm.store = store;
    asked.arm.settings = settings;
    asked.arm.durability = DurabilityClass::process;
    asked.workload = *workload;
    asked.seed = ++seed_;
    asked.root = root_.path() + "/bench";
    asked.log_path = root_.path() + "/trial.log";
    asked.timeout_ms = 60'000;
    asked.binary = ASSAY_TEST_CHILD;
    Result<json> record = run_trial(asked, stop_);
    EXPECT_TRUE(record) << record.error().message();
    return record ? *record : json();
  }
  static json phase_of(const json& record, const std::string& name) {
    for (const json& phase : record.at("phases"))
      if (phase.at("name") == name) return phase;
    ADD_FAILURE() << "no phase " << name << " in " << record.dump(1);
    return {};
  }

  const TemporaryDirectory root_;
  std::uint64_t seed_ = 1;
  std::atomic<bool> stop_{false};
};

const std::string kRestart = "[[phases]]\nkind = \"restart\"\n";
const std::string kIndex =
    "[[phases]]\nkind = \"table\"\nname = \"index\"\noperation = \"create-index\"\n";

std::string table(const std::string& name, const std::string& operation, const std::string& more) {
  return "[[phases]]\nkind = \"table\"\nname = \"" + name + "\"\noperation = \"" + operation +
         "\"\n" + more;
}

TEST_F(TablePhase, loads_asks_and_validates_the_data_set_that_the_workload_names) {
  const std::string phases =
      kIndex + kRestart +
      table("range", "range-lookup",
            "operations = 3\nwarm_up = { policy = \"fixed\", operations = 1 }\n") +
      table("erase", "delete-rollback", "") +
      table("cold", "full-scan", "cache = \"cold-files\"\nmax_resident = 1.0\n");
  const json record = run("sqlite", phases);
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  const json load = phase_of(record, "load-tables");
  const std::string checksum = TradeData::make(2000, 7)->checksum().text();
  EXPECT_EQ(load.at("table").at("checksum"), checksum);
  EXPECT_EQ(load.at("classes").at("table").at("count"), 1);
  const json range = phase_of(record, "range");
  EXPECT_EQ(range.at("operations"), 3);
  EXPECT_EQ(range.at("warm_up").at("operations"), 1);
  EXPECT_EQ(range.at("table").at("samples_ns").size(), 3U);
  EXPECT_EQ(range.at("classes").at("table").at("count"), 3);
  EXPECT_GT(range.at("classes").at("table").at("p50_ns"), 0);
  EXPECT_EQ(range.at("table").at("rows_touched"), range.at("table").at("answer").at("rows"));
  const json cold = phase_of(record, "cold");
  EXPECT_EQ(cold.at("cache").at("policy"), "cold-files");
  EXPECT_EQ(cold.at("table").at("rows_touched"), 2000);
  EXPECT_EQ(record.at("recovery_ns").size(), 3U) << "the restart, the cold phase, the validation";
  EXPECT_EQ(record.at("validation").at("ok"), true);
  EXPECT_EQ(record.at("validation").at("digest"), checksum);
  EXPECT_EQ(record.at("validation").at("entries"), record.at("validation").at("expected_entries"));
  // Another trial has another seed, and the same data set and access paths.
  const json again = run("sqlite", phases);
  for (const char* name : {"index", "range", "erase", "cold"})
    EXPECT_EQ(phase_of(again, name).at("table").at("access_path_digest"),
              phase_of(record, name).at("table").at("access_path_digest"))
        << name;
}

TEST_F(TablePhase, disqualifies_a_wrong_answer_before_a_time_of_it_counts) {
  const std::string scan =
      table("scan", "full-scan", "warm_up = { policy = \"fixed\", operations = 1 }\n");
  // Of so many trades the middle entry is one.
  const json record = run(ASSAY_TEST_LYING_STORE, kRestart + scan, {{"lie", "lose_key"}}, "20000");
  EXPECT_EQ(record.at("status"), "disqualified");
  EXPECT_NE(record.at("reason").get<std::string>().find("full-scan gave 19999:"), std::string::npos)
      << record.at("reason");
  for (const json& phase : record.at("phases")) EXPECT_NE(phase.at("name"), "scan");
}

TEST_F(TablePhase, disqualifies_a_store_that_lost_a_row_which_no_operation_asked_for) {
  // Of so few the middle entry is an account.
  const json record =
      run(ASSAY_TEST_LYING_STORE, kRestart + table("scan", "full-scan", ""), {{"lie", "lose_key"}});
  EXPECT_EQ(record.at("status"), "disqualified");
  EXPECT_EQ(record.at("validation").at("ok"), false);
  EXPECT_NE(record.at("reason").get<std::string>().find("table account gave 9999:"),
            std::string::npos)
      << record.at("reason");
}

}  // namespace
}  // namespace assay
