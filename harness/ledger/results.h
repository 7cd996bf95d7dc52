// The results of a ledger: what was planned, how far it came, what was found. One reading of the
// ledger each; memory grows by the results, not by their trials.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/ledger/ledger.h"

namespace assay {

/// One result. Results of two machines that share a name are two.
struct LedgerResult {
  std::string result;
  std::string machine;     ///< fingerprint; "unknown", or empty without a plan
  std::string experiment;  ///< its name
  std::string status;      ///< "registered" or "exploratory"
  std::string question;
  std::string began;    ///< time of the plan
  std::string ended;    ///< time of the verdict; empty = none yet
  std::string outcome;  ///< of the verdict; else "interrupted" or "not complete"
  std::uint64_t trials = 0;
  std::uint64_t void_trials = 0;
  std::map<std::string, std::uint64_t> verdicts;  ///< of the comparisons: how often each
  std::vector<std::string> sentences;
  std::uint64_t plan_line = 0;
  std::uint64_t verdict_line = 0;
  std::string verdict_hash;  ///< as it was first written: in a merged ledger that of its source
  nlohmann::json plan;       ///< body; null without one
  nlohmann::json verdict;    ///< body; null without one
  nlohmann::json arms;       ///< by arm, of its first trial: store, version, durability, settings
};

struct LedgerResults {
  std::string path;
  LedgerEnd end;
  std::vector<LedgerResult> results;  ///< in the order of their plans
  std::uint64_t merged_from = 0;      ///< ledgers; 0 = not a merged ledger
};

[[nodiscard]] Result<LedgerResults> read_results(const std::string& path);

/// The result of that name (the newest with a verdict when it is empty, else the newest). Errors:
/// bad_input where there is none (with the nearest name), or where machines share the name and
/// `machine`, a beginning of a fingerprint, does not tell which.
[[nodiscard]] Result<const LedgerResult*> choose_result(const LedgerResults& results,
                                                        const std::string& name,
                                                        const std::string& machine);

}  // namespace assay
