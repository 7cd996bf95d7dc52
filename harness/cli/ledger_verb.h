// The parts of `assay ledger`: one function a subverb, and what they share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"
#include "harness/cli/exit_status.h"
#include "harness/ledger/results.h"

namespace assay::cli {

struct LedgerOptions {
  std::vector<std::string> ledgers;  ///< files, folders or names; empty = all that are here
  std::vector<std::string> heads;
  std::vector<std::string> records;  ///< what to show, or the two sides of a difference
  std::string raw = "all";
  std::string sql;
  std::string format;
  std::string table;  ///< empty = rows
  std::string result;
  std::string machine;
  std::string out;
  bool tables = false;
  bool csv = false;
  bool all = false;
  bool brief = false;
  bool json = false;
};

Result<ExitStatus> ledger_verify(const LedgerOptions& options);
Result<ExitStatus> ledger_list(const LedgerOptions& options);
Result<ExitStatus> ledger_show(const LedgerOptions& options);
Result<ExitStatus> ledger_diff(const LedgerOptions& options);
Result<ExitStatus> ledger_merge(const LedgerOptions& options);
Result<ExitStatus> ledger_query(const LedgerOptions& options);
Result<ExitStatus> ledger_export(const LedgerOptions& options);

/// The ledgers that are meant: a file, a folder (its ledger.jsonl, else every one below it) or the
/// name of an experiment each; without any, all below ledgers/ and runs/.
[[nodiscard]] Result<std::vector<std::string>> find_ledgers(const std::vector<std::string>& names);

/// A record as a user names it: LEDGER:LINE, LEDGER:HASH, LEDGER:RESULT, a beginning of a hash of
/// six digits or more, or the name of a result.
struct NamedRecord {
  std::string ledger;
  LedgerRecord record;
};
/// `ledgers`: where to look for names that tell no ledger.
[[nodiscard]] Result<NamedRecord> find_record(const std::string& name,
                                              const std::vector<std::string>& ledgers);
/// The result that such a record belongs to; a ledger alone means its newest.
[[nodiscard]] Result<LedgerResult> find_result(const std::string& name,
                                               const std::vector<std::string>& ledgers);

/// "2026-11-30 19:00" of "2026-11-30T19:00:39Z".
[[nodiscard]] std::string short_time(const std::string& time);

/// Where a long output goes: to standard output, or durably to a file once it is complete.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual Status write(std::string_view piece) = 0;
  virtual Status finish() = 0;
};
[[nodiscard]] Result<std::unique_ptr<OutputSink>> open_output(const std::string& path);

}  // namespace assay::cli
