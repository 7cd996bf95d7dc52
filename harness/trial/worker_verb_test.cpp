// A trial whose children are the built command itself, as in use.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "adapters/temporary_directory.h"
#include "harness/trial/trial.h"

namespace assay {
namespace {

TEST(WorkerVerb, of_the_built_command_runs_a_trial) {
  const TemporaryDirectory own;
  const std::string& root = own.path();
  const Result<Workload> workload = parse_workload(
      "name = \"small\"\n[keys]\ncount = 200\n[[phases]]\nkind = \"load\"\n"
      "[[phases]]\nkind = \"run\"\noperations = 100\n"
      "[[phases.roles]]\nmix = { read = 0.5, update = 0.5 }\n",
      "small.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  TrialRequest request;
  request.arm.name = "lmdb";
  request.arm.store = "lmdb";
  request.workload = *workload;
  request.root = root;
  request.log_path = root + "/trial.log";
  request.binary = ASSAY_TEST_COMMAND;
  const std::atomic<bool> stop{false};
  const Result<nlohmann::json> record = run_trial(request, stop);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->at("status"), "ok") << record->at("reason");
  EXPECT_TRUE(record->at("validation").at("ok"));
}

}  // namespace
}  // namespace assay
