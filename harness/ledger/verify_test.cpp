// What `assay ledger verify` finds: each attack on a ledger by its own name, line and code.
#include "harness/ledger/verify.h"

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_lines_test.h"

namespace assay {
namespace {

using namespace ledger_lines;

class Verify : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRounds = 3;

  void SetUp() override {
    ASSERT_TRUE(make_directories_durably(own_.file("trials")));
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append("plan", plan_body("r")));
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      for (const std::string arm : {"a", "b"}) {
        const std::string raw = "trials/" + std::to_string(round) + arm + ".json";
        put(own_.file(raw), raw);
        ASSERT_TRUE(writer->append("trial", trial_body("r", arm, round, raw, raw)));
      }
    }
    ASSERT_TRUE(writer->append("verdict", verdict_body("r", kRounds)));
    head_ = writer->head();
    lines_ = lines_of(read_whole_file(path_).value());
    ASSERT_EQ(lines_.size(), 8U);
  }

  [[nodiscard]] Verification verified(RawCheck raw = RawCheck::all,
                                      const std::vector<std::string>& heads = {}) const {
    auto result = verify_ledger(path_, raw, heads);
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? *result : Verification();
  }
  /// "line code, line code ..." of the findings for a ledger of these lines.
  [[nodiscard]] std::string found(const std::string& text) const {
    put(path_, text);
    std::string all;
    for (const Finding& finding : verified().findings) {
      EXPECT_EQ(finding.where.substr(0, path_.size() + 1), path_ + ":") << finding.where;
      all +=
          (all.empty() ? "" : ", ") + finding.where.substr(path_.size() + 1) + " " + finding.code;
    }
    return all;
  }
  [[nodiscard]] std::string found(const std::vector<std::string>& lines) const {
    return found(joined(lines));
  }

  const TemporaryDirectory own_;
  const std::string path_ = own_.file("ledger.jsonl");
  std::string head_;
  std::vector<std::string> lines_;
};

TEST_F(Verify, finds_nothing_in_a_sound_ledger) {
  const Verification result = verified();
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.notes.empty());
  EXPECT_EQ(result.records, 8U);
  EXPECT_EQ(result.head, head_);
  EXPECT_EQ(result.raw_named, 6U);
  EXPECT_EQ(result.raw_sound, 6U);
}

TEST_F(Verify, finds_a_changed_record_where_it_is) {
  for (std::size_t i = 0; i + 1 < lines_.size(); ++i) {
    auto changed = lines_;
    changed[i] = replaced(changed[i], "\"time\":\"2", "\"time\":\"1");
    EXPECT_EQ(found(changed), std::to_string(i + 1) + " changed");
  }
}

TEST_F(Verify, finds_a_record_whose_place_in_the_chain_was_changed) {
  auto changed = lines_;
  changed[3] = replaced(changed[3], "\"seq\":3", "\"seq\":9");
  EXPECT_EQ(found(changed), "4 changed, 4 changed");
  changed = lines_;
  const std::size_t at = changed[3].find("\"previous\":\"") + 12;
  changed[3].replace(at, 8, "00000000");
  EXPECT_EQ(found(changed), "4 changed");
}

TEST_F(Verify, finds_a_record_that_is_no_record_any_more) {
  auto changed = lines_;
  changed[3][0] = '!';
  EXPECT_EQ(found(changed), "4 not_a_record");
  changed[3] = "{\"body\": {}}\n";
  EXPECT_EQ(found(changed), "4 not_a_record");
}

TEST_F(Verify, finds_removed_records) {
  auto fewer = lines_;
  fewer.erase(fewer.begin() + 3);
  EXPECT_EQ(found(fewer), "4 removed");
  fewer.erase(fewer.begin() + 3);
  EXPECT_EQ(found(fewer), "4 removed");
  EXPECT_NE(verified().findings[0].what.find("records 3 to 4"), std::string::npos);
  EXPECT_EQ(found(std::vector<std::string>(lines_.begin() + 1, lines_.end())), "1 removed");
}

TEST_F(Verify, finds_inserted_and_repeated_records) {
  auto more = lines_;
  // As somebody makes it who knows the chain: it follows line 3 as line 4 does.
  more.insert(more.begin() + 3, replaced(lines_[3], "\"round\":1", "\"round\":7"));
  EXPECT_EQ(found(more), "4 inserted");
  more = lines_;
  more.insert(more.begin() + 5, lines_[2]);
  EXPECT_EQ(found(more), "6 repeated");
}

TEST_F(Verify, finds_moved_records) {
  auto moved = lines_;
  std::swap(moved[3], moved[4]);
  EXPECT_EQ(found(moved).substr(1), " moved");
  moved = lines_;
  moved.insert(moved.begin() + 6, moved[1]);
  moved.erase(moved.begin() + 1);
  EXPECT_EQ(found(moved), "6 moved");
  EXPECT_NE(verified().findings[0].what.find("behind line 1"), std::string::npos);
}

