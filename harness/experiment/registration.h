// The registration of an experiment: its plan, fixed in its ledger before the first sample.
//
// A registered name stands for one plan: the one of the ledger's first `registration` record. (A
// ledger from before there were such records stands for its first `plan` record, which was written
// before its first sample too.) `assay register` writes the record; the first `assay run` of an
// experiment that has none writes it itself, before anything is measured. It is refused where the
// ledger or the results folder already hold samples that no registration came before. Nothing here
// measures. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/runner.h"
#include "harness/ledger/ledger.h"

namespace assay {

struct Registration {
  std::string digest;
  std::string hash;  ///< of its record
  std::string time;
  std::string by;             ///< "assay register", "first run", or "plan record" of an old ledger
  nlohmann::json experiment;  ///< canonical form, migrated
};

/// What the ledger's name stands for; nothing while it is not registered.
[[nodiscard]] std::optional<Registration> registration_of(const std::vector<LedgerRecord>& records);

/// Error of kind plan_changed with every key that differs when `canonical` is not what was
/// registered.
[[nodiscard]] Status check_registered(const Registration& registration,
                                      const nlohmann::json& canonical, const Plan& plan,
                                      const std::string& ledger_path);

/// Appends the registration, unless there is one of the same plan, and returns what is registered.
/// Errors: plan_changed for another plan, and where samples came before the registration.
[[nodiscard]] Result<Registration> ensure_registered(LedgerWriter& ledger, const Plan& plan,
                                                     const std::string& tree, const std::string& by,
                                                     const nlohmann::json& provenance);

/// Opens the ledger of TREE/ledgers/NAME, registers the plan there and returns the ledger's head
/// with it.
struct Registered {
  Registration registration;
  std::string ledger_path;
  std::string head;
  bool is_new = false;  ///< false: it was registered before, nothing was written
};
[[nodiscard]] Result<Registered> register_experiment(const Plan& plan, const std::string& tree,
                                                     const nlohmann::json& provenance);

/// Why the newest result of this plan that has no verdict is not gone on with: which part of its
/// conditions (binary, machine, libraries, durability, cache) differs now. Empty when there is no
/// such result.
[[nodiscard]] std::string why_new_result(const std::vector<LedgerRecord>& records,
                                         const std::string& digest,
                                         const nlohmann::json& provenance);

/// Error of kind environment when the clock stands before the ledger's last record.
[[nodiscard]] Status check_clock(const std::vector<LedgerRecord>& records, const std::string& now,
                                 const std::string& ledger_path);
/// A sentence for each record of `result` whose time lies before that of the record before it.
[[nodiscard]] std::vector<std::string> clock_warnings(const std::vector<LedgerRecord>& records,
                                                      const std::string& result);

/// Raw records in the result's folder that no ledger line names: of a run that was killed between
/// the two, or of a ledger whose tail was cut. File names, sorted.
[[nodiscard]] std::vector<std::string> unnamed_raw_records(const std::string& directory,
                                                           const std::vector<LedgerRecord>& records,
                                                           const std::string& result);

}  // namespace assay
