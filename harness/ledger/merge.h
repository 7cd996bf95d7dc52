// Ledgers of several machines, or two that grew apart, in one new ledger.
//
// A merged ledger has a chain of its own. Its first record (kind `merge`) names the sources by head
// and count; then every record of every source follows, each with what its line was in its own
// ledger: `source` = {hash, ledger (number of the source), machine, previous, schema, seq, source}.
// Body, kind and time are unchanged, so that the old line can be rebuilt and its hash checked: the
// chains of all sources stay whole inside (source_check.h), and a hash that was published before
// still finds its record. Records that sources share (copies of one ledger that grew apart) are
// carried once. A merged ledger can be appended to, and merged again: `source` nests.
//
// The same sources at the same places give the same bytes, whatever order they are named in:
// merged ledgers come first, then the rest by the time of its first record. The merge record is
// dated as the newest record that it brings in.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay {

struct MergedSource {
  std::string path;
  std::uint64_t records = 0;
  std::uint64_t carried = 0;  ///< the rest was in sources before it
  std::vector<std::string> machines;
  bool torn = false;  ///< an unfinished last line was left out
};

struct Merged {
  std::uint64_t records = 0;  ///< of the new ledger, its merge record included
  std::string head;
  std::vector<MergedSource> sources;
};

/// Writes the new ledger `out` durably, or nothing. Errors: bad_input when `out` is there already,
/// when there are no two ledgers, when one of them holds all that the others do, or when one record
/// reached two of them through different merges; ledger for a source that is damaged.
[[nodiscard]] Result<Merged> merge_ledgers(const std::vector<std::string>& paths,
                                           const std::string& out);

}  // namespace assay
