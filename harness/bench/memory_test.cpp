// What the harness needs in memory does not grow with the keys: a hundred million of them are drawn
// from and twenty million are loaded within 64 MiB, parent and worker together.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "harness/trial/trial.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::uint64_t peak_bytes(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

class Memory : public ::testing::Test {
 protected:
  /// Runs a trial over null and returns the peak of this process and the largest child together.
  std::uint64_t peak_of(const std::string& keys, const std::string& phases) {
    const Result<Workload> workload =
        parse_workload("name = \"memory\"\n[keys]\n" + keys + "\n" + phases, "memory_test.cpp");
    EXPECT_TRUE(workload) << workload.error().message();
    TrialRequest request;
    request.arm.name = request.arm.store = "null";
    request.arm.durability = DurabilityClass::process;
    request.workload = *workload;
    request.root = root_;
    request.log_path = root_ + "/trial.log";
    request.binary = ASSAY_COMMAND;
    const std::atomic<bool> stop{false};
    const Result<nlohmann::json> record = run_trial(request, stop);
    EXPECT_TRUE(record) << record.error().message();
    EXPECT_EQ(record ? record->value("status", "") : "none", "ok")
        << (record ? record->value("reason", "") : "");
    return peak_bytes(RUSAGE_SELF) + peak_bytes(RUSAGE_CHILDREN);
  }

  static constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  const TemporaryDirectory own_;
  const std::string root_ = own_.path();
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Memory, stays_within_64_mib_when_a_hundred_million_keys_are_drawn_from) {
  EXPECT_LE(peak_of("count = 100_000_000",
                    "[[phases]]\nkind = \"run\"\noperations = 200_000\n[[phases.roles]]\n"
                    "threads = 2\nmix = { read = 1, update = 1 }\n"
                    "distribution = { kind = \"zipfian\" }\n"),
            kMost);
}

TEST_F(Memory, stays_within_64_mib_when_twenty_million_keys_are_loaded) {
  EXPECT_LE(peak_of("count = 20_000_000\n[values]\nbytes = 16",
                    "[[phases]]\nkind = \"load\"\ntimed = true\n"),
            kMost);
}
#endif

}  // namespace
}  // namespace assay
