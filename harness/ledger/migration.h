// Records of past schemas, in the form of the current one. Only what is read is migrated: a line
// that was written is never written again.
//
// One step a version: step n turns a body of schema n into one of schema n + 1, and a record passes
// through all steps from its own schema on. A step may rename, convert and fill in; where a figure
// was not recorded it says so with {"unknown": why}, and never invents one. What a schema holds is
// in harness/ledger/schema/vN.schema.json; ledgers of past schemas are kept in testdata/.
// Stateless; any thread.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "harness/ledger/ledger.h"

namespace assay {

/// Schema 2 demands what the first records of schema 1 left out.
void migrate_body_1_to_2(std::string_view kind, nlohmann::json& body);

/// Brings the body of a record from the schema that it was written in (of a carried record, that
/// of its innermost source) to kLedgerSchema. `schema` keeps telling what the line was written in.
void migrate(LedgerRecord& record);

}  // namespace assay
