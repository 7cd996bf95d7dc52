// The oracle's verdicts about contents whose right answer is known.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/controls.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify {
namespace {

class Oracle : public ::testing::Test {
 protected:
  static HistoryShape shape() {
    HistoryShape made;
    made.writers = 2;
    made.keys = 8;
    made.rollback_permille = 100;
    return made;
  }

  /// `count` transactions of each writer, in turn, all acknowledged.
  void acknowledge(std::uint64_t count) {
    for (std::uint64_t number = 1; number <= count; ++number)
      for (Acknowledgements::Writer& writer : known_.writers) {
        writer.since.push_back({place_ + 1, place_ + 2});
        place_ += 2;
      }
    known_.created = true;
  }
  void begin(std::uint32_t writer) { known_.writers[writer].since.push_back({++place_, 0}); }

  /// Puts a transaction's changes, or some of them, into what the store holds.
  void apply(std::uint32_t writer, std::uint64_t number, std::size_t changes = 1000) {
    const Transaction made = history_.transaction(writer, number);
    if (made.rolled_back) return;
    for (std::size_t at = 0; at < std::min(changes, made.changes.size()); ++at) {
      const std::string key = history_.key_bytes({writer, made.changes[at].key});
      if (made.changes[at].erase)
        contents_.entries.erase(key);
      else
        contents_.entries[key] = made.changes[at].value;
    }
  }
  void apply_up_to(std::uint32_t writer, std::uint64_t last) {
    for (std::uint64_t number = 1; number <= last; ++number) apply(writer, number);
  }
  /// The first transaction from `number` on that is committed and makes `least` changes.
  std::uint64_t committed_from(std::uint32_t writer, std::uint64_t number, std::size_t least = 1) {
    while (history_.transaction(writer, number).rolled_back ||
           history_.transaction(writer, number).changes.size() < least)
      ++number;
    return number;
  }
  Judgement judged() const { return judge(history_, known_, contents_); }
  static bool has(const Judgement& judgement, Finding::Kind kind) {
    return std::ranges::any_of(judgement.findings,
                               [&](const Finding& finding) { return finding.kind == kind; });
  }
  static std::string texts(const Judgement& judgement) { return to_json(judgement).dump(1); }

