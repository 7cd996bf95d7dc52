// The process that forks lives of a store, kills them, and has what is left checked in fresh forks.
//
// It loads the store's code and never opens a store itself. A case is a new directory with a
// history of its own and several rounds; a round is one to four lives that are killed one after
// the other (the later ones while they recover from the one before), then a check that is not
// killed. What was found there is where the next round begins.
// Invariants: nothing is judged by a process that wrote; case N follows from the campaign's seed
// and N, up to when exactly a timer fires.
// The process has one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "harness/qualify/kill/aim.h"
#include "harness/qualify/kill/call_stop.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/kill/kill_request.h"
#include "harness/qualify/oracle.h"
#include "harness/qualify/perform.h"

namespace assay::qualify {

/// How long the stages of this store take here, and how many calls: where to aim.
struct Pace {
  double open_us = 1000.0;
  double checkpoint_us = 500.0;
  double close_us = 500.0;
  double commit_us = 100.0;
  double open_calls = 10.0;
  double life_calls = 60.0;
};

/// The aim of life `life` (from 0) of a round; what is chosen follows from `random` and `pace`.
[[nodiscard]] Aim choose_aim(std::mt19937_64& random, const Pace& pace, std::uint32_t life,
                             bool calls);
/// What a life with this aim does.
[[nodiscard]] LifePlan plan_for(const Aim& aim, std::mt19937_64& random,
                                const SharedReceipts& receipts, std::uint32_t writers);

class KillServer {
 public:
  [[nodiscard]] static Result<KillServer> make(KillRequest request, const Driver& driver);

  /// Opens a store once and closes it: {"store", "version", "settings" (in force), "calls"}.
  [[nodiscard]] Result<nlohmann::json> describe();
  /// Runs one case; `say` gets each round. A failure is kept at `bundle` unless that is empty.
  [[nodiscard]] Status run_case(std::uint64_t number, const std::string& bundle,
                                const std::function<void(const nlohmann::json&)>& say);

 private:
  struct Round;
  KillServer(KillRequest request, const Driver& driver, SharedReceipts receipts, SharedText text)
      : request_(std::move(request)),
        driver_(driver),
        receipts_(std::move(receipts)),
        text_(std::move(text)) {}

  [[nodiscard]] std::string data() const { return request_.directory + "/data"; }
  [[nodiscard]] std::string image() const { return request_.directory + "/image"; }
  [[nodiscard]] OpenOptions options() const;
  [[nodiscard]] std::chrono::milliseconds patience() const;

  Status run_round(const History& history, std::mt19937_64& random, bool keep_image, Round& round);
  Status run_life(const History& history, const Aim& aim, const LifePlan& plan,
                  std::uint64_t random, Round& round);
  int live(const History& history, const Aim& aim, const LifePlan& plan, const CallStops* stops);
  Status check(const History& history, Round& round);
  Status keep(const History& history, std::uint64_t number, const std::string& bundle,
              const Round& round) const;
  void learn_pace(const CallStops::Seen& seen, bool calls);

  KillRequest request_;
  const Driver& driver_;
  SharedReceipts receipts_;
  SharedText text_;
  Pace pace_;
};

}  // namespace assay::qualify
