// End to end: demands of a plan on the machine, reproduction, the gate and the page over all
// ledgers, by the built command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Reproduction : public EndToEnd {
 protected:
  void declare(const std::string& root_keys, const std::string& arms) const {
    write_file(directory_ / "ledgers" / "tiny" / "experiment.toml",
               "name = \"tiny\"\nquestion = \"which is faster?\"\nworkload = \"mine.toml\"\n"
               "root = \"" +
                   (directory_ / "bench").string() +
                   "\"\nreferences = [\"null\"]\nforeign_cpus_max = 0\nsteal_share_max = 0\n"
                   "frequency_change_max = 0\neffect_percent = 10000\ndurability = \"process\"\n" +
                   root_keys + arms);
    write_file(directory_ / "ledgers" / "tiny" / "mine.toml",
               "name = \"mine\"\n[keys]\ncount = 500\n[values]\nbytes = 100\n"
               "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\nname = \"run\"\n"
               "duration_ms = 60\n[[phases.roles]]\nname = \"w\"\nmix = { update = 1 }\n");
  }
  static constexpr const char* kTwoArms =
      "[[arms]]\nstore = \"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n"
      "[[hypotheses]]\na = \"lmdb\"\nb = \"sqlite\"\nkind = \"equivalence\"\n"
      "margin_percent = 10000\n";
  [[nodiscard]] json last_record() const {
    std::istringstream lines(read_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl"));
    json last;
    for (std::string line; std::getline(lines, line);) last = json::parse(line);
    return last;
  }
};

TEST_F(Reproduction, needs_the_ledger_alone_and_says_what_is_confirmed) {
  declare("trials = 4\na_a = false\n", kTwoArms);
  const Finished first = assay("run tiny --no-report");
  ASSERT_EQ(first.status, 0) << first.err;
  // Only the ledger is left: no plan, no workload, no raw records.
  fs::remove(directory_ / "ledgers" / "tiny" / "experiment.toml");
  fs::remove(directory_ / "ledgers" / "tiny" / "mine.toml");
  fs::remove_all(directory_ / "results");
  const std::string before = read_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl");

  const Finished looked = assay("reproduce tiny: --look");
  EXPECT_EQ(looked.status, 0) << looked.err;
  EXPECT_NE(looked.out.find("plan: the same"), std::string::npos) << looked.out;
  EXPECT_NE(looked.out.find("binary: the same"), std::string::npos) << looked.out;

  const Finished again = assay("reproduce ledgers/tiny/ledger.jsonl --no-report --json");
  ASSERT_TRUE(again.status == 0 || again.status == 3) << again.err;
  const json told = json::parse(again.out);
  EXPECT_EQ(told["confirmation"]["confirmed"], again.status == 0);
  const json& one = told["confirmation"]["comparisons"][0];
  EXPECT_EQ(one["earlier"]["verdict"], "equivalent");
  EXPECT_EQ(one["now"]["verdict"], "equivalent");
  EXPECT_EQ(one["same_verdict"], true);
  const std::string ledger = told["now"]["ledger"];
  EXPECT_TRUE(ledger.starts_with("runs/tiny-")) << ledger;
  EXPECT_NE(read_file(directory_ / ledger).find("\"status\":\"exploratory\""), std::string::npos);
  EXPECT_EQ(read_file(directory_ / "ledgers" / "tiny" / "ledger.jsonl"), before);
}

