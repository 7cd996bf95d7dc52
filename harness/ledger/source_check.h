// Whether the chains of the ledgers that a merged ledger was made from are still whole in it.
//
// A carried record holds what is needed to rebuild its line in its own ledger (merge.h). Every line
// so rebuilt must have the hash that was recorded, every `previous` must be the hash of a line that
// is here, and the head of every source must be here. Records are shown in the order of the ledger;
// one thread at a time.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/ledger/verify.h"

namespace assay {

class SourceCheck {
 public:
  explicit SourceCheck(Verification& into) : into_(into) {}
  void take(const LedgerRecord& record);
  void finish();

 private:
  struct Place {
    std::uint64_t seq = 0;
    std::uint64_t line = 0;
  };
  struct Link {
    std::string previous;
    Place place;
  };

  void find(std::uint64_t line, const char* code, std::string what);
  void take_merge(const LedgerRecord& record);

  Verification& into_;
  std::unordered_map<std::string, Place> lines_;  ///< by hash: of sources, and of this ledger
  std::vector<Link> links_;
  std::vector<std::pair<std::string, std::uint64_t>> heads_;  ///< of sources, and who named them
};

}  // namespace assay
