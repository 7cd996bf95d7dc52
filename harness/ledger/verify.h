// Whether a ledger is what its writers wrote, and whether what it names is still there.
//
// verify_ledger() reads a whole ledger, however damaged, and tells every fault with its file and
// line: lines that were changed, removed, inserted, repeated or moved (chain_diagnosis.h); in a
// merged ledger also source chains that no longer fit; plans that were recorded after their
// samples or do not fit their digest, verdicts that count other samples than the ledger holds; raw
// records that are missing or were changed. A chain proves nothing about its own end and cannot
// show that the whole was written anew: that takes a head that was kept elsewhere.
// Nothing is written. Memory grows by the hashes of the records, not by their bodies.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay {

/// What is done about the raw records that trials name.
enum class RawCheck : std::uint8_t {
  all,      ///< one that is missing or changed is a finding
  present,  ///< one that is missing is counted only
  none,     ///< none is looked at
};

struct Finding {
  std::string where;  ///< "path:line", or a raw file
  std::string code;   ///< one word, stable: "changed", "removed", "raw_missing", ... (FORMATS.md)
  std::string what;   ///< one sentence
};

/// Where a head that was kept elsewhere is in a ledger.
struct HeadPlace {
  std::uint64_t line = 0;
  std::uint64_t follow = 0;  ///< records behind it: appended since
  bool of_source = false;    ///< it is the hash that a carried record had in its own ledger
};

struct Verification {
  std::string path;
  std::uint64_t records = 0;
  std::string head;               ///< of the last whole line; 64 zeros when there is none
  std::vector<Finding> findings;  ///< any of them: the ledger cannot be trusted
  std::vector<Finding> notes;     ///< worth knowing, and no fault of the ledger
  std::uint64_t raw_named = 0;    ///< raw records that trials name
  std::uint64_t raw_sound = 0;    ///< of them, those whose digest fits
  std::uint64_t raw_missing = 0;
  std::map<std::string, HeadPlace> heads;  ///< of those that were looked for, the ones found
};

/// `heads`: hashes to look for. An error only where there is nothing to read.
[[nodiscard]] Result<Verification> verify_ledger(const std::string& path, RawCheck raw_check,
                                                 const std::vector<std::string>& heads);

/// A head is 64 digits of lower case hex, whole: a prefix could be met by chance.
[[nodiscard]] Status check_is_head(const std::string& text);

}  // namespace assay
