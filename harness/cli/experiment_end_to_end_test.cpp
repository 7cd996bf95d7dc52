// End to end: experiments run by the built command, at a scale of seconds.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Experiment = EndToEnd;

const std::string kTiny =
    " --set keys.count=2000 --set workload.phases.run.duration_ms=150"
    " --set phases.run.warm_up.operations=10 --no-a-a --root bench"
    " --foreign-cpus-max 0 --steal-share-max 0 ";

std::vector<json> ledger_of(const fs::path& path) {
  std::vector<json> records;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
  return records;
}

fs::path only_run(const fs::path& directory) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(directory / "runs")) found = entry.path();
  return found;
}

TEST_F(Experiment, compares_three_stores_and_two_references_and_leaves_a_report) {
  const Finished run =
      assay("compare --stores sqlite,rocksdb,lmdb --workload durable-put --trials 3" + kTiny);
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  for (const char* name : {"sqlite", "rocksdb", "lmdb", "null", "raw-file", "EXPLORATORY"}) {
    EXPECT_NE(run.out.find(name), std::string::npos) << name << "\n" << run.out;
  }
  const fs::path result = only_run(directory_);
  const auto records = ledger_of(result / "ledger.jsonl");
  ASSERT_GE(records.size(), 3U);
  EXPECT_EQ(records.front().at("kind"), "plan");
  EXPECT_EQ(records.back().at("kind"), "verdict");
  const json& verdict = records.back().at("body");
  for (const json& row : verdict.at("rows")) {
    EXPECT_EQ(row.at("n"), 3) << row.dump();
    EXPECT_FALSE(row.at("disqualified").get<bool>()) << row.dump();
  }
  const std::string page = read_file(result / "report.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_TRUE(fs::exists(result / "report.md"));
  EXPECT_TRUE(fs::exists(result / "plots" / "throughput.svg"));
  EXPECT_TRUE(fs::exists(result / "plots" / "throughput.png"));
  EXPECT_TRUE(fs::exists(result / "plots" / "throughput.gp"));
  // Nothing of the trials' data is left.
  EXPECT_TRUE(!fs::exists(directory_ / "bench") || fs::is_empty(directory_ / "bench"));
}

TEST_F(Experiment, weakened_settings_are_run_when_asked_and_shown_as_what_they_give) {
  const Finished run = assay(
      "compare --stores lmdb,sqlite --workload durable-put --durability power --trials 2"
      " --set sqlite.synchronous=OFF --mixed-durability" +
      kTiny);
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  const std::string said = "process (declared power, settings give process)";
  EXPECT_NE(run.out.find(said), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("MIXED DURABILITY"), std::string::npos) << run.out;
  const fs::path result = only_run(directory_);
  EXPECT_NE(read_file(result / "report.md").find(said), std::string::npos);
  EXPECT_NE(read_file(result / "plots" / "throughput.svg").find("settings give process"),
            std::string::npos);
}

TEST_F(Experiment, an_arm_against_itself_is_not_told_apart_from_itself) {
  const Finished run = assay(
      "compare --stores sqlite,lmdb --workload durable-put --trials 4 --set keys.count=2000"
      " --set phases.run.duration_ms=150 --effect-percent 5000 --root bench --json"
      " --foreign-cpus-max 0 --steal-share-max 0");
  // Whether the gate passes is up to the machine; that there is one is not.
  ASSERT_TRUE(run.status == 0 || run.status == 5) << run.err;
  const json verdict = json::parse(run.out, nullptr, false);
  ASSERT_FALSE(verdict.is_discarded()) << run.out;
  const json& gate = verdict.contains("a_a") ? verdict.at("a_a") : verdict.at("body").at("a_a");
  EXPECT_EQ(gate.at("ok").get<bool>(), run.status == 0);
  EXPECT_LE(gate.at("interval").at(0).get<double>(), gate.at("ratio").get<double>());
}

TEST_F(Experiment, plots_and_reports_are_made_again_from_the_ledger_byte_for_byte) {
  ASSERT_EQ(assay("compare --stores sqlite,lmdb --workload durable-put --trials 2" + kTiny).status,
            0);
  const fs::path result = only_run(directory_);
  const std::string page = read_file(result / "report.html");
  const std::string picture = read_file(result / "plots" / "throughput.svg");
  fs::remove_all(result / "plots");
  fs::remove(result / "report.html");
  const std::string ledger = (result / "ledger.jsonl").string();
  const Finished plot = assay("plot " + ledger + " --out again");
  ASSERT_EQ(plot.status, 0) << plot.err;
  EXPECT_TRUE(read_file(directory_ / "again" / "throughput.svg") == picture);
  const Finished report = assay("report " + ledger + " --format html --out again");
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(read_file(directory_ / "again" / "report.html") == page);
}

TEST_F(Experiment, json_is_the_only_thing_on_standard_output_when_asked_for) {
  const Finished run = assay(
      "compare --stores sqlite,lmdb --workload durable-put --trials 2 --json"
      " --google-benchmark-json gb.json" +
      kTiny);
  ASSERT_EQ(run.status, 0) << run.err;
  const json verdict = json::parse(run.out, nullptr, false);
  ASSERT_FALSE(verdict.is_discarded()) << run.out;
  EXPECT_TRUE(verdict.contains("comparisons") || verdict.at("body").contains("comparisons"));
  const json google = json::parse(read_file(directory_ / "gb.json"), nullptr, false);
  ASSERT_FALSE(google.is_discarded());
  EXPECT_TRUE(google.contains("context"));
  EXPECT_FALSE(google.at("benchmarks").empty());
}

TEST_F(Experiment, an_interrupted_run_keeps_what_was_done_and_resumes) {
  write_file(directory_ / "ledgers/tiny/experiment.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 12\nroot = \"bench\"\n"
             "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
             "[workload_overrides]\n\"keys.count\" = 2000\n\"phases.run.duration_ms\" = 150\n"
             "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n");
  const Finished stopped = shell("'" ASSAY_COMMAND
                                 "' run tiny & pid=$!; "
                                 "for i in $(seq 600); do sleep 0.1; "
                                 "[ \"$(grep -c '\"kind\":\"trial\"' ledgers/tiny/ledger.jsonl "
                                 "2>/dev/null || true)\" -ge 3 ] 2>/dev/null && break; done; "
                                 "kill -INT $pid; wait $pid");
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  const auto before = ledger_of(directory_ / "ledgers/tiny/ledger.jsonl");
  EXPECT_EQ(before.back().at("kind"), "interrupted");
  std::size_t trials_before = 0;
  for (const json& record : before) trials_before += record.at("kind") == "trial" ? 1U : 0U;
  EXPECT_GE(trials_before, 3U);

  const Finished resumed = assay("run tiny");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const auto after = ledger_of(directory_ / "ledgers/tiny/ledger.jsonl");
  EXPECT_EQ(after.back().at("kind"), "verdict");
  std::size_t plans = 0;
  std::size_t trials = 0;
  for (const json& record : after) {
    plans += record.at("kind") == "plan" ? 1U : 0U;
    trials += record.at("kind") == "trial" ? 1U : 0U;
  }
  EXPECT_EQ(plans, 1U);         // the same result went on
  EXPECT_GE(trials, 12U * 4U);  // two arms and two references
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], after[i]);
}

