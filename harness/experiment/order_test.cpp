#include "harness/experiment/order.h"

#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace assay {
namespace {

using Followers = std::map<std::pair<std::size_t, std::size_t>, int>;

Followers followers(const std::vector<std::vector<std::size_t>>& rows) {
  Followers count;
  for (const auto& row : rows) {
    for (std::size_t i = 1; i < row.size(); ++i) ++count[{row[i - 1], row[i]}];
  }
  return count;
}

// The balanced square of four treatments as textbooks print it: ABDC BCAD CDBA DACB.
TEST(Williams, gives_the_textbook_square_of_four) {
  const std::vector<std::vector<std::size_t>> expected = {
      {0, 1, 3, 2}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 0, 2, 1}};
  EXPECT_EQ(williams_rows(4), expected);
}

TEST(Williams, lets_every_arm_follow_every_other_one_equally_often) {
  for (std::size_t arms = 2; arms <= 9; ++arms) {
    const auto rows = williams_rows(arms);
    EXPECT_EQ(rows.size(), arms % 2 == 0 ? arms : 2 * arms);
    const Followers count = followers(rows);
    EXPECT_EQ(count.size(), arms * (arms - 1)) << arms << " arms";
    for (const auto& [pair, times] : count) EXPECT_EQ(times, arms % 2 == 0 ? 1 : 2);
    for (std::size_t position = 0; position < arms; ++position) {
      std::map<std::size_t, int> at;
      for (const auto& row : rows) ++at[row[position]];
      EXPECT_EQ(at.size(), arms) << "position " << position;
      for (const auto& [arm, times] : at) EXPECT_EQ(times, arms % 2 == 0 ? 1 : 2);
    }
  }
}

TEST(BlockOrder, is_balanced_over_whole_squares_whatever_the_seed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto turns = order_of_trials(Design::blocks, 6, 12, seed);
    std::vector<std::vector<std::size_t>> blocks(12);
    for (const Turn& turn : turns) blocks.at(turn.round).push_back(turn.arm);
    for (const auto& block : blocks) {
      EXPECT_EQ(std::set<std::size_t>(block.begin(), block.end()).size(), 6U) << "seed " << seed;
    }
    const Followers count = followers(blocks);
    EXPECT_EQ(count.size(), 30U);
    for (const auto& [pair, times] : count) EXPECT_EQ(times, 2) << "seed " << seed;
  }
}

TEST(Order, has_every_arm_as_often_as_planned_and_numbers_its_rounds) {
  for (const Design design : {Design::random, Design::blocks, Design::windows}) {
    const auto turns = order_of_trials(design, 5, 7, 3);
    ASSERT_EQ(turns.size(), 35U);
    std::vector<std::uint64_t> next(5, 0);
    for (const Turn& turn : turns) EXPECT_EQ(turn.round, next.at(turn.arm)++);
    for (const std::uint64_t rounds : next) EXPECT_EQ(rounds, 7U);
  }
}

TEST(Order, is_equal_for_equal_seeds_and_differs_for_others) {
  for (const Design design : {Design::random, Design::blocks, Design::windows}) {
    const auto arms_of = [design](std::uint64_t seed) {
      std::vector<std::size_t> arms;
      for (const Turn& turn : order_of_trials(design, 5, 20, seed)) arms.push_back(turn.arm);
      return arms;
    };
    EXPECT_EQ(arms_of(1), arms_of(1));
    EXPECT_NE(arms_of(1), arms_of(2));
  }
}

// Completely random means that runs of one arm happen: in a blocked order of 2 arms no arm
// comes more than twice in a row.
TEST(RandomOrder, is_not_blocked) {
  const auto turns = order_of_trials(Design::random, 2, 50, 1);
  int longest = 1;
  int run = 1;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    run = turns[i].arm == turns[i - 1].arm ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  EXPECT_GT(longest, 2);
}

// Chi-square with 5 degrees of freedom; 20.5 is its 99.9 % point.
TEST(SeedSequence, draws_evenly) {
  SeedSequence random(7);
  std::array<int, 6> count{};
  constexpr int kDraws = 6000;
  for (int i = 0; i < kDraws; ++i) ++count.at(random.below(6));
  double chi_square = 0.0;
  for (const int observed : count) {
    const double difference = observed - kDraws / 6.0;
    chi_square += difference * difference / (kDraws / 6.0);
  }
  EXPECT_LT(chi_square, 20.5) << "seed 7";
}

}  // namespace
}  // namespace assay
