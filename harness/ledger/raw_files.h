// Where the raw record is that a trial's ledger line names.
//
// Its path is relative to the tree above ledgers/NAME/, or to the folder of the ledger elsewhere.
// A merged ledger tells the folder of each ledger that records were carried from, relative to its
// own, so that records of two folders with the same names below are not taken for one another.
// Records are shown in the order of the ledger; one thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/ledger/ledger.h"

namespace assay {

class RawFiles {
 public:
  explicit RawFiles(const std::string& ledger_path);

  /// Learns from records of the kind `merge`; others are of no interest.
  void take(const LedgerRecord& record);

  /// The file that `raw` of `trial` means: the first that is there of the documented place, beside
  /// the ledger, above it, and where the user stands; the documented place when there is none.
  [[nodiscard]] std::string file_of(const LedgerRecord& trial, const std::string& raw) const;

 private:
  /// Numbers of the source ledgers that a record came through, the outermost first.
  using Route = std::vector<std::uint64_t>;
  [[nodiscard]] static Route route_of(const nlohmann::json& source);

  std::map<Route, std::string> folders_;
};

/// A path as the user would name it: relative where it is below the place they stand at.
[[nodiscard]] std::string as_named(const std::string& path);

}  // namespace assay
