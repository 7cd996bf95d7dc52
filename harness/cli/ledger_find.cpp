// What a user means by a ledger, a record or a result; and tables for reading.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/ledger_verb.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/named_output.h"
#include "harness/report/model.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ledgers_below(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entries != end;
       entries.increment(error)) {
    if (entries->path().filename() == "ledger.jsonl" && !entries->is_directory(error))
      found.push_back(entries->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "ledgers/demo:17" as a ledger and the rest; nothing where no ledger is meant.
struct SplitName {
  std::optional<std::string> ledger;
  std::string rest;
};

SplitName split(const std::string& name) {
  if (const auto whole = report::find_ledger(name); whole) return {*whole, ""};
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {std::nullopt, name};
  const auto ledger = report::find_ledger(name.substr(0, colon));
  if (!ledger) return {std::nullopt, name};
  return {*ledger, name.substr(colon + 1)};
}

/// Whether a record is meant, and how well: a line, a hash, then the newest record of a result that
/// says most of it.
bool fits_hash(const LedgerRecord& record, const std::string& wanted) {
  if (wanted.size() < 6 || !is_hex(wanted)) return false;
  if (record.hash.starts_with(wanted)) return true;
  for (const auto* level = &record.source; !level->is_null(); level = &level->at("source")) {
    if (level->at("hash").get_ref<const std::string&>().starts_with(wanted)) return true;
  }
  return false;
}

struct Search {
  std::string wanted;
  bool by_line = false;
  std::vector<NamedRecord> fit;
  std::optional<NamedRecord> of_result;

  Status in(const std::string& ledger) {
    const auto end = scan_ledger(ledger, [&](LedgerRecord&& record) -> Status {
      const bool meant =
          by_line ? std::to_string(record.line) == wanted : fits_hash(record, wanted);
      if (meant) {
        fit.push_back({ledger, std::move(record)});
      } else if (!by_line && result_of(record) == wanted &&
                 (record.kind == "plan" || record.kind == "verdict")) {
        of_result = NamedRecord{ledger, std::move(record)};
      }
      return {};
    });
    return end ? Status() : fail(end.error());
  }
};

Error not_found(const Search& search, const std::vector<std::string>& ledgers) {
  std::string where =
      ledgers.size() == 1 ? ledgers.front() : fmt::format("{} ledgers", ledgers.size());
  Error error(ErrorKind::bad_input,
              search.by_line ? fmt::format("there is no line {} in {}", search.wanted, where)
                             : fmt::format("nothing in {} is named \"{}\"", where, search.wanted));
  return error.hint(
      "a record is LEDGER:LINE, LEDGER:HASH, a beginning of a hash (6 digits or more) or the name "
      "of a result; `assay ledger list` shows them");
}

}  // namespace

Result<std::vector<std::string>> find_ledgers(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  const auto add = [&](const std::vector<std::string>& more) {
    for (const std::string& one : more) {
      if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
    }
  };
  if (names.empty()) {
    add(ledgers_below("ledgers"));
    add(ledgers_below("runs"));
    if (!found.empty()) return found;
    return fail(Error(ErrorKind::bad_input, "there is no ledger below ledgers/ or runs/ here")
                    .hint("name one: a ledger.jsonl, a folder, or an experiment"));
  }
  for (const std::string& name : names) {
    const auto one = report::find_ledger(name);
    const auto below = one ? std::vector<std::string>{*one} : ledgers_below(name);
    if (below.empty()) return fail(one.error());
    add(below);
  }
  return found;
}

Result<NamedRecord> find_record(const std::string& name, const std::vector<std::string>& ledgers) {
  const SplitName parts = split(name);
  const auto among = parts.ledger ? std::vector<std::string>{*parts.ledger} : ledgers;
  Search search;
  search.wanted = parts.rest;
  search.by_line = is_number(parts.rest) && (parts.ledger || ledgers.size() == 1);
  if (parts.ledger && parts.rest.empty()) {
    return fail(Error(ErrorKind::bad_input, fmt::format("\"{}\" is a ledger, not a record", name))
                    .hint(fmt::format("{}:1 is its first line", name)));
  }
  for (const std::string& ledger : among) ASSAY_TRY(search.in(ledger));
  if (search.fit.size() > 1) {
    std::vector<std::string> places;
    for (const NamedRecord& one : search.fit) {
      places.push_back(fmt::format("{}:{}", one.ledger, one.record.line));
    }
    // Copies of one record are one record.
    const bool same =
        std::all_of(search.fit.begin(), search.fit.end(), [&](const NamedRecord& one) {
          return origin_hash(one.record) == origin_hash(search.fit.front().record);
        });
    if (!same) {
      places.resize(std::min<std::size_t>(places.size(), 5));
      return fail(
          Error(ErrorKind::bad_input,
                fmt::format("\"{}\" begins {} hashes", name, search.fit.size()))
              .hint(fmt::format("give more digits, or one of {}", fmt::join(places, ", "))));
    }
  }
  if (!search.fit.empty()) return std::move(search.fit.front());
  if (search.of_result) return std::move(*search.of_result);
  return fail(not_found(search, among));
}

Result<LedgerResult> find_result(const std::string& name, const std::vector<std::string>& ledgers) {
  const SplitName parts = split(name);
  std::string ledger;
  std::string result;
  std::string machine;
  if (parts.ledger && parts.rest.empty()) {
    ledger = *parts.ledger;
  } else {
    const auto record = find_record(name, ledgers);
    if (!record) return fail(record.error());
    ledger = record->ledger;
    result = result_of(record->record);
    machine = record->record.machine;
    if (result.empty()) {
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("this record, of the kind {}, belongs to no result",
                                    record->record.kind))
                      .at(fmt::format("{}:{}", ledger, record->record.line)));
    }
  }
  auto results = read_results(ledger);
  if (!results) return fail(results.error());
  const auto chosen = choose_result(*results, result, machine);
  if (!chosen) return fail(chosen.error());
  return **chosen;
}

std::string short_time(const std::string& time) {
  if (time.size() != 20 || time[10] != 'T') return time;
  return time.substr(0, 10) + " " + time.substr(11, 5);
}

namespace {

class StandardOutput : public OutputSink {
 public:
  Status write(std::string_view piece) override {
    fmt::print("{}", piece);
    return {};
  }
  Status finish() override { return {}; }
};

class FileOutput : public OutputSink {
 public:
  explicit FileOutput(NamedOutput file) : file_(std::move(file)) {}
  Status write(std::string_view piece) override { return file_.write(piece); }
  Status finish() override { return file_.finish(); }

 private:
  NamedOutput file_;
};

}  // namespace

Result<std::unique_ptr<OutputSink>> open_output(const std::string& path) {
  if (path.empty()) return std::make_unique<StandardOutput>();
  ASSAY_TRY(check_named_output(path));
  auto file = NamedOutput::open(path);
  if (!file) return fail(file.error());
  return std::make_unique<FileOutput>(std::move(*file));
}

}  // namespace assay::cli
