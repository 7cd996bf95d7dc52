// Results as JUnit XML, which continuous integration shows.
//
// A result is a test suite, a comparison a test case named "a vs b (kind)"; the A/A check, the
// positive control and the outcome are cases, too. A failure is what makes a registered run end
// with a status of its own: a declared claim that was refuted, a disqualified arm. What could not
// be judged (void, inconclusive though declared, a run that is not complete) is skipped, with why.
// Exploratory comparisons never fail.
// Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include "harness/ledger/results.h"

namespace assay {

[[nodiscard]] std::string junit_xml(const std::vector<LedgerResults>& ledgers);

}  // namespace assay
