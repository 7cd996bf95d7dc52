// One page over all ledgers: every result with its question, its verdict in a sentence, whether it
// was registered, when, where and with how many, the hash of its record, and its report where there
// is one. Self-contained, without script. What was lost stands as large as what was won, and a
// result that is void or not complete is there like any other.
#pragma once

#include <string>
#include <vector>

#include "adapters/result.h"
#include "harness/ledger/results.h"

namespace assay::report {

struct WrittenIndex {
  std::string html;  ///< path of index.html
  std::size_t results = 0;
  std::size_t linked = 0;          ///< results whose report is there
  std::vector<std::string> notes;  ///< ledgers and results that could not be read, and why
};

/// A result of a ledger and the address of its report as seen from the page (empty: none is there).
struct IndexEntry {
  LedgerResult result;
  std::string ledger;
  std::string page;
  bool merged = false;  ///< the ledger was merged from others
};

/// The page, newest result first.
[[nodiscard]] std::string index_html(std::vector<IndexEntry> entries,
                                     const std::vector<std::string>& notes);

/// Reads every ledger and writes DIRECTORY/index.html, complete or not at all. A ledger that cannot
/// be read is named on the page, which is made nevertheless.
[[nodiscard]] Result<WrittenIndex> write_index(const std::vector<std::string>& ledgers,
                                               const std::string& directory);

}  // namespace assay::report
