// End to end: a sweep of two by two cells is registered, run, reported, drawn again and reproduced;
// results of several commits are drawn; two ledgers are merged and reported.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SweepVerb : public EndToEnd {
 protected:
  /// Stores that write nothing durably: a cell takes some tens of milliseconds.
  void declare(const std::string& sweep) const {
    write_file(directory_ / "ledgers/tiny/experiment.toml",
               "name = \"tiny\"\nworkload = \"durable-put\"\ndurability = \"volatile\"\n"
               "trials = 2\nroot = \"bench\"\na_a = false\nforeign_cpus_max = 0\n"
               "steal_share_max = 0\nfrequency_change_max = 0\n" +
                   sweep + "[workload_overrides]\n" +
                   (sweep.find("keys.count") == std::string::npos ? "keys.count = 300\n" : "") +
                   "phases.run.duration_ms = 40\n"
                   "phases.run.warm_up.operations = 5\n"
                   "[[arms]]\nstore = \"lmdb\"\n[[arms]]\nstore = \"sqlite\"\n");
  }
  [[nodiscard]] std::vector<json> records() const {
    std::vector<json> all;
    std::istringstream lines(read_file(directory_ / "ledgers/tiny/ledger.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
    return all;
  }
  [[nodiscard]] fs::path result() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(directory_ / "results/tiny")) {
      found = entry.path();
    }
    return found;
  }
};

const char* const kTwoByTwo =
    "[sweep]\nworkload.values.bytes = [10, 200]\nworkload.keys.count = [300, 600]\n";

TEST_F(SweepVerb, runs_every_cell_and_draws_curves_and_tradeoffs_that_plot_makes_again) {
  declare(kTwoByTwo);
  const Finished registered = assay("register tiny");
  ASSERT_EQ(registered.status, 0) << registered.err;
  const Finished run = assay("run tiny");
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  for (const char* said : {"count=300,bytes=10", "count=600,bytes=200", "The best throughput"}) {
    EXPECT_NE(run.out.find(said), std::string::npos) << said << "\n" << run.out;
  }
  const std::vector<json> all = records();
  std::set<std::string> arms;
  for (const json& record : all) {
    if (record.at("kind") == "trial") arms.insert(record.at("body").at("arm"));
  }
  EXPECT_EQ(arms.size(), 16U);  // two arms and two references in four cells
  const json& verdict = all.back().at("body");
  EXPECT_EQ(verdict.at("cells").size(), 4U);
  EXPECT_EQ(verdict.at("comparisons").size(), 4U);
  for (const char* name : {"throughput-over-bytes", "throughput-over-bytes-2",
                           "throughput-over-count", "throughput-over-count-2", "pareto-space"}) {
    for (const char* suffix : {".svg", ".png", ".gp", ".dat"}) {
      EXPECT_TRUE(fs::exists(result() / "plots" / (std::string(name) + suffix))) << name << suffix;
    }
  }
  ASSERT_EQ(assay("plot tiny --out again").status, 0);
  ASSERT_EQ(assay("report tiny --format html --out again").status, 0);
  const std::string page = read_file(result() / "report.html");
  EXPECT_TRUE(read_file(directory_ / "again/report.html") == page);
  for (const auto& entry : fs::directory_iterator(result() / "plots")) {
    const fs::path again = directory_ / "again/plots" / entry.path().filename();
    EXPECT_TRUE(read_file(again) == read_file(entry.path())) << again;
  }
  EXPECT_EQ(assay("ledger verify tiny").status, 0);
  const Finished valid = shell(ASSAY_PYTHON " " ASSAY_VALIDATE_SCHEMA " ledgers/tiny/ledger.jsonl");
  EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
  const Finished look = assay("reproduce tiny --look");
  EXPECT_EQ(look.status, 0) << look.err;
  EXPECT_NE(look.out.find("plan: the same"), std::string::npos) << look.out;
}

