// What was done to a ledger whose lines no longer follow one another: which line was changed,
// removed, inserted or moved.
//
// Every line names the hash of the one before, so that lines are nodes of a forest whose edges
// nobody can forge without changing hashes. The longest way through it from the first record is
// taken for the history; what stands beside that way was inserted, where the way breaks a line was
// changed or removed, and where it runs against the order of the file lines were moved. Several
// causes can leave the same traces: the one that needs the fewest changed lines is named.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// A line that could be read as a record; `number` is its line in the file, from 1.
struct LinkedLine {
  std::uint64_t number = 0;
  std::uint64_t seq = 0;
  std::string hash;
  std::string previous;
};

struct ChainFinding {
  std::uint64_t line = 0;
  std::string code;  ///< "changed", "removed", "inserted", "repeated" or "moved"
  std::string what;
};

/// `unreadable`: numbers of the lines that are no records, in order; a gap that they explain is not
/// told a second time. Findings are in the order of the lines; empty for a sound chain.
[[nodiscard]] std::vector<ChainFinding> diagnose_chain(
    const std::vector<LinkedLine>& lines, const std::vector<std::uint64_t>& unreadable);

}  // namespace assay
