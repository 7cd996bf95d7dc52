// The ledger of an experiment: what was planned, run and found, in the order in which it happened.
//
// Append-only JSON Lines (harness/FORMATS.md). Every record carries the SHA-256 of the line before
// it, so that a changed, removed or reordered line is found; a cut tail or a complete rewrite shows
// only against a head hash that was kept elsewhere.
// Invariants: a record is on the disk before append() returns; nothing that was written is ever
// rewritten; one writer at a time (flock on the file). A last line without its line feed is the
// trace of a writer that was killed: readers report it and leave it, the next writer moves it aside
// to `<ledger>.torn-N` and cuts it off. Records of every schema up to kLedgerSchema are read, their
// bodies in the form of kLedgerSchema (migration.h).
// A LedgerWriter is used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"

namespace assay {

inline constexpr int kLedgerSchema = 2;
/// `previous` of the first record.
[[nodiscard]] std::string genesis_hash();

struct LedgerRecord {
  std::uint64_t seq = 0;
  std::string time;  ///< UTC, to the second
  std::string kind;
  nlohmann::json body;         ///< in the form of kLedgerSchema
  std::string hash;            ///< SHA-256 of its line
  std::string previous;        ///< that of the line before
  int schema = kLedgerSchema;  ///< that the line was written in
  nlohmann::json source;       ///< null; in a merged ledger, the line that this one was (merge.h)
  std::string machine;         ///< fingerprint from the plan of its result; empty = there is none
  std::uint64_t line = 0;      ///< from 1
};

/// The hash that the record was first written under: its own, or that of its innermost source.
[[nodiscard]] const std::string& origin_hash(const LedgerRecord& record);

struct LedgerContents {
  std::vector<LedgerRecord> records;
  std::string head;               ///< hash of the last record; genesis_hash() when empty
  std::string torn;               ///< bytes of an unfinished last line; empty = none
  std::uint64_t valid_bytes = 0;  ///< where the last whole record ends
};

/// Reads and verifies a whole ledger. The first bad line is an error of kind `ledger` at
/// "path:line" that says what is wrong with it. A missing file is an error of kind `bad_input`.
[[nodiscard]] Result<LedgerContents> read_ledger(const std::string& path);
/// The same for text that is already in memory; `path` is for messages.
[[nodiscard]] Result<LedgerContents> parse_ledger(std::string_view text, const std::string& path);

/// How a ledger ends.
struct LedgerEnd {
  std::uint64_t records = 0;
  std::string head;               ///< hash of the last record; genesis_hash() when empty
  std::string torn;               ///< bytes of an unfinished last line; empty = none
  std::uint64_t valid_bytes = 0;  ///< where the last whole record ends
};
using RecordSink = std::function<Status(LedgerRecord&&)>;
/// Of the bodies that are handed on: what `schema` of the line says, or kLedgerSchema.
enum class BodyForm : std::uint8_t { as_written, current };
/// read_ledger() for ledgers of any size: hands on one record after the other. An error of the sink
/// ends the reading and is returned.
[[nodiscard]] Result<LedgerEnd> scan_ledger(const std::string& path, const RecordSink& sink,
                                            BodyForm form = BodyForm::current);

class LedgerWriter {
 public:
  /// Opens or creates a ledger (its folder must be there), takes the lock, verifies every record
  /// and moves a torn last line aside. Another writer is an error of kind `environment`.
  [[nodiscard]] static Result<LedgerWriter> open(const std::string& path);
  LedgerWriter(LedgerWriter&& other) noexcept;
  LedgerWriter& operator=(LedgerWriter&& other) noexcept;
  ~LedgerWriter();

  /// Appends one record durably and returns its hash. After a failed write the file is cut back
  /// to the last whole record; after a failed flush the writer refuses to go on.
  [[nodiscard]] Result<std::string> append(std::string_view kind, nlohmann::json body);

  /// Takes the file away again when not even its first record could be written. Append nothing
  /// afterwards.
  void remove_if_empty();

  [[nodiscard]] const std::vector<LedgerRecord>& records() const { return contents_.records; }
  [[nodiscard]] const std::string& head() const { return contents_.head; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Where the torn last line went that open() found; empty = there was none.
  [[nodiscard]] const std::string& torn_file() const { return torn_file_; }

 private:
  LedgerWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Status load();

  int fd_ = -1;
  bool broken_ = false;
  std::string path_;
  std::string torn_file_;
  LedgerContents contents_;
};

/// "2026-01-01T12:00:00Z" of now.
[[nodiscard]] std::string utc_now();

}  // namespace assay
