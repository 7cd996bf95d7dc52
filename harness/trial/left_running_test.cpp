// What a store leaves running is ended with its trial and told.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "adapters/temporary_directory.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial.h"

namespace assay {
namespace {

using nlohmann::json;

class LeftRunning : public ::testing::Test {
 protected:
  TrialRequest request(const std::string& call) {
    const Result<Workload> workload = parse_workload(
        "name = \"small\"\n[keys]\ncount = 200\n[values]\nbytes = 40\n"
        "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\noperations = 100\n"
        "[[phases.roles]]\nname = \"clients\"\nmix = { read = 0.5, update = 0.5 }\n",
        "small.toml");
    EXPECT_TRUE(workload) << workload.error().message();
    TrialRequest made;
    made.arm.name = "leaving";
    made.arm.store = ASSAY_TEST_CRASHING_STORE;
    made.arm.durability = DurabilityClass::process;
    made.arm.settings = {{"crash_in", call}, {"crash_how", "leave"}};
    made.workload = *workload;
    made.root = own_.path() + "/bench";
    made.log_path = own_.path() + "/trial.log";
    made.timeout_ms = 30'000;
    made.binary = ASSAY_TEST_CHILD;
    return made;
  }

  /// The processes that the stores said they have left.
  std::vector<pid_t> left() {
    std::vector<pid_t> all;
    std::ifstream log(own_.path() + "/trial.log");
    const std::string mark = "left running: ";
    for (std::string line; std::getline(log, line);)
      if (line.starts_with(mark)) all.push_back(std::stoi(line.substr(mark.size())));
    return all;
  }
  void expect_gone() {
    for (const pid_t one : left()) EXPECT_TRUE(::kill(one, 0) != 0 && errno == ESRCH) << one;
  }

  const TemporaryDirectory own_;
  std::atomic<bool> stop_{false};
};

TEST_F(LeftRunning, in_another_session_is_killed_with_its_trial_and_counted) {
  const Result<json> record = run_trial(request("open"), stop_);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->at("status"), "ok") << record->at("reason");
  EXPECT_EQ(left().size(), 2U) << "one of the measured process, one of the validating one";
  EXPECT_EQ(record->value("left_running", 0U), 2U);
  expect_gone();
}

TEST_F(LeftRunning, by_one_arm_of_a_window_set_takes_no_other_arm_with_it) {
  std::vector<TrialRequest> arms{request("open"), request("none")};
  arms[1].arm.name = "honest";
  WindowPlan plan;
  plan.windows = 3;
  plan.max_idle_cpu_fraction = 100.0;  // other tests may run beside this one
  const Result<std::vector<json>> records = run_window_set(arms, plan, stop_);
  ASSERT_TRUE(records) << records.error().message();
  EXPECT_EQ(records->at(0).at("status"), "ok") << records->at(0).at("reason");
  EXPECT_EQ(records->at(1).at("status"), "ok") << records->at(1).at("reason");
  EXPECT_EQ(records->at(0).value("left_running", 0U), 2U);
  EXPECT_FALSE(records->at(1).contains("left_running"));
  expect_gone();
}

TEST_F(LeftRunning, is_killed_where_the_trial_is_stopped_as_well) {
  const std::string script = "setsid sleep 600 & echo \"left running: $!\" >&2; exec sleep 600";
  const auto child = ChildProcess::start("/bin/sh", {"-c", script}, own_.path() + "/trial.log");
  ASSERT_TRUE(child) << child.error().message();
  while (left().empty()) ::usleep(10'000);
  (*child)->end_now(0);
  EXPECT_EQ((*child)->left_running(), 1U);
  EXPECT_EQ(left().size(), 1U);
  expect_gone();
}

TEST(OwnChildrenDeathTest, that_a_program_had_before_its_first_trial_are_let_live) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process: it has started nothing yet
  EXPECT_EXIT(
      {
        const pid_t before = ::fork();
        if (before == 0) {
          for (;;) ::pause();
        }
        const auto child = ChildProcess::start("/bin/true", {}, "");
        const bool ended = child && (*child)->wait().empty() && (*child)->left_running() == 0;
        const bool lives = ::waitpid(before, nullptr, WNOHANG) == 0;
        ::kill(before, SIGKILL);
        ::_exit(ended && lives ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace assay
