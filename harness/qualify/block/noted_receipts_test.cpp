// An acknowledgement counts at a cut only when it surely came before it.
#include "harness/qualify/block/noted_receipts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::qualify::block {
namespace {

class NotedReceiptsTest : public ::testing::Test {
 protected:
  NotedReceiptsTest()
      : history_(1, {.writers = 2}),
        receipts_(*SharedReceipts::make(history_, 8)),
        noted_(*NotedReceipts::make(receipts_, length_, 2, 1, 8)) {}

  std::atomic<std::uint32_t> length_{0};
  History history_;
  SharedReceipts receipts_;
  NotedReceipts noted_;
};

TEST_F(NotedReceiptsTest, what_was_noted_at_a_length_is_known_at_cuts_from_there_on) {
  length_ = 3;
  noted_.begun(0, 1);
  length_ = 5;
  noted_.acknowledged(0, 1);
  noted_.begun(1, 1);
  const TimedAcknowledgements timed = noted_.read();
  EXPECT_TRUE(timed.before(2).writers[0].since.empty());
  ASSERT_EQ(timed.before(3).writers[0].since.size(), 1U);
  EXPECT_EQ(timed.before(4).acknowledged_commits(), 0U);
  EXPECT_TRUE(timed.before(4).writers[1].since.empty());
  EXPECT_EQ(timed.before(5).acknowledged_commits(), 1U);
  EXPECT_EQ(timed.before(5).writers[1].since.size(), 1U);
}

TEST_F(NotedReceiptsTest, the_order_over_all_writers_stays_what_it_was) {
  noted_.begun(0, 1);
  noted_.acknowledged(0, 1);
  noted_.begun(1, 1);
  const Acknowledgements known = noted_.read().before(0);
  EXPECT_LT(known.writers[0].since.at(0).acknowledged, known.writers[1].since.at(0).begun);
}

TEST_F(NotedReceiptsTest, a_sync_covers_from_the_length_at_which_it_returned) {
  noted_.begun(0, 1);
  noted_.acknowledged(0, 1);
  length_ = 4;
  const std::uint64_t begun_at = noted_.sync_begins();
  length_ = 9;
  noted_.synced(begun_at);
  const TimedAcknowledgements timed = noted_.read();
  EXPECT_EQ(timed.before(8).synced, 0U);
  EXPECT_EQ(timed.before(9).synced, begun_at);
  EXPECT_GT(begun_at, 0U);
}

TEST_F(NotedReceiptsTest, they_come_through_json_as_they_were) {
  length_ = 2;
  noted_.begun(0, 1);
  length_ = 6;
  noted_.acknowledged(0, 1);
  noted_.synced(noted_.sync_begins());
  const nlohmann::json json = to_json(noted_.read());
  const auto again = timed_acknowledgements_from_json(json);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(to_json(*again), json);
  EXPECT_FALSE(timed_acknowledgements_from_json({{"all", 3}}));
}

}  // namespace
}  // namespace assay::qualify::block
