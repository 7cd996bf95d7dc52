// End to end: `assay ledger` over a ledger that a run wrote, and over what was done to it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class LedgerVerb : public EndToEnd {
 protected:
  /// A complete exploratory comparison of two stores in the folder `out`.
  void compare(const std::string& out) const {
    const Finished run = assay(
        "compare --stores sqlite,lmdb --workload durable-put --trials 2 --set keys.count=500"
        " --set phases.run.duration_ms=50 --set phases.run.warm_up.operations=10 --no-a-a"
        " --root bench --foreign-cpus-max 0 --steal-share-max 0 --out " +
        out);
    ASSERT_EQ(run.status, 0) << run.err << run.out;
  }
  void expect_refusal(const std::string& arguments, int status, const std::string& part) const {
    const Finished run = assay("ledger " + arguments);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  [[nodiscard]] std::string schema(const std::string& arguments) const {
    const Finished run = shell("'" ASSAY_PYTHON "' '" ASSAY_VALIDATE_SCHEMA "' " + arguments);
    return run.status == 0 ? "" : run.out + run.err;
  }
};

TEST_F(LedgerVerb, verifies_lists_shows_asks_and_hands_on_what_a_run_wrote) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  // What the code writes fits its schema, and what it hands on the current one.
  EXPECT_EQ(schema("a/ledger.jsonl"), "");
  EXPECT_EQ(schema("--offences a/ledger.jsonl"), "");
  const Finished sound = assay("ledger verify a");
  EXPECT_EQ(sound.status, 0) << sound.out;
  EXPECT_NE(sound.out.find("a/ledger.jsonl: sound: "), std::string::npos) << sound.out;
  const json verified = json::parse(assay("ledger verify a --json").out);
  const std::string head = verified["ledgers"][0]["head"];
  EXPECT_EQ(assay("ledger verify a --head " + head).status, 0);
  EXPECT_EQ(assay("ledger verify a --head " + std::string(64, 'a')).status, 10);

  const json list = json::parse(assay("ledger list a --json").out);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["status"], "exploratory");
  const std::string hash = list[0]["verdict_hash"];
  const json shown = json::parse(assay("ledger show a:" + hash.substr(0, 12) + " --json").out);
  EXPECT_EQ(shown["kind"], "verdict");
  EXPECT_EQ(json::parse(assay("ledger show a/ledger.jsonl:1 --json").out)["kind"], "plan");

  const Finished rows =
      assay("ledger query \"SELECT arm, n FROM rows WHERE NOT reference\" a --csv");
  EXPECT_EQ(rows.status, 0) << rows.err;
  EXPECT_EQ(std::count(rows.out.begin(), rows.out.end(), '\n'), 3) << rows.out;
  EXPECT_EQ(assay("ledger export a --format csv --table trials").status, 0);
  const json exported = json::parse(assay("ledger export a --format json").out);
  EXPECT_EQ(exported.size(), verified["ledgers"][0]["records"]);
  const json google = json::parse(assay("ledger export a --format google-benchmark").out);
  EXPECT_FALSE(google["benchmarks"].empty());
  const Finished junit = assay("ledger export a --format junit --out j.xml");
  EXPECT_EQ(junit.status, 0) << junit.err;
  EXPECT_NE(read_file(directory_ / "j.xml").find("<testsuite "), std::string::npos);
}

TEST_F(LedgerVerb, finds_an_edited_ledger_and_an_edited_raw_record_with_status_10) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(shell("echo >> a/trials/0000-*.json").status, 0);
  Finished bad = assay("ledger verify a");
  EXPECT_EQ(bad.status, 10);
  EXPECT_NE(bad.out.find("was changed"), std::string::npos) << bad.out;
  EXPECT_EQ(assay("ledger verify a --raw none").status, 0);
  ASSERT_EQ(shell("sed -i '3s/\"attempt\":0/\"attempt\":1/' a/ledger.jsonl").status, 0);
  bad = assay("ledger verify a --raw none");
  EXPECT_EQ(bad.status, 10);
  EXPECT_NE(bad.out.find("a/ledger.jsonl:3: "), std::string::npos) << bad.out;
  expect_refusal("list a", 10, "a/ledger.jsonl:4: ");
  expect_refusal("query \"SELECT 1 FROM trials\" a", 10, "a/ledger.jsonl:4: ");
}

TEST_F(LedgerVerb, merges_two_runs_and_tells_what_they_differ_in) {
  compare("a");
  compare("b");
  ASSERT_FALSE(HasFatalFailure());
  const Finished merged = assay("ledger merge a b --out all.jsonl");
  ASSERT_EQ(merged.status, 0) << merged.err;
  const Finished sound = assay("ledger verify all.jsonl");
  EXPECT_EQ(sound.status, 0) << sound.out;
  EXPECT_EQ(schema("all.jsonl"), "");
  EXPECT_EQ(schema("--offences all.jsonl"), "");
  EXPECT_EQ(json::parse(assay("ledger list all.jsonl --json").out).size(), 2U);
  const Finished diff = assay("ledger diff a b");
  EXPECT_EQ(diff.status, 0) << diff.err;
  EXPECT_NE(diff.out.find("binary: the same"), std::string::npos) << diff.out;
  expect_refusal("merge a b --out all.jsonl", 2, "there already");
}

