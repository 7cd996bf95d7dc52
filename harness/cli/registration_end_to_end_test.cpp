// End to end: registration, its refusals and their exit statuses, by the built command.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Registration : public EndToEnd {
 protected:
  void declare(const std::string& root_keys, const std::string& tables = "") const {
    write_file(directory_ / "ledgers" / "tiny" / "experiment.toml",
               "name = \"tiny\"\nworkload = \"durable-put\"\nroot = \"" +
                   (directory_ / "bench").string() +
                   "\"\nreferences = []\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
                   "frequency_change_max = 0\neffect_percent = 10000\n" +
                   root_keys +
                   "[workload_overrides]\nkeys.count = 500\nphases.run.duration_ms = 60\n"
                   "phases.run.warm_up.operations = 5\n[[arms]]\nstore = \"sqlite\"\n" +
                   tables);
  }
  [[nodiscard]] std::vector<json> records() const {
    std::vector<json> all;
    std::istringstream lines(read_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
    return all;
  }
};

TEST_F(Registration, and_plan_are_told_as_json_and_effects_that_mean_nothing_are_refused) {
  declare("trials = 2\na_a = false\n");
  const json registered = json::parse(assay("register tiny --json").out);
  EXPECT_EQ(registered["schema"], 1);
  EXPECT_TRUE(registered["is_new"].get<bool>());
  EXPECT_EQ(registered["digest"], records()[0]["body"]["digest"]);
  const json plan = json::parse(assay("plan tiny --json").out);
  EXPECT_EQ(plan["digest"], registered["digest"]);
  EXPECT_EQ(plan["registration"]["record"], registered["record"]);
  const json power = json::parse(assay("plan tiny --effect 1.02 --cv-percent 5 --json").out);
  EXPECT_NEAR(power["effect_percent"].get<double>(), 2.0, 1e-9);
  EXPECT_NE(power["sentence"].get<std::string>().find("asked for with --effect"),
            std::string::npos);
  EXPECT_EQ(assay("plan tiny --effect 0").status, 2);
  EXPECT_EQ(assay("plan tiny --power --cv-percent 0").status, 2);
}

TEST_F(Registration, comes_before_the_run_that_does_exactly_what_it_says) {
  declare("trials = 2\na_a = false\n");
  const Finished done = assay("register ledgers/tiny/experiment.toml");
  ASSERT_EQ(done.status, 0) << done.err;
  const auto before = records();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0]["kind"], "registration");
  const std::string digest = before[0]["body"]["digest"];
  EXPECT_NE(done.out.find(digest), std::string::npos) << done.out;
  const Finished again = assay("register tiny");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("registered before"), std::string::npos) << again.out;

  const Finished run = assay("run tiny");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto all = records();
  EXPECT_EQ(all[1]["kind"], "plan");
  EXPECT_EQ(all[1]["body"]["digest"], digest);
  EXPECT_NE(run.out.find("REGISTERED"), std::string::npos) << run.out;

  const Finished fewer = assay("run tiny --trials 3");
  EXPECT_EQ(fewer.status, 2) << fewer.err;
  declare("trials = 3\na_a = false\n");
  const Finished changed = assay("run tiny");
  EXPECT_EQ(changed.status, 6) << changed.err;
  EXPECT_NE(changed.err.find("trials: 2 -> 3"), std::string::npos) << changed.err;
  EXPECT_EQ(assay("register tiny").status, 6);
  const Finished shown = assay("plan tiny");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.err.find("NOT as it is registered: trials: 2 -> 3"), std::string::npos)
      << shown.err;
}

TEST_F(Registration, of_an_experiment_without_a_place_is_refused) {
  declare("trials = 2\n");
  fs::copy(directory_ / "ledgers" / "tiny" / "experiment.toml", directory_ / "loose.toml");
  const Finished refused = assay("register loose.toml");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("ledgers/tiny/experiment.toml"), std::string::npos) << refused.err;
  const Finished unknown = assay("register tony");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("did you mean 'tiny'?"), std::string::npos) << unknown.err;
}