TEST_F(Experiment, a_changed_plan_under_a_recorded_name_is_refused) {
  const std::string plan =
      "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 2\nroot = \"bench\"\n"
      "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
      "[workload_overrides]\n\"keys.count\" = 2000\n\"phases.run.duration_ms\" = 100\n"
      "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n";
  write_file(directory_ / "ledgers/tiny/experiment.toml", plan);
  ASSERT_EQ(assay("run tiny").status, 0);
  std::string changed = plan;
  changed.replace(changed.find("2000"), 4, "3000");
  write_file(directory_ / "ledgers/tiny/experiment.toml", changed);
  const Finished refused = assay("run tiny");
  EXPECT_EQ(refused.status, 6) << refused.err;
  EXPECT_NE(refused.err.find("keys.count"), std::string::npos) << refused.err;
}

TEST_F(Experiment, a_rerun_goes_beside_a_recorded_result) {
  write_file(directory_ / "ledgers/tiny/experiment.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 2\nroot = \"bench\"\n"
             "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
             "[workload_overrides]\n\"keys.count\" = 2000\n\"phases.run.duration_ms\" = 100\n"
             "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n");
  ASSERT_EQ(assay("run tiny").status, 0);
  ASSERT_EQ(assay("run tiny").status, 0);
  std::size_t results = 0;
  for (const auto& entry : fs::directory_iterator(directory_ / "results/tiny")) {
    results += entry.is_directory() ? 1U : 0U;
  }
  EXPECT_EQ(results, 2U);
}

