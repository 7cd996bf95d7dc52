#include "harness/ledger/ledger_line.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "harness/provenance/sha256.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kKeysOf1 = {"body",   "kind", "previous",
                                                      "schema", "seq",  "time"};
constexpr std::array<std::string_view, 7> kKeysOf2 = {"body", "kind",   "previous", "schema",
                                                      "seq",  "source", "time"};

std::span<const std::string_view> keys_of(int schema) {
  return schema == 1 ? std::span<const std::string_view>(kKeysOf1)
                     : std::span<const std::string_view>(kKeysOf2);
}

bool is_hash(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestNesting) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string keys_problem(const json& line, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!line.contains(key)) return fmt::format("the key \"{}\" is missing", key);
  }
  for (const auto& [key, value] : line.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return fmt::format("the key \"{}\" does not belong here", key);
    }
  }
  return {};
}

/// What is wrong with the shape of a line; empty when it is sound.
std::string shape_problem(const json& line, std::string_view text) {
  if (!line.is_object()) return "the line is not a JSON object";
  if (!line.contains("schema")) return "the key \"schema\" is missing";
  if (!line["schema"].is_number_integer()) return "\"schema\" is not an integer";
  if (line["schema"] < 1 || line["schema"] > kLedgerSchema) {
    return fmt::format("schema {} is not known; this assay knows 1 to {}", line["schema"].dump(),
                       kLedgerSchema);
  }
  const int schema = line["schema"].get<int>();
  if (std::string problem = keys_problem(line, keys_of(schema)); !problem.empty()) return problem;
  if (!line["seq"].is_number_unsigned()) return "\"seq\" is not a count";
  if (!line["kind"].is_string() || !line["time"].is_string()) {
    return "\"kind\" and \"time\" must be strings";
  }
  if (!is_hash(line["previous"])) return "\"previous\" is not a SHA-256 in lower case hex";
  if (!line["body"].is_object()) return "\"body\" is not an object";
  if (schema > 1) {
    if (std::string problem = source_problem(line["source"]); !problem.empty()) return problem;
  }
  if (line.dump() != text) return "the line is not in canonical form (sorted keys, no spaces)";
  return {};
}

}  // namespace

std::string source_problem(const json& source) {
  constexpr std::array<std::string_view, 7> kKeys = {"hash",   "ledger", "machine", "previous",
                                                     "schema", "seq",    "source"};
  const json* level = &source;
  for (; !level->is_null(); level = &(*level)["source"]) {
    if (!level->is_object()) return "\"source\" is neither null nor an object";
    if (std::string problem = keys_problem(*level, kKeys); !problem.empty()) {
      return problem + " (in \"source\")";
    }
    const json& schema = (*level)["schema"];
    if (!is_hash((*level)["hash"]) || !is_hash((*level)["previous"])) {
      return "\"hash\" and \"previous\" of \"source\" must be SHA-256 in lower case hex";
    }
    if (!(*level)["seq"].is_number_unsigned() || !(*level)["ledger"].is_number_unsigned() ||
        !(*level)["machine"].is_string()) {
      return "\"seq\", \"ledger\" and \"machine\" of \"source\" must be counts and a string";
    }
    if (!schema.is_number_integer() || schema < 1 || schema > kLedgerSchema) {
      return fmt::format("schema {} of \"source\" is not known; this assay knows 1 to {}",
                         schema.dump(), kLedgerSchema);
    }
  }
  return {};
}

std::expected<LedgerRecord, std::string> parse_ledger_line(std::string_view text) {
  if (too_deep(text)) {
    return std::unexpected(
        fmt::format("the line is nested deeper than {} levels", kDeepestNesting));
  }
  json line = json::parse(text, nullptr, false);
  if (line.is_discarded()) return std::unexpected("the line is not JSON");
  if (std::string problem = shape_problem(line, text); !problem.empty()) {
    return std::unexpected(std::move(problem));
  }
  LedgerRecord record;
  record.seq = line["seq"].get<std::uint64_t>();
  record.time = line["time"].get<std::string>();
  record.kind = line["kind"].get<std::string>();
  record.body = std::move(line["body"]);
  record.hash = sha256_hex(text);
  record.previous = line["previous"].get<std::string>();
  record.schema = line["schema"].get<int>();
  if (record.schema > 1) record.source = std::move(line["source"]);
  return record;
}

std::string ledger_line_text(const LedgerRecord& record) {
  json line = {{"body", record.body},     {"kind", record.kind}, {"previous", record.previous},
               {"schema", record.schema}, {"seq", record.seq},   {"time", record.time}};
  if (record.schema > 1) line["source"] = record.source;
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool may_be_torn(std::string_view text) {
  constexpr std::string_view kBegin = R"({"body":)";
  const std::size_t common = std::min(text.size(), kBegin.size());
  return text.substr(0, common) == kBegin.substr(0, common) ||
         text.find_first_not_of('\0') == std::string_view::npos;
}

LedgerRecord source_line(const LedgerRecord& record) {
  LedgerRecord line = record;
  const json source = record.source;
  line.previous = source.at("previous").get<std::string>();
  line.schema = source.at("schema").get<int>();
  line.seq = source.at("seq").get<std::uint64_t>();
  line.source = source.at("source");
  line.hash = sha256_hex(ledger_line_text(line));
  return line;
}

const std::string& origin_hash(const LedgerRecord& record) {
  if (record.source.is_null()) return record.hash;
  const json* level = &record.source;
  while (!level->at("source").is_null()) level = &level->at("source");
  return level->at("hash").get_ref<const std::string&>();
}

}  // namespace assay