  History history_{42, shape()};
  Acknowledgements known_ = Acknowledgements::none(history_);
  Contents contents_;
  std::uint64_t place_ = 0;
};

TEST_F(Oracle, everything_that_was_acknowledged_is_intact) {
  acknowledge(50);
  apply_up_to(0, 50);
  apply_up_to(1, 50);
  const Judgement judgement = judged();
  EXPECT_EQ(judgement.loss, Loss::intact) << texts(judgement);
  EXPECT_TRUE(judgement.findings.empty()) << texts(judgement);
  EXPECT_EQ(judgement.found.at(0).number, 50U);
}

TEST_F(Oracle, a_transaction_in_flight_may_be_there_or_not) {
  acknowledge(20);
  const std::uint64_t next = committed_from(0, 21);
  for (std::uint64_t number = 21; number < next; ++number) begin(0);
  begin(0);
  apply_up_to(0, 20);
  apply_up_to(1, 20);
  EXPECT_EQ(judged().loss, Loss::intact);
  EXPECT_EQ(judged().in_flight_kept, 0U);
  apply(0, next);
  EXPECT_EQ(judged().loss, Loss::intact) << texts(judged());
  EXPECT_EQ(judged().in_flight_kept, 1U);
}

TEST_F(Oracle, a_part_of_a_transaction_in_flight_is_torn) {
  acknowledge(20);
  const std::uint64_t next = committed_from(0, 21, 4);
  for (std::uint64_t number = 21; number <= next; ++number) begin(0);
  apply_up_to(0, 20);
  apply_up_to(1, 20);
  apply(0, next, 2);
  EXPECT_EQ(judged().loss, Loss::torn) << texts(judged());
  EXPECT_TRUE(judged().found.empty());
}

TEST_F(Oracle, one_missing_commit_at_the_end_is_last_and_two_are_a_suffix) {
  acknowledge(30);
  const std::uint64_t gone = [&] {
    std::uint64_t number = 30;
    while (history_.transaction(1, number).rolled_back) --number;
    return number;
  }();
  apply_up_to(0, 29);
  apply(0, 30);
  apply_up_to(1, gone - 1);
  Judgement judgement = judged();
  EXPECT_EQ(judgement.lost_acknowledged, 1U);
  EXPECT_LE(judgement.loss, Loss::hole);
  contents_.entries.clear();
  apply_up_to(0, 20);
  apply_up_to(1, 20);
  judgement = judged();
  EXPECT_EQ(judgement.loss, Loss::suffix) << texts(judgement);
  EXPECT_TRUE(has(judgement, Finding::Kind::lost_commits));
}

TEST_F(Oracle, a_missing_commit_with_a_later_one_of_another_writer_is_a_hole) {
  acknowledge(30);
  apply_up_to(0, 30);
  apply_up_to(1, 20);
  const Judgement judgement = judged();
  EXPECT_EQ(judgement.loss, Loss::hole) << texts(judgement);
  EXPECT_TRUE(has(judgement, Finding::Kind::hole));
}

TEST_F(Oracle, a_suffix_that_an_earlier_crash_took_is_no_hole_of_a_later_life) {
  acknowledge(20);
  const std::uint64_t crash = place_;
  acknowledge(2);
  for (std::uint32_t writer = 0; writer < 2; ++writer) {
    apply_up_to(writer, 10);
    for (std::uint64_t number = 21; number <= 22; ++number) apply(writer, number);
  }
  EXPECT_EQ(judged().loss, Loss::hole) << texts(judged());
  known_.crashes = {crash};
  EXPECT_EQ(judged().loss, Loss::suffix) << texts(judged());
}

TEST_F(Oracle, a_missing_commit_in_the_midst_of_one_writer_is_a_hole) {
  acknowledge(30);
  apply_up_to(1, 30);
  const std::uint64_t gone = committed_from(0, 29);
  for (std::uint64_t number = 1; number <= 30; ++number)
    if (number != gone) apply(0, number);
  if (gone < 30 && !history_.transaction(0, 30).rolled_back) {
    EXPECT_GE(judged().loss, Loss::hole) << texts(judged());
  }
  EXPECT_GE(judged().loss, Loss::last);
}

TEST_F(Oracle, commits_lost_although_a_sync_returned_break_every_contract_but_none) {
  acknowledge(30);
  apply_up_to(0, 20);
  apply_up_to(1, 20);
  known_.synced = place_;
  const Judgement judgement = judged();
  EXPECT_TRUE(judgement.broken);
  EXPECT_FALSE(judgement.allowed(Loss::suffix));
  EXPECT_TRUE(judgement.allowed(Loss::unopenable));
}

TEST_F(Oracle, a_sync_covers_what_its_own_life_acknowledged_and_nothing_that_a_crash_took_before) {
  acknowledge(20);
  const std::uint64_t crash = place_;
  acknowledge(2);
  known_.crashes = {crash};
  known_.synced_at_crashes = {0};
  known_.synced = place_;
  for (std::uint32_t writer = 0; writer < 2; ++writer) {
    apply_up_to(writer, 10);
    for (std::uint64_t number = 21; number <= 22; ++number) apply(writer, number);
  }
  const Judgement lost_with_the_crash = judged();
  EXPECT_TRUE(lost_with_the_crash.allowed(Loss::suffix)) << texts(lost_with_the_crash);
  EXPECT_EQ(lost_with_the_crash.lost_after_sync, 0U);
  known_.synced_at_crashes = {crash};
  const Judgement synced_before_it = judged();
  EXPECT_TRUE(has(synced_before_it, Finding::Kind::lost_after_sync)) << texts(synced_before_it);
  const auto read = acknowledgements_from_json(to_json(known_));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->synced_at_crashes, known_.synced_at_crashes);
}

TEST_F(Oracle, bytes_that_nobody_wrote_and_keys_that_nobody_made_are_torn) {
  acknowledge(10);
  apply_up_to(0, 10);
  apply_up_to(1, 10);
  contents_.entries.begin()->second.back() ^= 1;
  EXPECT_EQ(judged().loss, Loss::torn);
  EXPECT_TRUE(has(judged(), Finding::Kind::wrong_value)) << texts(judged());
  contents_.entries.begin()->second.back() ^= 1;
  EXPECT_EQ(judged().loss, Loss::intact);
  contents_.entries["stranger"] = "x";
  EXPECT_TRUE(has(judged(), Finding::Kind::ghost_key));
  EXPECT_EQ(judged().loss, Loss::torn);
}

TEST_F(Oracle, a_value_under_another_key_was_written_by_nobody) {
  const Transaction made = history_.transaction(0, committed_from(0, 1, 3));
  for (const Change& change : made.changes) {
    if (change.erase) continue;
    EXPECT_TRUE(history_.writer_of({0, change.key}, change.value));
    EXPECT_FALSE(history_.writer_of({0, change.key + 1}, change.value));
    EXPECT_FALSE(history_.writer_of({1, change.key}, change.value));
    EXPECT_FALSE(History(43, shape()).writer_of({0, change.key}, change.value));
  }
}

