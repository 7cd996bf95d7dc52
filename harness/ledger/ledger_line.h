// One line of a ledger: its text, its members, and what may be wrong with it by itself. Whether it
// stands in its place is the chain's question (ledger.h, verify.h).
// Stateless; any thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "harness/ledger/ledger.h"

namespace assay {

/// No record is nested as deep; deeper text would exhaust the stack of what walks it.
inline constexpr int kDeepestNesting = 64;

/// The record of a line (without its line feed), its body as it was written; or what is wrong with
/// its shape, in words. `machine` and `line` are not filled.
[[nodiscard]] std::expected<LedgerRecord, std::string> parse_ledger_line(std::string_view text);

/// The text of a line, without its line feed, in the form of `record.schema`. Bytes that are not
/// UTF-8 (a store's message, say) are replaced, so that they do not cost the record.
[[nodiscard]] std::string ledger_line_text(const LedgerRecord& record);

/// Whether `text`, which lacks a line feed, may be what a killed writer left: the beginning of a
/// record, or the zeros that a machine leaves that lost its power.
[[nodiscard]] bool may_be_torn(std::string_view text);

/// The line that a carried record was in the ledger that it was carried from (merge.h), rebuilt
/// from `record.source`; its hash is the one of the rebuilt text, whatever the source says.
[[nodiscard]] LedgerRecord source_line(const LedgerRecord& record);

/// What is wrong with the members of a source; empty when it is sound.
[[nodiscard]] std::string source_problem(const nlohmann::json& source);

}  // namespace assay
