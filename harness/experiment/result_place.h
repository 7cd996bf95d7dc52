// Where a result lives: its ledger, its folder, and how the ledger names its files. Finds the
// result that a run can resume.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/runner.h"
#include "harness/ledger/ledger.h"

namespace assay {

struct ResultPlace {
  std::string ledger_path;
  std::string result;     ///< "20260101T120000Z-1a2b3c4d"
  std::string directory;  ///< of the result; holds trials/
  std::string base;       ///< folder that recorded paths are relative to
  bool resumed = false;
};

/// "20260101T120000Z-1a2b3c4d" of now and a plan's digest.
[[nodiscard]] std::string new_result_id(const std::string& digest);

/// The identity that decides whether two parts of a run may be one result.
struct RunIdentity {
  std::string plan_digest;
  std::string binary_sha256;
  std::string libraries;  ///< those loaded, the stores' own among them, with their digests
  std::string fingerprint;
  std::string conditions;  ///< of stores and caches, as the run's services tell them
};
[[nodiscard]] RunIdentity identity_of(const std::string& digest, const nlohmann::json& provenance);

/// The newest plan record of the same identity whose result has no verdict; null when there is
/// none.
[[nodiscard]] const LedgerRecord* resumable_plan(const std::vector<LedgerRecord>& records,
                                                 const RunIdentity& identity);

/// Ledgers of the exploratory runs of this name, newest first.
[[nodiscard]] std::vector<std::string> earlier_runs(const Plan& plan, const RunRequest& request);

/// Chooses ledger and folder for a run; looks into runs/ for an exploratory one that was stopped.
/// Of all that it chooses it makes only the folder of a new exploratory run, so that two runs that
/// begin in the same second have one each. `out` of a request that holds another experiment's files
/// is an error.
[[nodiscard]] Result<std::string> choose_ledger(const Plan& plan, const RunRequest& request,
                                                const RunIdentity& identity);

/// Place of a new result beside those that are there.
[[nodiscard]] ResultPlace new_place(const Plan& plan, const RunRequest& request,
                                    const std::string& ledger_path, const std::string& digest);
/// Place of a result that is resumed.
[[nodiscard]] ResultPlace place_of(const LedgerRecord& plan_record, const RunRequest& request,
                                   const std::string& ledger_path);

/// `path` as the ledger names it: relative to the place's base where it lies below it.
[[nodiscard]] std::string recorded_path(const ResultPlace& place, const std::string& path);
/// The file behind a recorded path.
[[nodiscard]] std::string actual_path(const ResultPlace& place, const std::string& recorded);

}  // namespace assay