TEST_F(Experiment, a_store_that_lies_is_caught_and_disqualified) {
  for (const char* lie : {"lose_last", "wrong_value", "lose_key", "ghost_key"}) {
    const Finished run = assay("compare --stores " ASSAY_LYING_STORE
                               ",lmdb --workload durable-put --trials 2"
                               " --set liblying_store.lie=" +
                               std::string(lie) + kTiny);
    EXPECT_EQ(run.status, 8) << lie << "\n" << run.err << run.out;
    EXPECT_NE((run.out + run.err).find("disqualified"), std::string::npos) << lie << run.out;
  }
}

TEST_F(Experiment, a_full_disk_makes_trials_void_and_loses_nothing) {
  // A limit on the size of files is what an unprivileged process can have of a full disk.
  const Finished run = shell(
      "ulimit -f 4096; assay compare --stores sqlite,lmdb --workload "
      "fillrandom --trials 2 --set workload.values.bytes=2000"
      " --set workload.keys.count=10000 --no-a-a --root bench");
  EXPECT_TRUE(run.status == 5 || run.status == 7 || run.status == 9) << run.status << run.err;
  EXPECT_FALSE(run.err.empty());
  if (fs::exists(directory_ / "bench")) {
    EXPECT_TRUE(fs::is_empty(directory_ / "bench"));
  }
}

TEST_F(Experiment, a_killed_command_leaves_a_ledger_that_can_be_read_and_resumed) {
  write_file(directory_ / "ledgers/tiny/experiment.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 6\nroot = \"bench\"\n"
             "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
             "[workload_overrides]\n\"keys.count\" = 2000\n\"phases.run.duration_ms\" = 100\n"
             "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n");
  const Finished killed = shell("'" ASSAY_COMMAND
                                "' run tiny & pid=$!; "
                                "for i in $(seq 600); do sleep 0.1; "
                                "[ \"$(grep -c '\"kind\":\"trial\"' ledgers/tiny/ledger.jsonl "
                                "2>/dev/null || true)\" -ge 2 ] 2>/dev/null && break; done; "
                                "kill -KILL $pid; wait $pid; sleep 0.5");
  const Finished resumed = assay("run tiny");
  EXPECT_EQ(resumed.status, 0) << killed.err << resumed.err;
  const auto records = ledger_of(directory_ / "ledgers/tiny/ledger.jsonl");
  EXPECT_EQ(records.back().at("kind"), "verdict");
  EXPECT_TRUE(!fs::exists(directory_ / "bench") || fs::is_empty(directory_ / "bench"));
}

TEST_F(Experiment, reports_and_plots_speak_json_too) {
  ASSERT_EQ(
      assay("compare --stores lmdb --workload durable-put --trials 2 --no-report" + kTiny).status,
      0);
  const std::string ledger = (only_run(directory_) / "ledger.jsonl").string();
  const json report = json::parse(assay("report " + ledger + " --json").out, nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report.at("verdict").at("n"), 2);
  const json plot =
      json::parse(assay("plot " + ledger + " --json --out figures").out, nullptr, false);
  ASSERT_TRUE(plot.is_object());
  ASSERT_FALSE(plot.at("figures").empty());
  EXPECT_TRUE(fs::exists(directory_ / plot.at("figures")[0].at("svg").get<std::string>()));
  const json page = json::parse(assay("report " + ledger + " --format html --json --out page").out,
                                nullptr, false);
  ASSERT_TRUE(page.is_object());
  EXPECT_TRUE(fs::exists(directory_ / page.at("written")[0].get<std::string>()));
}

