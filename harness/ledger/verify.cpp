#include "harness/ledger/verify.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "harness/ledger/chain_diagnosis.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger_line.h"
#include "harness/ledger/line_reader.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/migration.h"
#include "harness/ledger/raw_files.h"
#include "harness/ledger/source_check.h"
#include "harness/ledger/story_check.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

class Verifier {
 public:
  Verifier(const std::string& path, RawCheck raw_check, const std::vector<std::string>& heads)
      : raw_check_(raw_check), heads_(heads.begin(), heads.end()), raw_files_(path) {
    result_.path = path;
    story_.path = path;
    result_.head = genesis_hash();
  }

  Result<Verification> run() {
    auto lines = LineReader::open(result_.path);
    if (!lines) return fail(lines.error());
    for (;;) {
      const auto line = lines->next();
      if (!line) {
        const Error& error = line.error();
        if (error.kind() != ErrorKind::ledger) return fail(error);
        result_.findings.push_back({error.where(), "not_a_record", error.what()});
        break;
      }
      if (!*line) break;
      take(**line);
    }
    finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::string at(std::uint64_t line) const {
    return fmt::format("{}:{}", result_.path, line);
  }

  void take(const LineReader::Line& line) {
    if (!line.whole) {
      take_torn(line);
      return;
    }
    auto record = parse_ledger_line(line.text);
    if (!record) {
      unreadable_.push_back(line.number);
      result_.findings.push_back({at(line.number), "not_a_record", record.error()});
      return;
    }
    record->line = line.number;
    record->machine = machines_.of(*record);
    lines_.push_back({line.number, record->seq, record->hash, record->previous});
    note_heads(*record);
    result_.head = record->hash;
    sources_.take(*record);
    migrate(*record);
    story_check_.take(*record);
    raw_files_.take(*record);
    check_raw(*record);
  }

  void take_torn(const LineReader::Line& line) {
    if (may_be_torn(line.text)) {
      result_.notes.push_back(
          {at(line.number), "torn",
           fmt::format("{} bytes of a record that was never whole follow the last one: its writer "
                       "was killed or the disk was full; the next run moves them aside",
                       line.text.size())});
    } else {
      result_.findings.push_back(
          {at(line.number), "not_a_record", "this is neither a record nor the beginning of one"});
    }
  }

  void note_heads(const LedgerRecord& record) {
    if (heads_.empty()) return;
    const auto note = [&](const std::string& hash, bool of_source) {
      if (heads_.contains(hash)) result_.heads.try_emplace(hash, record.line, 0U, of_source);
    };
    note(record.hash, false);
    for (const auto* level = &record.source; !level->is_null(); level = &level->at("source")) {
      note(level->at("hash").get<std::string>(), true);
    }
  }

  void check_raw(const LedgerRecord& record) {
    if (record.kind != "trial") return;
    const nlohmann::json::json_pointer path("/raw/path");
    const nlohmann::json::json_pointer digest("/raw/sha256");
    if (!record.body.contains(path) || !record.body.contains(digest) ||
        !record.body.at(path).is_string() || !record.body.at(digest).is_string()) {
      result_.findings.push_back(
          {at(record.line), "raw_missing", "this trial names no raw record and its digest"});
      return;
    }
    ++result_.raw_named;
    if (raw_check_ == RawCheck::none) return;
    const std::string file = raw_files_.file_of(record, record.body.at(path).get<std::string>());
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      ++result_.raw_missing;
      if (raw_check_ == RawCheck::present) return;
      result_.findings.push_back({at(record.line), "raw_missing",
                                  fmt::format("its raw record {} is missing", as_named(file))});
      return;
    }
    const Result<std::string> bytes = read_whole_file(file);
    const std::string told = record.body.at(digest).get<std::string>();
    std::string wrong;
    if (!bytes) {
      wrong =
          fmt::format("its raw record {} cannot be read: {}", as_named(file), bytes.error().what());
    } else if (const std::string found = sha256_hex(*bytes); found != told) {
      wrong = fmt::format(
          "its raw record {} was changed: it hashes to {:.12}..., recorded is "
          "{:.12}...",
          as_named(file), found, told);
    }
    if (wrong.empty()) {
      ++result_.raw_sound;
    } else {
      result_.findings.push_back({at(record.line), "raw_changed", std::move(wrong)});
    }
  }

  void finish() {
    result_.records = lines_.size();
    for (auto& [hash, place] : result_.heads) {
      const auto behind = std::count_if(lines_.begin(), lines_.end(), [&](const LinkedLine& line) {
        return line.number > place.line;
      });
      place.follow = static_cast<std::uint64_t>(behind);
    }
    const auto chain = diagnose_chain(lines_, unreadable_);
    for (const ChainFinding& finding : chain) {
      result_.findings.push_back({at(finding.line), finding.code, finding.what});
    }
    // What records of a broken chain tell is the trace of the break.
    if (chain.empty() && unreadable_.empty()) {
      sources_.finish();
      const auto add = [](const std::vector<Finding>& more, std::vector<Finding>& to) {
        to.insert(to.end(), more.begin(), more.end());
      };
      add(story_.findings, result_.findings);
      add(story_.notes, result_.notes);
    }
    sort_by_line(result_.findings);
    sort_by_line(result_.notes);
  }

  void sort_by_line(std::vector<Finding>& findings) const {
    const auto line_of = [&](const Finding& finding) {
      return std::strtoull(finding.where.c_str() + finding.where.rfind(':') + 1, nullptr, 10);
    };
    std::stable_sort(findings.begin(), findings.end(),
                     [&](const Finding& a, const Finding& b) { return line_of(a) < line_of(b); });
  }

  RawCheck raw_check_;
  std::set<std::string> heads_;
  Verification result_;
  Verification story_;  ///< what only a sound chain tells
  std::vector<LinkedLine> lines_;
  std::vector<std::uint64_t> unreadable_;
  Machines machines_;
  RawFiles raw_files_;
  StoryCheck story_check_{story_};
  SourceCheck sources_{story_};
};

}  // namespace

Result<Verification> verify_ledger(const std::string& path, RawCheck raw_check,
                                   const std::vector<std::string>& heads) {
  return Verifier(path, raw_check, heads).run();
}

Status check_is_head(const std::string& text) {
  if (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos)
    return {};
  return fail(Error(ErrorKind::bad_input, fmt::format("\"{}\" is no head of a ledger", text))
                  .hint("a head is a SHA-256, 64 digits of lower case hex; `assay ledger list` and "
                        "every report print it"));
}

}  // namespace assay
