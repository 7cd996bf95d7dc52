// The accepted baseline of an experiment: a result of its own ledger that later ones are held
// against, named by a record of kind "accept" (harness/FORMATS.md). The newest one counts; a result
// keeps the one that its plan record names. Stateless; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/comparison.h"
#include "harness/ledger/ledger.h"

namespace assay {

/// The body of an accept record for `result` (empty: the newest verdict). Errors: bad_input for an
/// unknown result (with the nearest), void_experiment for one that was not judged.
[[nodiscard]] Result<nlohmann::json> acceptance_of(const std::vector<LedgerRecord>& records,
                                                   const std::string& result,
                                                   const std::string& note,
                                                   const std::string& ledger_path);

/// The newest acceptance that was measured on `machine` (a fingerprint), as a merged ledger may
/// hold those of several; the newest of all where there is none of it; null without any.
[[nodiscard]] const LedgerRecord* newest_acceptance(const std::vector<LedgerRecord>& records,
                                                    const std::string& machine);

/// What an accept record says; values that are not above zero are left out.
[[nodiscard]] Baseline baseline_of(const LedgerRecord& acceptance);

/// The newest accepted result, or the one whose accept record has the hash `kept`; nothing when
/// none is accepted yet. Error of kind environment when it was measured on another machine than
/// `provenance` is of.
[[nodiscard]] Result<std::optional<Baseline>> accepted_baseline(
    const std::vector<LedgerRecord>& records, const std::string& kept,
    const nlohmann::json& provenance, const std::string& ledger_path);

}  // namespace assay
