#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 6> kKeys = {"body",   "kind", "previous",
                                                   "schema", "seq",  "time"};

/// What is wrong with the shape of a record; nothing when it is sound.
std::optional<std::string> shape_problem(const nlohmann::json& line, std::string_view text) {
  if (!line.is_object()) return "the line is not a JSON object";
  for (const std::string_view key : kKeys) {
    if (!line.contains(key)) return fmt::format("the key \"{}\" is missing", key);
  }
  for (const auto& [key, value] : line.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      return fmt::format("the key \"{}\" does not belong here", key);
    }
  }
  if (!line["schema"].is_number_integer()) return "\"schema\" is not an integer";
  if (line["schema"] != kLedgerSchema) {
    return fmt::format("schema {} is not known; this assay knows {}", line["schema"].dump(),
                       kLedgerSchema);
  }
  if (!line["seq"].is_number_unsigned()) return "\"seq\" is not a count";
  if (!line["kind"].is_string() || !line["time"].is_string() || !line["previous"].is_string()) {
    return "\"kind\", \"time\" and \"previous\" must be strings";
  }
  if (!line["body"].is_object()) return "\"body\" is not an object";
  if (line.dump() != text) return "the line is not in canonical form (sorted keys, no spaces)";
  return std::nullopt;
}

/// What is wrong with the place of a record in the chain; nothing when it is sound.
std::optional<std::string> chain_problem(const nlohmann::json& line, const LedgerContents& before) {
  const std::uint64_t expected = before.records.size();
  const auto seq = line["seq"].get<std::uint64_t>();
  if (seq != expected) {
    return fmt::format("this is record {}, but record {} belongs here: a line was {}", seq,
                       expected, seq > expected ? "removed" : "repeated or moved");
  }
  const std::string previous = line["previous"].get<std::string>();
  if (previous != before.head) {
    return fmt::format(
        "the chain is broken: it names {:.12}... as the record before, which hashes to {:.12}...; "
        "the line before was changed, or this one was",
        previous, before.head);
  }
  return std::nullopt;
}

/// A writer that was killed leaves the first part of a record; a machine that lost its power may
/// leave zeros in its place.
bool may_be_torn(std::string_view text) {
  constexpr std::string_view kBegin = R"({"body":)";
  const std::size_t common = std::min(text.size(), kBegin.size());
  return text.substr(0, common) == kBegin.substr(0, common) ||
         text.find_first_not_of('\0') == std::string_view::npos;
}

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
  contents.head = genesis_hash();
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      if (!may_be_torn(text)) {
        return fail(Error(ErrorKind::ledger, "this is neither a record nor the beginning of one")
                        .at(fmt::format("{}:{}", path, contents.records.size() + 1))
                        .hint("is it a ledger? compare with a copy"));
      }
      contents.torn = std::string(text);
      break;
    }
    const std::string_view line_text = text.substr(0, end);
    const auto line = nlohmann::json::parse(line_text, nullptr, false);
    std::optional<std::string> problem;
    if (line.is_discarded()) {
      problem = "the line is not JSON";
    } else {
      problem = shape_problem(line, line_text);
      if (!problem) problem = chain_problem(line, contents);
    }
    if (problem) {
      return fail(Error(ErrorKind::ledger, *problem)
                      .at(fmt::format("{}:{}", path, contents.records.size() + 1))
                      .hint("records are never changed once written; compare with a copy"));
    }
    contents.head = sha256_hex(line_text);
    contents.records.push_back({line["seq"].get<std::uint64_t>(), line["time"].get<std::string>(),
                                line["kind"].get<std::string>(), line["body"], contents.head});
    contents.valid_bytes += end + 1;
    text.remove_prefix(end + 1);
  }
  return contents;
}

Result<LedgerContents> read_ledger(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(Error(ErrorKind::bad_input, "there is no ledger here").at(path));
  }
  auto text = read_whole_file(path);
  if (!text) return fail(text.error());
  return parse_ledger(*text, path);
}

Status check_head(const LedgerContents& contents, const std::string& head,
                  const std::string& path) {
  if (contents.head == head) return {};
  for (const LedgerRecord& record : contents.records) {
    if (record.hash == head) {
      return fail(Error(ErrorKind::ledger,
                        fmt::format("the head that was demanded is record {}, and {} more follow",
                                    record.seq, contents.records.size() - 1 - record.seq))
                      .at(path));
    }
  }
  return fail(Error(ErrorKind::ledger,
                    fmt::format("the ledger ends in {}, not in {}: its tail was cut or it was "
                                "written anew",
                                contents.head, head))
                  .at(path));
}

}  // namespace assay
