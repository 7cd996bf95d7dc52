// End to end: every declared experiment at small scale, by the built command.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SmallRuns : public EndToEnd {
 protected:
  void declare(const std::string& name, const std::string& more = "",
               const std::string& tables =
                   "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = "
                   "\"lmdb\"\n") const {
    write_file(directory_ / "ledgers" / name / "experiment.toml",
               fmt::format("name = \"{}\"\nworkload = \"durable-put\"\nroot = \"{}\"\n"
                           "references = []\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
                           "frequency_change_max = 0\na_a = false\ntrials = 30\n{}"
                           "[workload_overrides]\nkeys.count = 50000\n"
                           "phases.run.duration_ms = 60\nphases.run.warm_up.operations = 5\n{}",
                           name, (directory_ / "bench").string(), more, tables));
  }
  [[nodiscard]] std::vector<fs::path> runs() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_ / "runs")) found.push_back(entry);
    return found;
  }
};

TEST_F(SmallRuns, of_all_experiments_leave_their_ledgers_alone_and_end_with_a_line_for_each) {
  declare("first");
  declare("second");
  write_file(directory_ / "ledgers" / "second" / "ledger.jsonl", "");
  const Finished run = assay("run --all --scale small");
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  for (const char* said : {"SMALL SCALE, EXPLORATORY", "first", "second", "trials an arm: 30 -> 2",
                           "keys: 50000 -> 10000", "2 of 2 experiments"}) {
    EXPECT_NE(run.out.find(said), std::string::npos) << said << "\n" << run.out;
  }
  EXPECT_FALSE(fs::exists(directory_ / "ledgers" / "first" / "ledger.jsonl"));
  EXPECT_EQ(read_file(directory_ / "ledgers" / "second" / "ledger.jsonl"), "");
  EXPECT_FALSE(fs::exists(directory_ / "results"));
  ASSERT_EQ(runs().size(), 1U);
  const fs::path folder = runs().front() / "first";
  EXPECT_TRUE(fs::exists(folder / "ledger.jsonl"));
  const std::string report = read_file(folder / "report.md");
  EXPECT_NE(report.find("small scale, exploratory; lowered: "), std::string::npos) << report;
  EXPECT_EQ(assay("ledger verify " + (folder / "ledger.jsonl").string()).status, 0);
}

TEST_F(SmallRuns, go_on_where_they_were_stopped_and_begin_anew_when_they_are_complete) {
  declare("first");
  declare("second");
  // Stopped in the second experiment, which is long before its last trial.
  const Finished stopped =
      shell("\"" ASSAY_COMMAND
            "\" run --all --scale small --no-report & pid=$!; "
            "until ls runs/small-*/second/ledger.jsonl >/dev/null 2>&1; do sleep 0.02; done; "
            "kill -TERM $pid; wait $pid");
  ASSERT_EQ(stopped.status, 130) << stopped.err << stopped.out;
  EXPECT_NE(stopped.out.find("the same command goes on"), std::string::npos) << stopped.out;
  ASSERT_EQ(runs().size(), 1U);
  const std::string first = read_file(runs().front() / "first" / "ledger.jsonl");
  const Finished resumed = assay("run --all --scale small --no-report --json");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const json state = json::parse(resumed.out);
  EXPECT_EQ(state["status"], "small scale, exploratory");
  EXPECT_TRUE(state["complete"].get<bool>());
  ASSERT_EQ(state["experiments"].size(), 2U);
  EXPECT_EQ(state["experiments"][1]["name"], "second");
  EXPECT_EQ(state["experiments"][1]["exit_status"], 0);
  EXPECT_FALSE(state["experiments"][1]["reduced"].empty());
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(read_file(runs().front() / "first" / "ledger.jsonl"), first) << "not run again";
  ASSERT_EQ(assay("run --all --scale small --no-report").status, 0);
  EXPECT_EQ(runs().size(), 2U);
}

TEST_F(SmallRuns, run_the_others_when_one_cannot_be_run_and_end_with_its_status) {
  declare("first", "", "[[arms]]\nstore = \"no-such-store\"\n");
  declare("second");
  const Finished run = assay("run --all --scale small --no-report --json");
  EXPECT_EQ(run.status, 2) << run.err;
  const json state = json::parse(run.out);
  EXPECT_EQ(state["experiments"][0]["exit_status"], 2);
  EXPECT_NE(state["experiments"][0]["outcome"].get<std::string>().find("no-such-store"),
            std::string::npos);
  EXPECT_EQ(state["experiments"][1]["exit_status"], 0);
  EXPECT_EQ(assay("run second --scale small --no-report --out apart").status, 0);
  EXPECT_TRUE(fs::exists(directory_ / "apart" / "second" / "ledger.jsonl"));
}

TEST_F(SmallRuns, are_asked_for_in_one_way_only) {
  declare("first");
  EXPECT_EQ(assay("run").status, 2);
  EXPECT_EQ(assay("run --all").status, 2);
  EXPECT_EQ(assay("run first --all --scale small").status, 2);
  EXPECT_EQ(assay("run first --scale large").status, 2);
  EXPECT_EQ(assay("run --all --scale small --trials 3").status, 2);
  write_file(directory_ / "full" / "letter.txt", "not ours");
  EXPECT_EQ(assay("run --all --scale small --out full").status, 2);
  EXPECT_FALSE(fs::exists(directory_ / "runs"));
}

}  // namespace
}  // namespace assay::end_to_end
