// End to end: what assay doctor refuses. Nothing here changes a setting of the machine.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

using Doctor = EndToEnd;

TEST_F(Doctor, runs_no_command_where_a_demanded_item_cannot_be_made_as_wanted) {
  // What is not watched is not known, on every machine.
  const Finished refused =
      assay("doctor --apply --watch-ms 0 --demand background_writers -- touch ran");
  EXPECT_EQ(refused.status, 7) << refused.err;
  EXPECT_NE(refused.err.find("background_writers"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "ran"));
}

TEST_F(Doctor, refuses_a_root_that_is_no_directory) {
  const Finished refused = assay("doctor --watch-ms 0 --root nowhere");
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_NE(refused.err.find("nowhere"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace assay::end_to_end