TEST_F(Verify, finds_every_one_of_several_faults) {
  auto bad = lines_;
  bad[1] = replaced(bad[1], "\"time\":\"2", "\"time\":\"1");
  bad.erase(bad.begin() + 5);
  bad.insert(bad.begin() + 4, "nonsense\n");
  EXPECT_EQ(found(bad), "2 changed, 5 not_a_record, 7 removed");
}

TEST_F(Verify, ends_with_any_scramble_of_lines_and_finds_it) {
  std::random_device device;
  const auto seed = device();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = joined(lines_);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::string> some;
    const std::size_t size = random() % 20;
    for (std::size_t j = 0; j < size; ++j) some.push_back(lines_[random() % lines_.size()]);
    const std::string text = joined(some);
    // A ledger that only ends early is sound: nothing but a head shows that.
    if (whole.starts_with(text)) continue;
    EXPECT_NE(found(text), "") << text;
  }
}

TEST_F(Verify, finds_a_missing_and_a_changed_raw_record) {
  std::filesystem::remove(own_.file("trials/1a.json"));
  put(own_.file("trials/2b.json"), "other");
  EXPECT_EQ(found(lines_), "4 raw_missing, 7 raw_changed");
  const Verification lenient = verified(RawCheck::present);
  ASSERT_EQ(lenient.findings.size(), 1U);
  EXPECT_EQ(lenient.findings[0].code, "raw_changed");
  EXPECT_EQ(lenient.raw_missing, 1U);
  EXPECT_TRUE(verified(RawCheck::none).findings.empty());
}

TEST_F(Verify, finds_a_head_that_was_kept_elsewhere_or_shows_that_it_is_gone) {
  EXPECT_EQ(verified(RawCheck::all, {head_}).heads.at(head_).follow, 0U);
  const std::string earlier = read_ledger(path_)->records[4].hash;
  const Verification grown = verified(RawCheck::all, {earlier});
  EXPECT_EQ(grown.heads.at(earlier).follow, 3U);
  EXPECT_EQ(grown.heads.at(earlier).line, 5U);
  // A cut tail and a ledger that was written anew are sound by themselves.
  ASSERT_EQ(found(std::vector<std::string>(lines_.begin(), lines_.end() - 1)), "");
  EXPECT_TRUE(verified(RawCheck::all, {head_}).heads.empty());
  auto anew = lines_;
  anew[7] = replaced(anew[7], "\"time\":\"2", "\"time\":\"1");
  ASSERT_EQ(found(forged(anew)), "");
  EXPECT_TRUE(verified(RawCheck::all, {head_}).heads.empty());
  EXPECT_FALSE(check_is_head("abc"));
  EXPECT_TRUE(check_is_head(head_));
}

TEST_F(Verify, notes_a_torn_tail_and_a_clock_that_was_set_back) {
  EXPECT_EQ(found(joined(lines_) + "{\"body\":{\"x"), "");
  ASSERT_EQ(verified().notes.size(), 1U);
  EXPECT_EQ(verified().notes[0].code, "torn");
  EXPECT_EQ(verified().head, head_);
  auto later = lines_;
  later[2] = replaced(later[2], "\"time\":\"2", "\"time\":\"3");
  EXPECT_EQ(found(forged(later)), "");
  ASSERT_EQ(verified().notes.size(), 1U);
  EXPECT_EQ(verified().notes[0].code, "clock");
  EXPECT_EQ(verified().notes[0].where, path_ + ":4");
}

TEST_F(Verify, finds_a_plan_that_was_registered_after_its_samples_though_the_chain_fits) {
  auto late = lines_;
  late.insert(late.begin() + 3, late[0]);
  late.erase(late.begin());
  EXPECT_EQ(found(forged(late)), "1 plan_late");
}

TEST_F(Verify, finds_an_edited_plan_though_the_chain_fits) {
  auto edited = lines_;
  edited[0] = replaced(edited[0], "\"design\":\"blocks\"", "\"design\":\"random\"");
  EXPECT_EQ(found(forged(edited)), "1 plan_digest");
}

TEST_F(Verify, finds_dropped_samples_though_the_chain_fits) {
  auto dropped = lines_;
  dropped.erase(dropped.begin() + 3);
  EXPECT_EQ(found(forged(dropped)), "7 samples");
  auto uncounted = lines_;
  uncounted[7] = replaced(uncounted[7], "[1.5,1.5,1.5]", "[1.5,1.5]");
  EXPECT_EQ(found(forged(uncounted)), "8 samples");
}

TEST_F(Verify, finds_a_second_plan_a_second_verdict_and_samples_behind_a_verdict) {
  auto more = lines_;
  more.push_back(lines_[1]);
  more.push_back(lines_[7]);
  more.push_back(lines_[0]);
  EXPECT_EQ(found(forged(more)), "9 after_verdict, 10 second_verdict, 11 second_plan");
}

TEST_F(Verify, says_what_is_no_ledger) {
  EXPECT_EQ(found("hello\nworld"), "1 not_a_record, 2 not_a_record");
  EXPECT_EQ(found(""), "");
  EXPECT_FALSE(verify_ledger(own_.file("none"), RawCheck::all, {}));
  EXPECT_FALSE(verify_ledger(own_.path(), RawCheck::all, {}));
}

}  // namespace
}  // namespace assay