TEST_F(SweepVerb, goes_on_with_the_same_cells_after_a_stop_and_refuses_other_values) {
  declare("design = \"windows\"\nwindows = { windows = 4, operations = 5 }\n" +
          std::string(kTwoByTwo));
  const Finished stopped = shell("'" ASSAY_COMMAND
                                 "' run tiny & pid=$!; "
                                 "for i in $(seq 600); do sleep 0.05; "
                                 "[ \"$(grep -c '\"kind\":\"trial\"' ledgers/tiny/ledger.jsonl "
                                 "2>/dev/null || true)\" -ge 4 ] 2>/dev/null && break; done; "
                                 "kill -INT $pid; wait $pid");
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  const Finished resumed = assay("run tiny");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const std::vector<json> all = records();
  std::set<std::string> turns;
  std::size_t plans = 0;
  for (const json& record : all) {
    plans += record.at("kind") == "plan" ? 1U : 0U;
    if (record.at("kind") != "trial" || record.at("body").at("status") != "ok") continue;
    const json& body = record.at("body");
    EXPECT_TRUE(turns.insert(body.at("arm").get<std::string>() + body.at("round").dump()).second);
  }
  EXPECT_EQ(plans, 1U);
  EXPECT_EQ(turns.size(), 32U);
  declare(
      "design = \"windows\"\nwindows = { windows = 4, operations = 5 }\n"
      "[sweep]\nworkload.values.bytes = [10, 201]\nworkload.keys.count = [300, 600]\n");
  const Finished changed = assay("run tiny");
  EXPECT_EQ(changed.status, 6) << changed.err;
  EXPECT_NE(changed.err.find("200 -> 201"), std::string::npos) << changed.err;
}

TEST_F(SweepVerb, refuses_a_bad_key_with_its_line) {
  declare("[sweep]\nworkload.values.byts = [10, 200]\n");
  const Finished run = assay("run tiny");
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("experiment.toml:11"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("did you mean 'bytes'?"), std::string::npos) << run.err;
}

TEST_F(SweepVerb, history_is_drawn_with_its_baseline_and_drawn_the_same_again) {
  declare("");
  ASSERT_EQ(assay("run tiny --no-report").status, 0);
  ASSERT_EQ(assay("accept tiny").status, 0);
  ASSERT_EQ(assay("run tiny --no-report --new").status, 0);
  const Finished drawn = assay("history tiny --plots one --json");
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  const json told = json::parse(drawn.out);
  EXPECT_EQ(told.at("plots").size(), 2U);
  EXPECT_EQ(told.at("arms").at(0).at("points").at(0).at("accepted"), true);
  EXPECT_EQ(told.at("arms").at(0).at("points").at(1).at("accepted"), false);
  ASSERT_EQ(assay("history tiny --plots two").status, 0);
  const std::string hash = told.at("arms").at(0).at("points").at(1).at("record");
  for (const char* name : {"history-lmdb", "history-sqlite"}) {
    const std::string svg = read_file(directory_ / "one" / (std::string(name) + ".svg"));
    EXPECT_NE(svg.find("record " + hash.substr(0, 12)), std::string::npos);
    EXPECT_TRUE(read_file(directory_ / "two" / (std::string(name) + ".svg")) == svg);
  }
}

TEST_F(SweepVerb, a_merged_ledger_is_reported_and_drawn_as_its_sources_were) {
  const std::string compare =
      "compare --stores lmdb,sqlite --workload durable-put --durability volatile --trials 2"
      " --set keys.count=300 --set phases.run.duration_ms=40 --no-a-a --root bench"
      " --set phases.run.warm_up.operations=5 --foreign-cpus-max 0 --steal-share-max 0 --out ";
  ASSERT_EQ(assay(compare + "a").status, 0);
  ASSERT_EQ(assay(compare + "b").status, 0);
  ASSERT_EQ(assay("ledger merge a b --out all.jsonl").status, 0);
  const Finished report = assay("report all.jsonl --format html");
  ASSERT_EQ(report.status, 0) << report.err;
  ASSERT_EQ(assay("plot all.jsonl --out again").status, 0);
  // The newest is that of b; its pictures are those that were made beside it.
  for (const auto& entry : fs::directory_iterator(directory_ / "b/plots")) {
    const fs::path again = directory_ / "again" / entry.path().filename();
    EXPECT_TRUE(read_file(again) == read_file(entry.path())) << again;
  }
  EXPECT_EQ(assay("ledger verify all.jsonl").status, 0);
  EXPECT_EQ(assay("report --all all.jsonl --out site").status, 0);
}

}  // namespace
}  // namespace assay::end_to_end
