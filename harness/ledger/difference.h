// What two results differ in: the plan, the binary, the settings of the stores, the environment,
// and the figures that they found. Only what differs; what is read anew at every run (free memory,
// load) is marked, because it differs always.
// Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include "harness/ledger/results.h"

namespace assay {

struct Difference {
  std::string section;  ///< "plan", "binary", "settings", "environment" or "verdict"
  std::string what;     ///< path in the record, such as cpu.model
  std::string a;        ///< as it is in the record; "-" where it is not there
  std::string b;
  bool reading = false;  ///< read anew at every run: no difference of the machine
};

[[nodiscard]] std::vector<Difference> differences(const LedgerResult& a, const LedgerResult& b);

}  // namespace assay