TEST_F(Reproduction, of_what_is_not_so_ends_with_a_status_of_its_own) {
  declare("trials = 4\na_a = false\n", kTwoArms);
  ASSERT_EQ(assay("run tiny --no-report").status, 0);
  // A ledger that claims sqlite to be a hundred times lmdb: nobody will find that again. It is
  // chained anew with the record that precedes, as a forger would.
  const fs::path path = directory_ / "ledgers" / "tiny" / "ledger.jsonl";
  std::string text = read_file(path);
  const std::size_t start = text.rfind('\n', text.size() - 2) + 1;
  json verdict = json::parse(text.substr(start));
  verdict["body"]["comparisons"][0]["interval"] = {900.0, 1100.0};
  verdict["body"]["comparisons"][0]["ratio"] = 1000.0;
  write_file(path, text.substr(0, start) + verdict.dump() + "\n");
  const Finished again = assay("reproduce tiny: --no-report");
  EXPECT_EQ(again.status, 3) << again.err << again.out;
  EXPECT_NE(again.out.find("NOT confirmed"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("do not overlap"), std::string::npos) << again.out;
  EXPECT_EQ(assay("reproduce 0123456789abcdef").status, 2);
}

TEST_F(Reproduction, a_gate_holds_the_newest_result_against_the_accepted_one) {
  declare("trials = 4\na_a = false\n", kTwoArms);
  ASSERT_EQ(assay("run tiny --no-report").status, 0);
  EXPECT_EQ(assay("gate tiny --baseline accepted").status, 2);  // none is yet
  ASSERT_EQ(assay("accept tiny").status, 0);
  EXPECT_EQ(assay("gate tiny --baseline accepted").status, 2);  // the newest is the baseline
  const std::string accepted = last_record()["body"]["result"];
  ASSERT_EQ(assay("run tiny --no-report").status, 0);
  const Finished same =
      assay("gate tiny --baseline accepted --corridor 100 --junit gate.xml --markdown gate.md");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.out, "");
  const std::string markdown = read_file(directory_ / "gate.md");
  EXPECT_NE(markdown.find("## tiny: within the corridor"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("| lmdb |"), std::string::npos) << markdown;
  const std::string junit = read_file(directory_ / "gate.xml");
  EXPECT_NE(junit.find("failures=\"0\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("lmdb vs " + accepted), std::string::npos) << junit;

  const Finished history = assay("history tiny --corridor 100 --json");
  ASSERT_EQ(history.status, 0) << history.err;
  EXPECT_EQ(json::parse(history.out)["arms"][1]["points"].size(), 2U) << history.out;
  EXPECT_EQ(assay("history tony").status, 2);

  // The same arms with values 600 times as long: a regression nobody can miss.
  fs::create_directories(directory_ / "slow");
  declare("trials = 4\na_a = false\n", kTwoArms);
  const fs::path plan = directory_ / "ledgers" / "tiny" / "experiment.toml";
  std::string text = read_file(plan);
  text.replace(text.find("mine.toml"), 9, "slow.toml");
  write_file(directory_ / "slow" / "experiment.toml", text);
  write_file(directory_ / "slow" / "slow.toml",
             "name = \"mine\"\n[keys]\ncount = 500\n[values]\nbytes = 65536\n"
             "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\nname = \"run\"\n"
             "duration_ms = 60\n[[phases.roles]]\nname = \"w\"\nmix = { update = 1 }\n");
  ASSERT_EQ(assay("run slow/experiment.toml --no-report --out later").status, 0);
  const Finished slow =
      assay("gate later --baseline tiny:" + accepted + " --corridor 1.2 --junit slow.xml");
  EXPECT_EQ(slow.status, 4) << slow.err << slow.out;
  EXPECT_NE(slow.out.find("**REGRESSION**"), std::string::npos) << slow.out;
  EXPECT_NE(read_file(directory_ / "slow.xml").find("<failure"), std::string::npos);
}

TEST_F(Reproduction, a_plan_that_demands_what_the_machine_lacks_is_refused_before_a_sample) {
  declare("trials = 2\na_a = false\nmachine_demands = [\"lod\"]\n", kTwoArms);
  const Finished typo = assay("run tiny");
  EXPECT_EQ(typo.status, 2);
  EXPECT_NE(typo.err.find("experiment.toml:"), std::string::npos) << typo.err;
  EXPECT_NE(typo.err.find("did you mean \"load\"?"), std::string::npos) << typo.err;

  declare(
      "trials = 2\na_a = false\nmachine_demands = [\"load\", \"thp\", \"governor\", \"turbo\", "
      "\"smt\", \"aslr\", \"swap\", \"throttling\"]\n",
      kTwoArms);
  const Finished doctor = assay("doctor --plan tiny --watch-ms 0 --json");
  const json findings = json::parse(doctor.out);
  std::vector<std::string> unmet;
  for (const json& one : findings) {
    const std::string id = one["id"];
    EXPECT_EQ(one["demanded"], id == "load" || id == "thp" || id == "governor" || id == "turbo" ||
                                   id == "smt" || id == "aslr" || id == "swap" ||
                                   id == "throttling");
    if (one["demanded"] == true && one["state"] != "fine") unmet.push_back(id);
  }
  EXPECT_EQ(doctor.status, unmet.empty() ? 0 : 7);
  const Finished run = assay("run tiny --no-report");
  if (unmet.empty()) GTEST_SKIP() << "this machine is as demanded";
  if (unmet == std::vector<std::string>{"load"}) GTEST_SKIP() << "the load may have gone since";
  EXPECT_EQ(run.status, 7) << run.err;
  for (const std::string& id : unmet) {
    if (id == "load") continue;
    EXPECT_NE(run.err.find("(" + id + "): found"), std::string::npos) << run.err;
  }
  EXPECT_FALSE(fs::exists(directory_ / "ledgers" / "tiny" / "ledger.jsonl"));
}

TEST_F(Reproduction, a_page_shows_every_result_of_every_ledger) {
  declare("trials = 2\na_a = false\n", kTwoArms);
  ASSERT_EQ(assay("run tiny").status, 0);
  ASSERT_EQ(assay("compare --stores lmdb,sqlite --workload ycsb-c --trials 2 --no-report "
                  "--durability volatile --set keys.count=200 --set phases.run.duration_ms=5 "
                  "--root bench")
                        .status %
                    256 <=
                5,
            true);
  const Finished page = assay("report --all --out site");
  ASSERT_EQ(page.status, 0) << page.err;
  const std::string html = read_file(directory_ / "site" / "index.html");
  EXPECT_NE(html.find("which is faster?"), std::string::npos);
  EXPECT_NE(html.find("REGISTERED"), std::string::npos);
  EXPECT_NE(html.find("EXPLORATORY"), std::string::npos);
  const std::size_t link = html.find("href=\"../results/tiny/");
  ASSERT_NE(link, std::string::npos) << html;
  const std::size_t begin = link + 6;
  const std::string target = html.substr(begin, html.find('"', begin) - begin);
  EXPECT_TRUE(fs::exists(directory_ / "site" / target)) << target;
  EXPECT_EQ(assay("report").status, 2);
}

}  // namespace
}  // namespace assay::end_to_end
