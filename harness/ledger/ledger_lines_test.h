// Ledgers as text, for tests that change them: lines of a ledger and the chain that a forger would
// make fit.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/ledger/ledger.h"
#include "harness/provenance/sha256.h"

namespace assay::ledger_lines {

/// With their line feeds.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// Not durable: tests write thousands of files.
inline void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The same records with a chain that fits, as somebody makes it who writes the ledger anew.
inline std::string forged(const std::vector<std::string>& lines) {
  std::string text;
  std::string previous = genesis_hash();
  std::uint64_t seq = 0;
  for (const std::string& line : lines) {
    nlohmann::json record = nlohmann::json::parse(line);
    record["previous"] = previous;
    record["seq"] = seq++;
    const std::string made = record.dump();
    previous = sha256_hex(made);
    text += made + "\n";
  }
  return text;
}

/// The bodies of one small result: a plan, `trials` of the arms a and b, a verdict.
inline nlohmann::json plan_body(const std::string& result, const std::string& machine = "m1") {
  const nlohmann::json experiment = {{"name", "exp"}, {"design", "blocks"}};
  return {{"result", result},
          {"experiment", experiment},
          {"digest", sha256_hex(experiment.dump())},
          {"status", "registered"},
          {"provenance", {{"fingerprint", machine}}}};
}

inline nlohmann::json trial_body(const std::string& result, const std::string& arm,
                                 std::uint64_t round, const std::string& raw,
                                 const std::string& raw_text) {
  return {{"result", result},
          {"arm", arm},
          {"round", round},
          {"index", round},
          {"attempt", 0},
          {"status", "ok"},
          {"raw", {{"path", raw}, {"sha256", sha256_hex(raw_text)}}}};
}

inline nlohmann::json verdict_body(const std::string& result, std::size_t values) {
  const std::vector<double> some(values, 1.5);
  nlohmann::json rows = nlohmann::json::array();
  for (const char* arm : {"a", "b"}) rows.push_back({{"arm", arm}, {"values", some}});
  return {{"result", result}, {"experiment", "exp"}, {"outcome", "judged"}, {"rows", rows}};
}

}  // namespace assay::ledger_lines
