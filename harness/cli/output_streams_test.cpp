// End to end: output that cannot be written is one message and the documented exit status, and
// never the end of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

using OutputStreams = EndToEnd;

const std::string kCompare =
    "compare --stores lmdb --workload durable-put --trials 2 --no-a-a --no-report --root bench "
    "--out result --durability process --foreign-cpus-max 0 --steal-share-max 0 "
    "--set keys.count=100 --set phases.run.duration_ms=20 ";

void expect_one_message(const Finished& run, const std::string& line) {
  EXPECT_EQ(run.status, 7) << line << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << line << run.err;
  EXPECT_NE(run.err.find("cannot write to standard output"), std::string::npos) << line << run.err;
}

TEST_F(OutputStreams, a_full_standard_output_is_one_message_and_the_status_of_the_environment) {
  for (const char* line :
       {"workload list", "workload trace ycsb-a --set keys.count=1000 --operations 20000",
        "store list", "store show lmdb", "--help"}) {
    expect_one_message(assay(std::string(line) + " >/dev/full"), line);
  }
}

TEST_F(OutputStreams, a_closed_standard_output_gets_no_file_of_ours) {
  expect_one_message(assay("workload list >&-"), "closed");
  const Finished run = assay(kCompare + ">&- 2>&-");
  EXPECT_EQ(run.status, 7);
  EXPECT_EQ(assay("report result").status, 0);
}

TEST_F(OutputStreams, a_run_whose_output_cannot_be_written_ends_with_its_verdict) {
  const Finished full = assay(kCompare + ">/dev/full");
  EXPECT_EQ(full.status, 7) << full.err;
  EXPECT_NE(full.err.find("cannot write to standard output"), std::string::npos) << full.err;
  EXPECT_NE(read_file(directory_ / "result/ledger.jsonl").find("\"kind\":\"verdict\""),
            std::string::npos);
  expect_one_message(assay("report result >/dev/full"), "report");
  expect_one_message(assay("report --json result >/dev/full"), "report --json");
}

TEST_F(OutputStreams, progress_that_cannot_be_written_does_not_end_a_run) {
  EXPECT_EQ(assay(kCompare + "2>/dev/full").status, 0);
  std::filesystem::remove_all(directory_ / "result");
  EXPECT_EQ(assay(kCompare + "2> >(exec 0<&-)").status, 0);  // a reader that went away
}

TEST_F(OutputStreams, a_reader_that_has_enough_ends_the_command_quietly) {
  const Finished run = shell("assay workload trace ycsb-a --operations 1000000 | head -n 1");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1) << run.out;
}

}  // namespace
}  // namespace assay::end_to_end