TEST_F(Oracle, an_erased_key_that_is_back_is_told_as_such) {
  acknowledge(40);
  apply_up_to(0, 40);
  apply_up_to(1, 40);
  // A key that a commit erased and nobody wrote again.
  for (std::uint64_t number = 40; number > 1; --number) {
    const Transaction made = history_.transaction(0, number);
    if (made.rolled_back) continue;
    for (const Change& change : made.changes) {
      const std::string key = history_.key_bytes({0, change.key});
      if (!change.erase || contents_.entries.contains(key)) continue;
      for (std::uint64_t before = number - 1; before > 0; --before) {
        const Transaction writer = history_.transaction(0, before);
        const auto put = std::ranges::find_if(
            writer.changes, [&](const Change& one) { return one.key == change.key && !one.erase; });
        if (writer.rolled_back || put == writer.changes.end()) continue;
        contents_.entries[key] = put->value;
        const Judgement judgement = judged();
        EXPECT_GE(judgement.loss, Loss::hole) << texts(judgement);
        EXPECT_FALSE(judgement.allowed(Loss::intact));
        return;
      }
    }
  }
  FAIL() << "the history holds no such key";
}

TEST_F(Oracle, a_change_that_was_rolled_back_must_not_be_seen) {
  acknowledge(60);
  apply_up_to(0, 60);
  apply_up_to(1, 60);
  for (std::uint64_t number = 60; number > 0; --number) {
    const Transaction made = history_.transaction(0, number);
    if (!made.rolled_back) continue;
    const auto put =
        std::ranges::find_if(made.changes, [](const Change& change) { return !change.erase; });
    contents_.entries[history_.key_bytes({0, put->key})] = put->value;
    EXPECT_TRUE(has(judged(), Finding::Kind::rolled_back_visible)) << texts(judged());
    return;
  }
  FAIL() << "the history rolls nothing back";
}

TEST_F(Oracle, what_was_not_begun_must_not_be_seen) {
  acknowledge(10);
  apply_up_to(0, 10);
  apply_up_to(1, 10);
  apply(0, committed_from(0, 11));
  EXPECT_TRUE(has(judged(), Finding::Kind::never_begun_visible)) << texts(judged());
}

TEST_F(Oracle, a_cut_earlier_in_the_order_asks_for_less) {
  acknowledge(30);
  apply_up_to(0, 20);
  apply_up_to(1, 20);
  EXPECT_EQ(judged().loss, Loss::suffix);
  known_ = known_.at(80);  // two writers, two places a transaction: 20 of each
  EXPECT_EQ(judged().loss, Loss::intact) << texts(judged());
}

TEST_F(Oracle, a_store_that_does_not_open_is_no_loss_before_it_was_created) {
  const Judgement created =
      judge_unopened(known_, Finding::Kind::refuses_to_open, "half of a header");
  EXPECT_TRUE(created.creation_not_atomic);
  EXPECT_EQ(created.loss, Loss::intact);
  acknowledge(1);
  EXPECT_EQ(judge_unopened(known_, Finding::Kind::refuses_to_open, "half of a header").loss,
            Loss::unopenable);
}

TEST_F(Oracle, judgements_and_acknowledgements_survive_json) {
  acknowledge(5);
  apply_up_to(0, 3);
  const Judgement judgement = judged();
  const auto again = judgement_from_json(to_json(judgement));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(judgement));
  const auto known = acknowledgements_from_json(to_json(known_));
  ASSERT_TRUE(known);
  EXPECT_EQ(to_json(judge(history_, *known, contents_)), to_json(judgement));
  EXPECT_FALSE(judgement_from_json(nlohmann::json::array()));
}

TEST_F(Oracle, keys_of_both_kinds_are_read_back) {
  HistoryShape numbers = shape();
  numbers.key_kind = KeyKind::u64;
  for (const HistoryShape& one : {shape(), numbers}) {
    const History history(1, one);
    for (std::uint32_t index = 0; index < history.keys_of_writer(); ++index) {
      const std::string key = history.key_bytes({1, index});
      EXPECT_EQ(history.key_of(key), (KeyId{1, index}));
      EXPECT_FALSE(history.key_of(key + "x"));
    }
    EXPECT_FALSE(history.key_of(history.key_bytes({2, 0}))) << "there are two writers";
  }
}

TEST(Bound, of_a_window_is_held_to_whatever_the_class_allows) {
  Judgement within;
  within.loss = Loss::suffix;
  within.lost_acknowledged = 200;
  Judgement beyond = within;
  beyond.lost_acknowledged = 201;
  hold_to_bound(within, 200);
  hold_to_bound(beyond, 200);
  EXPECT_TRUE(within.allowed(Loss::suffix));
  EXPECT_FALSE(beyond.allowed(Loss::suffix));
  ASSERT_FALSE(beyond.findings.empty());
  EXPECT_EQ(to_string(beyond.findings.front().kind), "lost-beyond-bound");
}

TEST(Bound, is_that_of_lodes_window_in_force_and_of_nothing_else) {
  const Settings window{{"durability", "window"}, {"window_operations", "30"}};
  EXPECT_EQ(bound_of_loss("lode", window), 30U);
  EXPECT_EQ(bound_of_loss("lode", {{"durability", "sync"}, {"window_operations", "30"}}),
            std::nullopt);
  EXPECT_EQ(bound_of_loss("sqlite", window), std::nullopt);
}

}  // namespace
}  // namespace assay::qualify
