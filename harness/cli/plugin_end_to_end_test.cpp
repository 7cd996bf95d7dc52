// End to end: plug-ins that are no good guests. What they say, are called and leave behind costs
// them their own trials at most.
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

class PluginEndToEnd : public EndToEnd {
 protected:
  /// A plug-in of adapters/plugin/testdata under a name of its own in the test's directory.
  void copy(const std::string& name, const std::string& to) const {
    const auto folder = std::filesystem::path(ASSAY_LYING_STORE).parent_path();
    std::filesystem::copy_file(folder / ("lib" + name + "_store.so"), directory_ / to);
  }
  Finished compare(const std::string& stores, const std::string& flags = "") const {
    return assay("compare --stores " + stores +
                 " --workload durable-put --durability process --trials 2 --no-a-a --root bench "
                 "--out out --set keys.count=100 --set phases.run.duration_ms=20 " +
                 flags);
  }
};

TEST_F(PluginEndToEnd, whose_texts_are_no_utf8_are_compared_and_quoted) {
  copy("no_utf8_text", "mine.so");
  const Finished show = assay("store show ./mine.so --json");
  ASSERT_EQ(show.status, 0) << show.err;
  EXPECT_NE(show.out.find("1.0 \\\\xe9t\\\\xe9"), std::string::npos) << show.out;
  const Finished run = compare("./mine.so,lmdb");
  EXPECT_NE(run.status, 1) << run.err;
  EXPECT_NE((run.out + run.err).find("cannot \\xe9tablir"), std::string::npos) << run.err;
}

TEST_F(PluginEndToEnd, that_leave_a_process_running_lose_it_and_the_verdict_says_so) {
  copy("crashing", "leaving.so");
  const Finished run =
      compare("./leaving.so", "--set leaving.crash_in=open --set leaving.crash_how=leave");
  EXPECT_NE(run.status, 1) << run.err;
  EXPECT_NE((run.out + run.err).find("left running were killed after 2 of 2 trials"),
            std::string::npos)
      << run.out << run.err;
}

TEST_F(PluginEndToEnd, whose_file_can_name_no_arm_are_refused_with_the_rule) {
  copy("lying", "st\xc3\xb6re.so");
  for (const std::string& line :
       {std::string("compare --workload durable-put --stores ./st\xc3\xb6re.so,lmdb"),
        std::string("store check ./st\xc3\xb6re.so")}) {
    const Finished run = assay(line);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_NE(run.err.find("st\xc3\xb6re"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("letters, digits"), std::string::npos) << run.err;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

}  // namespace
}  // namespace assay::end_to_end
