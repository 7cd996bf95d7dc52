// Which directories the next run removes, and which it leaves.
#include "harness/trial/trial.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

TEST(TrialDirectories, that_are_foreign_stay_and_stale_ones_go) {
  const TemporaryDirectory own;
  const std::string bench = own.path() + "/bench";
  const auto put = [](const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  };
  // No mark; somebody else's file of the same name; a mark of this very process; a dead owner.
  put(bench + "/assay-trial-1-0/data/precious", "x");
  put(bench + "/assay-trial-1-1/assay-trial.mark", "not ours\n");
  put(bench + "/elsewhere/assay-trial.mark", "assay trial directory\npid 1\nstart 0\nboot 0\n");
  put(bench + "/assay-trial-1-2/assay-trial.mark",
      "assay trial directory\npid 1\nstart 1\nboot of-another-day\n");
  put(bench + "/assay-trial-1-2/data/rest", "x");
  // Of a maker that was killed before it came to the mark; one whose maker lives; not such a name.
  for (const char* empty : {"/assay-trial-999999999-0", "/assay-trial-1-3", "/assay-trial-mine"})
    fs::create_directory(bench + empty);
  // Of makers that were killed when the mark was made and not yet written; one of them has more.
  put(bench + "/assay-trial-999999999-1/assay-trial.mark", "");
  put(bench + "/assay-trial-999999999-2/assay-trial.mark", "");
  put(bench + "/assay-trial-999999999-2/precious", "x");
  put(bench + "/assay-trial-1-4/assay-trial.mark", "");
  remove_stale_trials(bench);
  EXPECT_FALSE(fs::exists(bench + "/assay-trial-999999999-0"));
  EXPECT_FALSE(fs::exists(bench + "/assay-trial-999999999-1"));
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-999999999-2/precious"));
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-1-4/assay-trial.mark")) << "its maker lives";
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-1-3"));
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-mine"));
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-1-0/data/precious"));
  EXPECT_TRUE(fs::exists(bench + "/assay-trial-1-1/assay-trial.mark"));
  EXPECT_TRUE(fs::exists(bench + "/elsewhere/assay-trial.mark"));
  EXPECT_FALSE(fs::exists(bench + "/assay-trial-1-2"));
}

}  // namespace
}  // namespace assay
