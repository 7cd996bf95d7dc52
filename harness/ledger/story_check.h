// Whether the records of a sound chain tell a story that can be true: the plan before its samples,
// the digest of the plan, no more and no fewer values in a verdict than there are sound trials.
//
// An experiment is honest only if what was asked stood in the ledger before it was measured; who
// writes a whole ledger anew can make a chain fit, but has to make these fit, too.
// Records are shown in the order of the ledger; one thread at a time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/ledger/verify.h"

namespace assay {

class StoryCheck {
 public:
  explicit StoryCheck(Verification& into) : into_(into) {}
  void take(const LedgerRecord& record);

 private:
  struct Told {
    std::uint64_t plan_line = 0;     ///< 0: none yet
    std::uint64_t verdict_line = 0;  ///< 0: none yet
    std::string design;
    std::uint64_t warm_up_trials = 0;  ///< of each arm: recorded, and not counted
    std::uint64_t first_trial_line = 0;
    std::map<std::string, std::set<std::uint64_t>> sound_rounds;  ///< by arm
  };

  void take_plan(const LedgerRecord& record, Told& told);
  void take_trial(const LedgerRecord& record, Told& told);
  void take_verdict(const LedgerRecord& record, Told& told);
  void check_time(const LedgerRecord& record);
  void find(const LedgerRecord& record, const char* code, std::string what);

  Verification& into_;
  std::map<std::pair<std::string, std::string>, Told> results_;  ///< by name and machine
  std::map<std::string, std::pair<std::string, std::uint64_t>> last_times_;  ///< by route
  std::set<std::string> unknown_kinds_;
};

}  // namespace assay
