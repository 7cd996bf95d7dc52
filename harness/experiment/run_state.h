// What a ledger says about one result: which turns of the order are done, which were void, what is
// left. Shared by the runner (to go on) and the verdict (to know which values count).
// Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/experiment/order.h"
#include "harness/experiment/plan.h"
#include "harness/ledger/ledger.h"

namespace assay {

/// A trial record of the ledger: the raw record's head, and where the raw record is.
struct TrialEntry {
  std::string arm;
  std::string cell;           ///< of a sweep; else empty
  std::uint64_t index = 0;    ///< number within the result, in the order in which they ran
  std::uint64_t round = 0;    ///< trial of the arm, block or set
  std::uint64_t attempt = 0;  ///< 0, and one more for each void attempt before
  std::string status;
  std::string reason;
  std::string raw_path;
  std::string raw_sha256;
  nlohmann::json body;
};

/// What of a trial's record must be the same in every trial of its arm: version, class and settings
/// of the store, whether the page cache was held to the budget, the access paths of operations over
/// tables, and the cache policies with what could not be done of them. Of the settings that were
/// read back only those named in `declared` (an object) count, where it is one: what else a store
/// tells may change by itself.
[[nodiscard]] nlohmann::json conditions_of_trial(const nlohmann::json& trial_body,
                                                 const nlohmann::json& declared);

class RunState {
 public:
  RunState(const Plan& plan, std::string result) : plan_(&plan), result_(std::move(result)) {}
  /// Takes the trial records of this result out of `records`.
  void load(const std::vector<LedgerRecord>& records);
  void add(const nlohmann::json& trial_body);

  [[nodiscard]] const std::string& result() const { return result_; }
  [[nodiscard]] const std::vector<TrialEntry>& trials() const { return trials_; }
  /// Arms with wrong contents in any trial -> what was wrong first. Of a sweep the arm is out in
  /// every cell: else only those where it was lucky would count.
  [[nodiscard]] const std::map<std::string, std::string>& disqualified() const {
    return disqualified_;
  }
  /// True when `arm`'s round has its value, or needs none any more.
  [[nodiscard]] bool done(const std::string& arm, std::uint64_t round) const;
  /// A set is done when one attempt of it has a sound record of every arm still in the race.
  [[nodiscard]] bool set_done(std::uint64_t round, const std::string& cell = {}) const;
  /// The record whose value counts; null when there is none.
  [[nodiscard]] const TrialEntry* counted(const std::string& arm, std::uint64_t round) const;
  /// Attempts made so far.
  [[nodiscard]] std::uint64_t attempts(const std::string& arm, std::uint64_t round) const;
  [[nodiscard]] std::uint64_t attempts_of_set(std::uint64_t round, const std::string& cell) const;
  [[nodiscard]] std::uint64_t void_count(const std::string& arm) const;
  /// Void trials, or void sets in the design `windows`.
  [[nodiscard]] std::uint64_t void_turns() const;
  [[nodiscard]] std::uint64_t next_index() const;

 private:
  /// The arm that the trials of `arm` are recorded under.
  [[nodiscard]] const std::string& recorded_as(const std::string& arm) const;
  [[nodiscard]] std::optional<std::uint64_t> sound_attempt(std::uint64_t round,
                                                           const std::string& cell) const;
  void disqualify(const TrialEntry& trial);

  const Plan* plan_;
  std::string result_;
  std::vector<TrialEntry> trials_;
  std::map<std::string, std::string> disqualified_;
};

}  // namespace assay
