// End to end: machines that show or allow little. A run works there or is refused for a reason;
// what cannot be known is recorded as unknown, with why.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PoorPlace : public EndToEnd {
 protected:
  void SetUp() override {
    fs::permissions(directory_, fs::perms::all);
    write_file(directory_ / "mine.toml",
               "name = \"mine\"\n[keys]\ncount = 500\n[values]\nbytes = 100\n"
               "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\nduration_ms = 20\n"
               "[[phases.roles]]\nname = \"w\"\nthreads = 1\nmix = { update = 1 }\n");
  }

  /// A comparison of two trials an arm behind `prefix`, a command that takes something away.
  [[nodiscard]] Finished compare(const std::string& prefix, const std::string& more = {}) const {
    return shell(prefix +
                 " '" ASSAY_COMMAND "' compare --stores sqlite,lmdb --workload ./mine.toml" +
                 " --trials 2 --no-report --json --out result --root bench --durability process"
                 " --no-a-a --foreign-cpus-max 0 --frequency-change-max 0 --steal-share-max 0 " +
                 more);
  }

  /// What the first record of the only ledger tells about the machine.
  [[nodiscard]] json provenance() const {
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.path().filename() != "ledger.jsonl") continue;
      std::istringstream lines(read_file(entry.path()));
      std::string first;
      std::getline(lines, first);
      return json::parse(first)["body"]["provenance"];
    }
    return nullptr;
  }
};

TEST_F(PoorPlace, without_sysfs_is_run_and_recorded_as_unknown_with_why) {
  const std::string hidden = "unshare -m sh -c 'mount -t tmpfs none /sys && exec \"$@\"' sh";
  if (shell(hidden + " true").status != 0) GTEST_SKIP() << "no mounts of one's own here";
  const Finished run = compare(hidden);
  ASSERT_EQ(run.status, 0) << run.err;
  const json found = provenance();
  ASSERT_TRUE(found.is_object());
  for (const char* place : {"/cpu/governor", "/cpu/smt", "/clock/source", "/storage/device"}) {
    const json& item = found.at(json::json_pointer(place));
    ASSERT_TRUE(item.is_object() && item.contains("unknown")) << place << ": " << item;
    EXPECT_GT(item["unknown"].get<std::string>().size(), 10U) << place;
  }
  // What the plan demands of a machine cannot be taken for met where it cannot be seen.
  const Finished demanded = shell(hidden + " '" ASSAY_COMMAND "' doctor --demand thp");
  EXPECT_EQ(demanded.status, 7) << demanded.out;
}

TEST_F(PoorPlace, without_root_is_run_and_says_what_root_would_have_given) {
  const bool root = ::geteuid() == 0;
  const std::string nobody =
      root ? "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs" : "";
  if (shell(nobody + " test -x '" ASSAY_COMMAND "'").status != 0) {
    GTEST_SKIP() << "the command lies where only its owner may go";
  }
  const Finished run = compare(nobody);
  ASSERT_EQ(run.status, 0) << run.err;
  const Finished applied = shell(nobody + " '" ASSAY_COMMAND "' doctor --apply -- true");
  EXPECT_TRUE(applied.status == 0 || applied.status == 7) << applied.err;
  if (applied.status == 7) {
    EXPECT_NE(applied.err.find("root"), std::string::npos) << applied.err;
  }
}

TEST_F(PoorPlace, with_one_cpu_runs_what_fits_and_refuses_pins_that_do_not) {
  const Finished run = compare("taskset -c 0");
  ASSERT_EQ(run.status, 0) << run.err;
  const Finished pinned = compare(
      "taskset -c 0", "--set phases.run.roles.w.threads=2 --set phases.run.roles.w.cpus=[0,1]");
  EXPECT_EQ(pinned.status, 2) << pinned.err;
}

class SmallRoot : public PoorPlace {
 protected:
  /// A qualification with its stores on a file system of `size` that has to be called too small.
  void expect_too_small(const std::string& size, const std::string& meanwhile,
                        const std::string& arguments) const {
    const std::string mounted =
        "mkdir -p small && unshare -m sh -c 'mount -t tmpfs -o size=" + size + " none small";
    if (shell(mounted + "'").status != 0) GTEST_SKIP() << "no mounts of one's own here";
    const Finished run =
        shell(mounted + " && { " + meanwhile +
              " exec \"$@\"; }' sh '" ASSAY_COMMAND "' qualify --root small " + arguments);
    EXPECT_EQ(run.status, 7) << run.out << run.err;
    const std::string said = run.out + run.err;
    EXPECT_NE(said.find("too little room"), std::string::npos) << said;
    EXPECT_NE(said.find("--root"), std::string::npos) << said;
    EXPECT_EQ(said.find("FAIL"), std::string::npos) << said;
  }
};

TEST_F(SmallRoot, is_said_by_every_level_before_it_begins) {
  expect_too_small("4m", "", "--store sqlite --level K,F,B,E,R --budget 5 --out all");
  const json state = json::parse(read_file(directory_ / "all/campaign.json"), nullptr, false);
  ASSERT_EQ(state["levels"].size(), 5U);
  for (const json& level : state["levels"]) EXPECT_EQ(level["verdict"], "SKIPPED") << level;
}

TEST_F(SmallRoot, that_others_fill_meanwhile_ends_the_level_and_blames_no_store) {
  // They take what is freed as well, for as long as the level runs.
  const std::string others =
      "(sleep 0.3; while kill -0 $$; do cat /dev/zero >>small/theirs; sleep 0.02; done) "
      ">/dev/null 2>&1 &";
  for (const std::string level : {"K", "E", "R"})
    expect_too_small("24m", others,
                     "--store sqlite --jobs 1 --level " + level + " --budget 60s --out " + level);
}

}  // namespace
}  // namespace assay::end_to_end
