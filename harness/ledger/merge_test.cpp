// Merged ledgers: nothing lost, nothing doubled, every source chain still whole inside.
#include "harness/ledger/merge.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_lines_test.h"
#include "harness/ledger/verify.h"

namespace assay {
namespace {

using namespace ledger_lines;

class Merging : public ::testing::Test {
 protected:
  /// Appends one result, with raw records of that text, to the ledger FOLDER/ledger.jsonl.
  std::string run(const std::string& folder, const std::string& result, const std::string& machine,
                  const std::string& raw_text = "raw") const {
    std::filesystem::create_directories(own_.file(folder) + "/trials");
    const std::string path = own_.file(folder) + "/ledger.jsonl";
    auto writer = LedgerWriter::open(path);
    EXPECT_TRUE(writer);
    EXPECT_TRUE(writer->append("plan", plan_body(result, machine)));
    for (const std::string arm : {"a", "b"}) {
      const std::string raw = "trials/" + result + arm + ".json";
      put(own_.file(folder) + "/" + raw, raw_text);
      EXPECT_TRUE(writer->append("trial", trial_body(result, arm, 0, raw, raw_text)));
    }
    EXPECT_TRUE(writer->append("verdict", verdict_body(result, 1)));
    return path;
  }
  [[nodiscard]] std::string out(const std::string& name) const { return own_.file(name); }
  [[nodiscard]] static std::vector<LedgerRecord> records(const std::string& path) {
    auto contents = read_ledger(path);
    EXPECT_TRUE(contents) << (contents ? "" : contents.error().message());
    return contents ? contents->records : std::vector<LedgerRecord>();
  }
  static void expect_sound(const std::string& path) {
    const auto verified = verify_ledger(path, RawCheck::all, {});
    ASSERT_TRUE(verified);
    for (const Finding& finding : verified->findings) {
      ADD_FAILURE() << finding.where << " " << finding.code << ": " << finding.what;
    }
  }
  [[nodiscard]] static std::string codes(const std::string& path) {
    std::string all;
    const auto verified = verify_ledger(path, RawCheck::all, {});
    for (const Finding& finding : verified.value().findings) {
      all += (all.empty() ? "" : " ") + finding.code;
    }
    return all;
  }

