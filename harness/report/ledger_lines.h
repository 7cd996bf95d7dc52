// The lines of a ledger with their hashes, as a report needs them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"

namespace assay::report {

struct LedgerLine {
  std::string kind;
  std::string time;
  std::string hash;  ///< SHA-256 of the line without its line feed
  nlohmann::json body;
};

/// Every record of the ledger in order. Error ledger, with file:line, when a line is no record or
/// does not follow the one before it.
[[nodiscard]] Result<std::vector<LedgerLine>> read_ledger_lines(const std::string& path);

/// The whole of a file. Error bad_input when it cannot be read.
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path);

/// Lower-case hex digits.
[[nodiscard]] std::string sha256_hex(const std::string& bytes);

}  // namespace assay::report
