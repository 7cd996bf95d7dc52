// Where to aim: the mix of moments, and what a life does so that the moment comes.
#include <algorithm>
#include <cmath>

#include "harness/qualify/kill/kill_server.h"

namespace assay::qualify {
namespace {

std::uint64_t below(std::mt19937_64& random, double most) {
  const auto count = static_cast<std::uint64_t>(std::max(1.0, most));
  return random() % count;
}

}  // namespace

Aim choose_aim(std::mt19937_64& random, const Pace& pace, std::uint32_t life, bool calls) {
  Aim aim;
  const std::uint64_t die = random() % 100;
  const auto call = [&](Stage stage, double expected) {
    aim.kind = Aim::Kind::call;
    aim.stage = stage;
    aim.number = 1 + below(random, expected * 1.1);
    aim.tear = random() % 3 == 0;
    return aim;
  };
  const auto timed = [&](Aim::Kind kind, double expected_us) {
    aim.kind = kind;
    aim.delay_us = below(random, expected_us * 1.3 + 20.0);
    return aim;
  };
  // The later lives of a round are killed while they recover.
  if (life > 0) {
    if (calls && die < 50) return call(Stage::opening, pace.open_calls);
    return timed(Aim::Kind::recovery, pace.open_us);
  }
  if (die < 25) {
    // Near the beginning is as likely as in the midst of things.
    const double most = pace.open_us + 40.0 * pace.commit_us + 1000.0;
    const double uniform = static_cast<double>(random() % 10'000) / 10'000.0;
    aim.delay_us = static_cast<std::uint64_t>(
        random() % 3 == 0 ? std::pow(most, uniform) : most * uniform + pace.open_us / 2);
    return aim;
  }
  if (die < 45) {
    aim.kind = Aim::Kind::note;
    aim.number = 1 + random() % 60;
    return aim;
  }
  if (die < 70) {
    if (!calls) return timed(Aim::Kind::time, pace.open_us + 20.0 * pace.commit_us);
    const std::uint64_t where = random() % 8;
    if (where == 0) return call(Stage::checkpoint, 8.0);
    if (where == 1) return call(Stage::closing, 6.0);
    return call(Stage::open, pace.life_calls);
  }
  if (die < 80) return timed(Aim::Kind::checkpoint, pace.checkpoint_us);
  if (die < 90) return timed(Aim::Kind::closing, pace.close_us);
  return timed(Aim::Kind::recovery, pace.open_us);
}

LifePlan plan_for(const Aim& aim, std::mt19937_64& random, const SharedReceipts& receipts,
                  std::uint32_t writers) {
  LifePlan plan;
  std::uint64_t room = receipts.room(0);
  for (std::uint32_t writer = 0; writer < writers; ++writer) {
    plan.first.push_back(receipts.last_begun(writer) + 1);
    room = std::min(room, receipts.room(writer));
  }
  const bool checkpoints = aim.kind == Aim::Kind::checkpoint || aim.stage == Stage::checkpoint;
  const bool lives_long =
      aim.kind == Aim::Kind::time || aim.kind == Aim::Kind::note || aim.stage == Stage::open;
  std::uint64_t transactions = 3 + random() % 15;  // the moment comes before or after them
  if (checkpoints) transactions = 40;
  if (lives_long) transactions = 400;
  plan.transactions = std::min<std::uint64_t>(room / 4, transactions);
  if (checkpoints)
    plan.checkpoint_every = static_cast<std::uint32_t>(3 + random() % 8);
  else if (random() % 3 == 0)
    plan.checkpoint_every = static_cast<std::uint32_t>(5 + random() % 30);
  if (random() % 4 == 0) plan.sync_every = static_cast<std::uint32_t>(5 + random() % 20);
  plan.read_every = 4;
  return plan;
}

}  // namespace assay::qualify