  const TemporaryDirectory own_;
};

TEST_F(Merging, carries_every_record_with_its_old_hash_and_machine) {
  const std::string x = run("x", "r1", "m1");
  const std::string y = run("y", "r2", "m2");
  const auto merged = merge_ledgers({x, y}, out("all.jsonl"));
  ASSERT_TRUE(merged) << merged.error().message();
  const auto all = records(out("all.jsonl"));
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(all[0].kind, "merge");
  EXPECT_EQ(all[0].body["sources"].size(), 2U);
  std::vector<LedgerRecord> before = records(x);
  const auto of_y = records(y);
  before.insert(before.end(), of_y.begin(), of_y.end());
  std::map<std::string, const LedgerRecord*> by_hash;
  for (const LedgerRecord& record : before) by_hash[record.hash] = &record;
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_TRUE(by_hash.contains(origin_hash(all[i])));
    const LedgerRecord& old = *by_hash[origin_hash(all[i])];
    EXPECT_EQ(all[i].body, old.body);
    EXPECT_EQ(all[i].time, old.time);
    EXPECT_EQ(all[i].machine, old.body["result"] == "r1" ? "m1" : "m2");
  }
  EXPECT_EQ(merged->head, all.back().hash);
  expect_sound(out("all.jsonl"));
}

TEST_F(Merging, gives_the_same_bytes_whatever_the_order) {
  const std::string x = run("x", "r1", "m1");
  const std::string y = run("y", "r2", "m2");
  ASSERT_TRUE(merge_ledgers({x, y}, out("1.jsonl")));
  ASSERT_TRUE(merge_ledgers({y, x}, out("2.jsonl")));
  EXPECT_EQ(read_whole_file(out("1.jsonl")).value(), read_whole_file(out("2.jsonl")).value());
}

TEST_F(Merging, keeps_results_of_one_name_apart_by_machine) {
  const std::string x = run("x", "r", "m1", "raw of x");
  const std::string y = run("y", "r", "m2", "raw of y");
  ASSERT_TRUE(merge_ledgers({x, y}, out("all.jsonl")));
  // Raw records of one path below two folders are each found in their own.
  expect_sound(out("all.jsonl"));
}

TEST_F(Merging, carries_what_two_copies_share_once_and_then_both_branches) {
  const std::string x = run("x", "r1", "m1");
  std::filesystem::copy(own_.file("x"), own_.file("y"), std::filesystem::copy_options::recursive);
  run("x", "r2", "m1");
  const std::string y = run("y", "r3", "m2");
  ASSERT_TRUE(merge_ledgers({x, y}, out("all.jsonl")));
  EXPECT_EQ(records(out("all.jsonl")).size(), 1U + 4 + 4 + 4);
  expect_sound(out("all.jsonl"));
}

TEST_F(Merging, can_be_appended_to_and_merged_again) {
  const std::string x = run("x", "r1", "m1");
  const std::string y = run("y", "r2", "m2");
  std::filesystem::create_directories(own_.file("m"));
  ASSERT_TRUE(merge_ledgers({x, y}, out("m/ledger.jsonl")));
  run("m", "r3", "m3");
  run("x", "r4", "m1");
  const auto again = merge_ledgers({x, out("m/ledger.jsonl")}, out("again.jsonl"));
  ASSERT_TRUE(again) << again.error().message();
  const auto all = records(out("again.jsonl"));
  // Its own merge record, the nine of the first merge and r3, and r4: x's first records came
  // inside.
  EXPECT_EQ(all.size(), 1U + 9 + 4 + 4);
  expect_sound(out("again.jsonl"));
  // A head that was published of any of them is found.
  const std::string head_of_x = records(x).back().hash;
  const std::string head_of_m = records(out("m/ledger.jsonl")).back().hash;
  const auto found = verify_ledger(out("again.jsonl"), RawCheck::none, {head_of_x, head_of_m});
  EXPECT_EQ(found->heads.size(), 2U);
  EXPECT_TRUE(found->heads.at(head_of_m).of_source);
}

TEST_F(Merging, shows_what_was_done_to_a_source_though_the_new_chain_fits) {
  const std::string x = run("x", "r1", "m1");
  const std::string y = run("y", "r2", "m2");
  ASSERT_TRUE(merge_ledgers({x, y}, out("all.jsonl")));
  const auto lines = lines_of(read_whole_file(out("all.jsonl")).value());
  auto changed = lines;
  changed[2] = replaced(changed[2], "\"round\":0", "\"round\":4");
  put(out("bad.jsonl"), forged(changed));
  EXPECT_EQ(codes(out("bad.jsonl")), "source_changed source_gap");
  auto removed = lines;
  removed.erase(removed.begin() + 2);
  put(out("bad.jsonl"), forged(removed));
  EXPECT_NE(codes(out("bad.jsonl")).find("source_gap"), std::string::npos);
  auto cut = lines;
  cut.pop_back();
  put(out("bad.jsonl"), forged(cut));
  EXPECT_EQ(codes(out("bad.jsonl")), "source_gap");
}

TEST_F(Merging, is_refused_where_it_makes_no_sense) {
  const std::string x = run("x", "r1", "m1");
  const std::string y = run("y", "r2", "m2");
  const auto message = [&](const std::vector<std::string>& paths, const std::string& to) {
    const auto merged = merge_ledgers(paths, to);
    EXPECT_FALSE(merged);
    return merged ? "" : merged.error().message();
  };
  EXPECT_NE(message({x}, out("o")).find("at least two"), std::string::npos);
  EXPECT_NE(message({x, x}, out("o")).find("no merge is needed"), std::string::npos);
  EXPECT_NE(message({x, y}, y).find("there already"), std::string::npos);
  EXPECT_NE(message({x, out("none")}, out("o")).find("no ledger here"), std::string::npos);
  put(out("empty.jsonl"), "");
  EXPECT_NE(message({x, out("empty.jsonl")}, out("o")).find("no record"), std::string::npos);
  auto lines = lines_of(read_whole_file(y).value());
  lines.erase(lines.begin() + 1);
  put(out("bad.jsonl"), joined(lines));
  const auto damaged = merge_ledgers({x, out("bad.jsonl")}, out("o"));
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind(), ErrorKind::ledger);
  ASSERT_TRUE(merge_ledgers({x, y}, out("all.jsonl")));
  EXPECT_NE(message({x, out("all.jsonl")}, out("o")).find("no merge is needed"), std::string::npos);
  // One record that came into two ledgers through two merges.
  const std::string z = run("z", "r3", "m3");
  ASSERT_TRUE(merge_ledgers({x, z}, out("xz.jsonl")));
  EXPECT_NE(message({out("xz.jsonl"), out("all.jsonl")}, out("o")).find("another merge"),
            std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(own_.path())) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(out("o")));
}

}  // namespace
}  // namespace assay
