// End to end: campaigns in shards, stopped ones, and the matrix, by the built command.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

using nlohmann::json;

class Qualify : public EndToEnd {
 protected:
  [[nodiscard]] Finished qualify(const std::string& arguments) const {
    return assay("qualify " + arguments + " --root root");
  }
  [[nodiscard]] static json level_of(const Finished& run) {
    const json said = json::parse(run.out, nullptr, false);
    if (!said.is_object() || said["levels"].size() != 1) return {{"broken", run.out + run.err}};
    return said["levels"][0];
  }
  [[nodiscard]] std::size_t records_in(const std::string& ledger) const {
    std::istringstream lines(read_file(directory_ / ledger));
    std::size_t records = 0;
    for (std::string line; std::getline(lines, line);)
      records += json::parse(line)["kind"] == "qualification" ? 1 : 0;
    return records;
  }
};

TEST_F(Qualify, shards_of_damages_make_up_the_whole_campaign) {
  const std::string same = "--store sqlite --level R --budget 104 --json";
  const Finished whole = qualify(same + " --out whole");
  ASSERT_EQ(whole.status, 0) << whole.out << whole.err;
  const Finished first = qualify(same + " --shard 1/2 --jobs 1 --out first");
  EXPECT_EQ(first.status, 5) << "52 damages say nothing: " << first.out << first.err;
  const Finished alone = assay("qualify merge first --out alone");
  EXPECT_EQ(alone.status, 2) << alone.out;
  EXPECT_NE(alone.err.find("shard 2/2 is missing"), std::string::npos) << alone.err;
  const Finished twice = assay("qualify merge first first --out twice");
  EXPECT_EQ(twice.status, 2) << twice.out;
  EXPECT_NE(twice.err.find("1/2 is given twice"), std::string::npos) << twice.err;
  const Finished second = qualify(same + " --shard 2/2 --jobs 3 --out second");
  EXPECT_EQ(second.status, 5) << second.out << second.err;
  const Finished both = assay("qualify merge second first --out both --json");
  ASSERT_EQ(both.status, 0) << both.out << both.err;
  const json expected = level_of(whole);
  const json found = level_of(both);
  EXPECT_EQ(found["cases"], 104);
  for (const char* const part : {"cases", "verdict", "observed", "failures", "lost_most", "store"})
    EXPECT_EQ(found[part], expected[part]) << part;
  for (const char* const part : {"effects", "effects_by_damage"})
    EXPECT_EQ(found["coverage"][part], expected["coverage"][part]) << part;
  EXPECT_EQ(records_in("both/ledger.jsonl"), 1U);
  const Finished other = qualify(
      "--store sqlite --level R --budget 104 --seed 2 --shard 2/2 "
      "--out other");
  EXPECT_EQ(other.status, 5);
  const Finished mixed = assay("qualify merge first other --out mixed");
  EXPECT_EQ(mixed.status, 2) << mixed.out;
  EXPECT_NE(mixed.err.find("'seed' is 2 here and 1 there"), std::string::npos) << mixed.err;
}

TEST_F(Qualify, shards_of_faults_add_up_and_a_stopped_one_goes_on) {
  const std::string same =
      "--store raw-file --set method=fdatasync --level E --jobs 1 --shard 1/2 --out first "
      "--budget ";
  const Finished stopped =
      shell("timeout -s INT 1 '" ASSAY_COMMAND "' qualify --root root " + same + "1000000");
  EXPECT_NE(stopped.status, 0) << stopped.out;
  const Finished early = assay("qualify merge first --out early");
  EXPECT_EQ(early.status, 2) << early.out;
  const json before = json::parse(read_file(directory_ / "first/campaign.json"), nullptr, false);
  const std::uint64_t had = before.is_object() && !before["levels"].empty()
                                ? before["levels"][0].value("cases", std::uint64_t{0})
                                : 0;
  const Finished first = qualify(same + "40 --json");
  const json one = level_of(first);
  EXPECT_GE(one.value("cases", std::uint64_t{0}), std::max<std::uint64_t>(had, 20)) << one;
  const Finished second = qualify(
      "--store raw-file --set method=fdatasync --level E --shard 2/2 --out second --budget 40 "
      "--json");
  const json two = level_of(second);
  const Finished both = assay("qualify merge first second --out both --json");
  const json sum = level_of(both);
  ASSERT_TRUE(sum.contains("cases")) << sum << both.err;
  EXPECT_EQ(sum["cases"], one["cases"].get<int>() + two["cases"].get<int>());
  EXPECT_EQ(sum["failures"], one["failures"].get<int>() + two["failures"].get<int>());
  EXPECT_EQ(sum["coverage"]["calls_of_a_life"], one["coverage"]["calls_of_a_life"]);
  const int passed = sum["cases"] >= 100 ? 0 : 5;
  EXPECT_EQ(both.status, sum["failures"] == 0 ? passed : 8) << both.err;
}

TEST_F(Qualify, matrix_says_what_comes_runs_errors_and_rot_and_shows_what_has_ended_again) {
  const std::string command = "matrix --row raw-file --level E,R --budget 12 --out m --json";
  const Finished run = qualify(command);
  EXPECT_EQ(run.status, 5) << "12 cases say nothing: " << run.out << run.err;
  EXPECT_NE(run.err.find("2 settings to look at, levels E,R"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("records go to m/ledger.jsonl"), std::string::npos) << run.err;
  const json said = json::parse(run.out, nullptr, false);
  ASSERT_TRUE(said.is_object()) << run.out;
  EXPECT_EQ(said["rows"].size(), 4U);
  for (const json& row : said["rows"]) EXPECT_EQ(row["cases"], 12) << row;
  EXPECT_EQ(records_in("m/ledger.jsonl"), 4U);
  const Finished again = qualify(command);
  EXPECT_EQ(again.out, run.out);
  EXPECT_NE(again.err.find("0 settings to look at (2 of 2 have ended here)"), std::string::npos)
      << again.err;
  EXPECT_EQ(records_in("m/ledger.jsonl"), 4U);
}

}  // namespace
}  // namespace assay::end_to_end
