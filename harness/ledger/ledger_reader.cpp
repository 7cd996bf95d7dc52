#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_line.h"
#include "harness/ledger/line_reader.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/migration.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

/// Takes the lines of a ledger in order, and stops at the first that is not what belongs there.
class ChainReader {
 public:
  ChainReader(std::string path, const RecordSink& sink, BodyForm form)
      : path_(std::move(path)), sink_(sink), form_(form) {
    end_.head = genesis_hash();
  }

  Status take(std::string_view text) {
    auto record = parse_ledger_line(text);
    std::string problem = record ? chain_problem(*record) : record.error();
    if (!problem.empty()) {
      return fail(Error(ErrorKind::ledger, std::move(problem))
                      .at(here())
                      .hint("records are never changed once written; compare with a copy"));
    }
    end_.head = record->hash;
    end_.valid_bytes += text.size() + 1;
    record->line = ++end_.records;
    record->machine = machines_.of(*record);
    if (form_ == BodyForm::current) migrate(*record);
    return sink_(std::move(*record));
  }

  /// The rest of the file, without a line feed.
  Status take_torn(std::string_view text) {
    if (!may_be_torn(text)) {
      return fail(Error(ErrorKind::ledger, "this is neither a record nor the beginning of one")
                      .at(here())
                      .hint("is it a ledger? compare with a copy"));
    }
    end_.torn = std::string(text);
    return {};
  }

  [[nodiscard]] const LedgerEnd& end() const { return end_; }

 private:
  [[nodiscard]] std::string here() const { return fmt::format("{}:{}", path_, end_.records + 1); }

  /// What is wrong with the place of a record in the chain; empty when it is sound.
  [[nodiscard]] std::string chain_problem(const LedgerRecord& record) const {
    if (record.seq != end_.records) {
      return fmt::format("this is record {}, but record {} belongs here: a line was {}", record.seq,
                         end_.records, record.seq > end_.records ? "removed" : "repeated or moved");
    }
    if (record.previous != end_.head) {
      return fmt::format(
          "the chain is broken: it names {:.12}... as the record before, which hashes to "
          "{:.12}...; the line before was changed, or this one was",
          record.previous, end_.head);
    }
    return {};
  }

  std::string path_;
  const RecordSink& sink_;
  BodyForm form_;
  LedgerEnd end_;
  Machines machines_;
};

}  // namespace

std::string genesis_hash() {
  return std::string(64, '0');
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

Result<LedgerContents> parse_ledger(std::string_view text, const std::string& path) {
  LedgerContents contents;
  const RecordSink sink = [&contents](LedgerRecord&& record) -> Status {
    contents.records.push_back(std::move(record));
    return {};
  };
  ChainReader reader(path, sink, BodyForm::current);
  while (!text.empty()) {
    const std::size_t feed = text.find('\n');
    if (feed == std::string_view::npos) {
      ASSAY_TRY(reader.take_torn(text));
      break;
    }
    ASSAY_TRY(reader.take(text.substr(0, feed)));
    text.remove_prefix(feed + 1);
  }
  contents.head = reader.end().head;
  contents.torn = reader.end().torn;
  contents.valid_bytes = reader.end().valid_bytes;
  return contents;
}

Result<LedgerEnd> scan_ledger(const std::string& path, const RecordSink& sink, BodyForm form) {
  auto lines = LineReader::open(path);
  if (!lines) return fail(lines.error());
  ChainReader reader(path, sink, form);
  for (;;) {
    const auto line = lines->next();
    if (!line) return fail(line.error());
    if (!*line) return reader.end();
    if ((*line)->whole) {
      ASSAY_TRY(reader.take((*line)->text));
    } else {
      ASSAY_TRY(reader.take_torn((*line)->text));
    }
  }
}

Result<LedgerContents> read_ledger(const std::string& path) {
  LedgerContents contents;
  auto end = scan_ledger(path, [&contents](LedgerRecord&& record) -> Status {
    contents.records.push_back(std::move(record));
    return {};
  });
  if (!end) return fail(end.error());
  contents.head = std::move(end->head);
  contents.torn = std::move(end->torn);
  contents.valid_bytes = end->valid_bytes;
  return contents;
}

}  // namespace assay