TEST_F(Registration, has_a_status_of_its_own_for_every_end) {
  // No flushes, so that a loaded machine cannot hide a delay of 5 ms.
  declare("trials = 4\na_a = false\ndurability = \"process\"\n",
          "[positive_control]\ndelay_ns = 5_000_000\n"
          "[[arms]]\nname = \"again\"\nstore = \"sqlite\"\n"
          "[[hypotheses]]\na = \"sqlite\"\nb = \"again\"\nkind = \"equivalence\"\n"
          "margin_percent = 5000\n");
  const Finished held = assay("run tiny");
  ASSERT_EQ(held.status, 0) << held.err << held.out;
  EXPECT_NE(held.out.find("the injected delay of 5000000 ns a call was seen"), std::string::npos)
      << held.out;
  ASSERT_EQ(assay("accept tiny --note 'the first'").status, 0);
  EXPECT_EQ(records().back()["kind"], "accept");
  EXPECT_EQ(records().back()["body"]["note"], "the first");
  EXPECT_EQ(assay("accept tiny --result nothing").status, 2);

  // The clock stands before the last record.
  auto lines = read_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl");
  write_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl",
             R"({"body":{},"kind":"note","previous":")" + std::string(64, '0') +
                 R"(","schema":1,"seq":0,"time":"2999-01-01T00:00:00Z"})" + "\n");
  const Finished early = assay("run tiny");
  EXPECT_EQ(early.status, 7) << early.err;
  EXPECT_NE(early.err.find("2999-01-01T00:00:00Z"), std::string::npos) << early.err;

  // Registered after the run: the ledger is gone, its samples are not.
  fs::remove(directory_ / "ledgers" / "tiny" / "ledger.jsonl");
  const Finished late = assay("register tiny");
  EXPECT_EQ(late.status, 6) << late.err;

  // A sample was dropped from the ledger.
  const std::size_t second = lines.find('\n') + 1;
  const std::size_t third = lines.find('\n', second) + 1;
  lines.erase(second, third - second);
  write_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl", lines);
  EXPECT_EQ(assay("run tiny").status, 10);
}

TEST_F(Registration, tells_how_many_trials_a_wanted_effect_takes) {
  declare("trials = 3\na_a = false\ncv_percent = 4\n");
  // Published: a margin of 2 % takes 64 to 65 values an arm at a CV of 4 %, power 0.8.
  const Finished told = assay("plan tiny --power --effect 1.02");
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("an effect of 1.02x takes 65 trials an arm"), std::string::npos)
      << told.out;
  EXPECT_EQ(assay("plan tiny --effect 0.9").status, 2);
}

TEST_F(Registration, a_calibration_is_recorded_with_what_it_found) {
  const Finished done = assay(
      "calibrate --store null --workload ycsb-c --durability volatile --experiments 6 --trials 2"
      " --set keys.count=200 --set phases.run.duration_ms=5"
      " --root bench --out cal");
  ASSERT_TRUE(done.status == 0 || done.status == 3) << done.err;
  // Of six, but a loaded machine can make one void.
  EXPECT_NE(done.out.find(" A/A experiments ("), std::string::npos) << done.out;
  const std::string text = read_file(directory_ / "cal" / "ledger.jsonl");
  EXPECT_NE(text.find("\"kind\":\"calibration\""), std::string::npos);

  const Finished told = assay(
      "calibrate --store null --workload ycsb-c --durability volatile --experiments 2 --trials 2"
      " --set keys.count=200 --set phases.run.duration_ms=5 --root bench --out cal2 --json");
  ASSERT_TRUE(told.status == 0 || told.status == 3) << told.err;
  const json figures = json::parse(told.out);
  EXPECT_EQ(figures["calibration"]["experiments"], 2);
  EXPECT_EQ(figures["calibration"]["ok"], told.status == 0);
  EXPECT_EQ(figures["head"].get<std::string>().size(), 64U);
}

TEST_F(Registration, a_calibration_that_was_stopped_by_a_signal_goes_on_where_it_was) {
  const std::string calibrate =
      "'" ASSAY_COMMAND  // and no function of the shell, so that $! is the command itself
      "' calibrate --store null --workload ycsb-c --durability volatile --experiments 5"
      " --trials 2 --set keys.count=200 --set phases.run.duration_ms=40 --root bench --out cal";
  const Finished stopped =
      shell(calibrate +
            " & running=$!; while kill -0 $running 2>/dev/null &&"
            " ! grep -q '\"kind\":\"verdict\"' cal/ledger.jsonl 2>/dev/null; do sleep 0.01; done;"
            " kill -INT $running; wait $running");
  ASSERT_EQ(stopped.status, 130) << stopped.out << stopped.err;
  EXPECT_NE(stopped.err.find("of 5 experiments"), std::string::npos) << stopped.err;
  const Finished whole = shell(calibrate);
  ASSERT_TRUE(whole.status == 0 || whole.status == 3) << whole.err;
  int verdicts = 0;
  int calibrations = 0;
  std::istringstream lines(read_file(directory_ / "cal" / "ledger.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    verdicts += record.at("kind") == "verdict" ? 1 : 0;
    calibrations += record.at("kind") == "calibration" ? 1 : 0;
  }
  EXPECT_EQ(verdicts, 5);
  EXPECT_EQ(calibrations, 1);
}

}  // namespace
}  // namespace assay::end_to_end