TEST_F(LedgerVerb, refuses_bad_input_with_one_message) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  expect_refusal("verify nowhere", 2, "no ledger \"nowhere\"");
  expect_refusal("verify a --head abc", 2, "64 digits");
  expect_refusal("show a:9999", 2, "no line 9999");
  expect_refusal("show ffffffff --ledger a", 2, "nothing in a/ledger.jsonl");
  expect_refusal("query \"SELECT * FROM trails\" a", 2, "did you mean trials?");
  expect_refusal("query \"DELETE FROM trials\" a", 2, "only reads");
  expect_refusal("export a --format csv --table row", 2, "did you mean rows?");
  expect_refusal("export a --format junit --out a", 2, "a directory, not a file");
  expect_refusal("verfy a", 2, "did you mean 'verify'?");
  expect_refusal("", 2, "takes a verb of its own (valid: verify, list");
  expect_refusal("list a b --bref", 2, "--bref");
  expect_refusal("list", 2, "no ledger below ledgers/ or runs/");
}

TEST_F(LedgerVerb, never_writes_an_answer_over_a_ledger_or_makes_a_file_of_a_pipe) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  const std::string before = read_file(directory_ / "a/ledger.jsonl");
  ASSERT_EQ(shell("cp a/ledger.jsonl copy.txt; ln -s a/ledger.jsonl link; mkfifo pipe").status, 0);
  for (const char* over : {"a/ledger.jsonl", "copy.txt", "link"}) {
    for (const char* verb :
         {"ledger export a --format csv --out ", "report a --out ", "report a --json --out ",
          "gate a --baseline a --junit ", "gate a --baseline a --markdown ",
          "compare --stores sqlite,lmdb --workload durable-put --google-benchmark-json "}) {
      const Finished run = assay(std::string(verb) + over);
      EXPECT_EQ(run.status, 2) << verb << over << run.err;
    }
  }
  EXPECT_TRUE(read_file(directory_ / "a/ledger.jsonl") == before);
  EXPECT_TRUE(read_file(directory_ / "copy.txt") == before);
  const Finished piped = shell("timeout 20 cat pipe >got & assay report a --out pipe && wait");
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_TRUE(std::filesystem::is_fifo(directory_ / "pipe"));
  EXPECT_NE(read_file(directory_ / "got"), "");
}

TEST_F(LedgerVerb, makes_no_directory_of_a_file_and_keeps_pictures_that_it_cannot_draw_again) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  write_file(directory_ / "f.txt", "kept");
  EXPECT_EQ(assay("plot a --out f.txt").status, 2);
  EXPECT_EQ(assay("report a --format html --out f.txt").status, 2);
  EXPECT_EQ(assay("report --all a --out f.txt").status, 2);
  EXPECT_EQ(read_file(directory_ / "f.txt"), "kept");
  write_file(directory_ / "bin/gnuplot", "#!/bin/sh\nexit 3\n");
  ASSERT_TRUE(fs::exists(directory_ / "a/plots/throughput.svg"));
  const Finished failed = shell("chmod +x bin/gnuplot; PATH=$PWD/bin:$PATH assay plot a");
  EXPECT_EQ(failed.status, 7) << failed.err;
  EXPECT_TRUE(fs::exists(directory_ / "a/plots/throughput.svg"));
}

TEST_F(LedgerVerb, refuses_names_that_nothing_has_and_flags_that_mean_nothing) {
  compare("a");
  ASSERT_FALSE(HasFatalFailure());
  const std::string result = json::parse(assay("ledger list a --json").out)[0]["result"];
  for (const std::string format : {"csv", "json", "junit", "google-benchmark"}) {
    const std::string verb = "export a --format " + format;
    expect_refusal(verb + " --result " + result + "x", 2, "did you mean " + result + "?");
    expect_refusal(verb + " --machine zzz", 2, "of a machine \"zzz\"");
    EXPECT_EQ(assay("ledger " + verb + " --result " + result).status, 0);
  }
  expect_refusal("export a --format json --table rows", 2, "--table has no meaning");
  expect_refusal("query --tables \"SELECT 1\"", 2, "--tables lists the tables");
  expect_refusal("query --tables --csv", 2, "--tables lists the tables");
  fs::create_directories(directory_ / "ledgers/demo/ledger.jsonl");
  expect_refusal("list demo", 2, "ledgers/demo/ledger.jsonl: this is a directory");
  expect_refusal("list ledgers/demo", 2, "ledgers/demo/ledger.jsonl: this is a directory");
}

TEST_F(LedgerVerb, reads_ledgers_of_past_schemas_in_the_form_of_the_current_one) {
  const std::string past = "'" ASSAY_LEDGER_TESTDATA "/v1-first.jsonl'";
  EXPECT_EQ(assay("ledger list " + past).status, 0);
  const Finished exported = assay("ledger export " + past + " --format json");
  ASSERT_EQ(exported.status, 0) << exported.err;
  std::string lines;
  for (json record : json::parse(exported.out)) {
    for (const char* more : {"ledger", "line", "hash", "origin", "machine"}) record.erase(more);
    lines += record.dump() + "\n";
  }
  write_file(directory_ / "migrated.jsonl", lines);
  EXPECT_EQ(schema("migrated.jsonl"), "");
}

}  // namespace
}  // namespace assay::end_to_end
