// Which machine a record was written on: results of several machines may share a merged ledger and
// even a name (the same plan begun in the same second).
//
// A record that was carried says it in its source; any other has the machine of the plan of its
// result. Records are shown in the order of the ledger; one thread at a time.
#pragma once

#include <map>
#include <string>

#include "harness/ledger/ledger.h"

namespace assay {

/// `body.result`; empty where a record belongs to none.
[[nodiscard]] std::string result_of(const LedgerRecord& record);

class Machines {
 public:
  /// The fingerprint, "unknown" where the plan could not tell it, or empty without a plan.
  [[nodiscard]] std::string of(const LedgerRecord& record);

 private:
  std::map<std::string, std::string> of_result_;
};

}  // namespace assay