TEST_F(Experiment, tells_before_the_run_what_it_can_see) {
  const Finished run =
      assay("compare --stores lmdb --workload durable-put --trials 2 --cv-percent 4" + kTiny);
  ASSERT_EQ(run.status, 0) << run.err;
  const std::size_t told = run.err.find("power: 2 trials an arm see differences from ");
  ASSERT_NE(told, std::string::npos) << run.err;
  EXPECT_LT(told, run.err.find("[1/"));
  EXPECT_NE(run.out.find("Smallest effect that 2 trials an arm can see"), std::string::npos)
      << run.out;
}

// Twenty kills at moments that a seed decides, from before the first record to the verdict. Nothing
// that was recorded may change, nobody may stay behind, and the next run goes on.
TEST_F(Experiment, that_is_killed_at_any_moment_loses_nothing_and_leaves_nobody) {
  write_file(directory_ / "ledgers/tiny/experiment.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 8\nroot = \"bench\"\n"
             "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
             "[workload_overrides]\n\"keys.count\" = 500\n\"phases.run.duration_ms\" = 30\n"
             "\"phases.run.warm_up.operations\" = 5\n"
             "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n");
  const fs::path ledger = directory_ / "ledgers/tiny/ledger.jsonl";
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::string recorded;
  for (int kill = 0; kill < 20; ++kill) {
    const double after_s = static_cast<double>(random() % 1400) / 1000.0;
    const Finished killed =
        shell(fmt::format("'" ASSAY_COMMAND "' run tiny --no-report >/dev/null & pid=$!; "
                          "sleep {:.3f}; kill -KILL $pid; wait $pid",
                          after_s));
    const std::string now = fs::exists(ledger) ? read_file(ledger) : std::string();
    // A torn line at the end is set aside by the next run, and is all that may ever go.
    const std::string whole = recorded.substr(0, recorded.rfind('\n') + 1);
    ASSERT_TRUE(now.starts_with(whole)) << "kill " << kill << " after " << after_s;
    recorded = now;
  }
  const Finished left = shell(
      "sleep 0.3; for p in $(pgrep -x assay); do readlink /proc/$p/cwd; done | grep -Fx \"$PWD\" "
      "|| true");
  EXPECT_EQ(left.out, "");
  const Finished done = assay("run tiny");
  ASSERT_EQ(done.status, 0) << done.err;
  const auto records = ledger_of(ledger);  // every line parses
  EXPECT_EQ(records.back().at("kind"), "verdict");
  EXPECT_EQ(assay("report tiny").status, 0);  // chain and raw records hold
  for (const auto& entry : fs::recursive_directory_iterator(directory_ / "bench")) {
    ADD_FAILURE() << "left behind: " << entry.path();
  }
}

TEST_F(Experiment, is_refused_while_another_run_of_it_is_at_work) {
  write_file(directory_ / "ledgers/tiny/experiment.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrials = 3\nroot = \"bench\"\n"
             "a_a = false\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
             "[workload_overrides]\n\"keys.count\" = 500\n\"phases.run.duration_ms\" = 200\n"
             "[[arms]]\nstore = \"lmdb\"\n");
  const Finished both = shell(
      "assay run tiny --no-report >/dev/null 2>first & pid=$!; "
      "for i in $(seq 600); do sleep 0.05; grep -q plan ledgers/tiny/ledger.jsonl 2>/dev/null && "
      "break; done; assay run tiny --no-report; echo \"second $?\"; wait $pid; echo \"first $?\"");
  EXPECT_EQ(both.out, "second 7\nfirst 0\n") << both.err;
  EXPECT_NE(both.err.find("another assay is running this experiment"), std::string::npos)
      << both.err;
}

}  // namespace
}  // namespace assay::end_to_end
