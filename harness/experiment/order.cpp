#include "harness/experiment/order.h"

#include <numeric>
#include <utility>

namespace assay {
namespace {

template <class Item>
void shuffle(std::vector<Item>& items, SeedSequence& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i)]);
  }
}

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::vector<Turn> random_order(std::size_t arms, std::uint64_t trials, SeedSequence& random) {
  std::vector<std::size_t> who;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    for (std::size_t arm = 0; arm < arms; ++arm) who.push_back(arm);
  }
  shuffle(who, random);
  std::vector<std::uint64_t> rounds(arms, 0);
  std::vector<Turn> turns;
  for (const std::size_t arm : who) turns.push_back({arm, rounds[arm]++});
  return turns;
}

/// Rows in random order, all of them used before one is used again; which arm plays which
/// treatment of the square is random, too.
std::vector<Turn> block_order(std::size_t arms, std::uint64_t trials, SeedSequence& random) {
  std::vector<std::size_t> labels = numbers(arms);
  shuffle(labels, random);
  const auto rows = williams_rows(arms);
  std::vector<std::size_t> order = numbers(rows.size());
  std::vector<Turn> turns;
  for (std::uint64_t block = 0; block < trials; ++block) {
    const std::size_t at = block % rows.size();
    if (at == 0) shuffle(order, random);
    for (const std::size_t treatment : rows[order[at]]) turns.push_back({labels[treatment], block});
  }
  return turns;
}

std::vector<Turn> set_order(std::size_t arms, std::uint64_t trials, SeedSequence& random) {
  std::vector<Turn> turns;
  std::vector<std::size_t> labels = numbers(arms);
  for (std::uint64_t set = 0; set < trials; ++set) {
    shuffle(labels, random);
    for (const std::size_t arm : labels) turns.push_back({arm, set});
  }
  return turns;
}

/// The turns of one cell, round by round, its arms numbered as the whole plan's from `first` on.
std::vector<std::vector<Turn>> rounds_of(const Plan& cell, std::size_t number, std::size_t first) {
  SeedSequence seeds(cell.seed + number);
  std::vector<std::vector<Turn>> rounds(cell.rounds());
  for (Turn turn : order_of_trials(cell.design, cell.arms.size(), cell.rounds(), seeds.next())) {
    turn.arm += first;
    rounds[turn.round].push_back(turn);
  }
  return rounds;
}

}  // namespace

std::vector<Turn> order_of_plan(const Plan& plan) {
  std::vector<std::size_t> with_trials;
  for (std::size_t arm = 0; arm < plan.arms.size(); ++arm) {
    if (plan.arms[arm].trials_of.empty()) with_trials.push_back(arm);
  }
  if (plan.cells.empty() || plan.design == Design::random) {
    auto turns = order_of_trials(plan.design, with_trials.size(), plan.rounds(), plan.seed);
    for (Turn& turn : turns) turn.arm = with_trials[turn.arm];
    return turns;
  }
  std::vector<std::vector<std::vector<Turn>>> cells;
  std::size_t first = 0;
  for (const Cell& cell : plan.cells) {
    if (cell.plan.arms.front().trials_of.empty()) {
      cells.push_back(rounds_of(cell.plan, cells.size(), first));
    }
    first += cell.plan.arms.size();
  }
  SeedSequence random(~plan.seed);
  std::vector<std::size_t> order = numbers(cells.size());
  std::vector<Turn> turns;
  for (std::uint64_t round = 0; round < plan.rounds(); ++round) {
    shuffle(order, random);
    for (const std::size_t cell : order) {
      turns.insert(turns.end(), cells[cell][round].begin(), cells[cell][round].end());
    }
  }
  return turns;
}

std::uint64_t SeedSequence::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31U);
}

std::uint64_t SeedSequence::below(std::uint64_t bound) {
  const std::uint64_t excess = (~std::uint64_t{0} % bound + 1) % bound;
  std::uint64_t drawn = next();
  while (drawn > ~std::uint64_t{0} - excess) drawn = next();
  return drawn % bound;
}

std::vector<std::vector<std::size_t>> williams_rows(std::size_t arms) {
  // The first row zigzags 0, 1, n-1, 2, n-2, ...: its neighbours differ by every residue once.
  std::vector<std::size_t> zigzag;
  for (std::size_t i = 0; i < arms; ++i) {
    zigzag.push_back(i % 2 == 1 ? (i + 1) / 2 : (arms - i / 2) % arms);
  }
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t shift = 0; shift < arms; ++shift) {
    std::vector<std::size_t> row;
    for (const std::size_t arm : zigzag) row.push_back((arm + shift) % arms);
    rows.push_back(std::move(row));
  }
  if (arms % 2 == 1 && arms > 1) {  // the mirrored rows make up what an odd number leaves out
    for (std::size_t i = 0; i < arms; ++i) rows.emplace_back(rows[i].rbegin(), rows[i].rend());
  }
  return rows;
}

std::vector<Turn> order_of_trials(Design design, std::size_t arms, std::uint64_t trials,
                                  std::uint64_t seed) {
  SeedSequence random(seed ^ 0x6f72646572ULL);  // apart from the streams' use of the same seed
  if (design == Design::random) return random_order(arms, trials, random);
  if (design == Design::blocks) return block_order(arms, trials, random);
  return set_order(arms, trials, random);
}

}  // namespace assay
