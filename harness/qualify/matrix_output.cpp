// The matrix as a table, as Markdown, as JSON and as JUnit XML.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/matrix.h"

namespace assay::qualify {
namespace {

std::string text_of(const std::optional<DurabilityClass>& durability) {
  return durability ? std::string(to_string(*durability)) : "-";
}

/// "yes (suffix)", "no (suffix)", or "-" where nothing has to be lost.
std::string reached_text(const MatrixEntry& entry) {
  if (!entry.control || !entry.control->must_reach) return "-";
  return fmt::format("{} ({})", entry.reached >= *entry.control->must_reach ? "yes" : "no",
                     to_string(*entry.control->must_reach));
}

std::string reasons_of(const Matrix& matrix, const std::string& before) {
  std::string text;
  for (const MatrixEntry& entry : matrix.entries) {
    if (entry.verdict == Verdict::pass) continue;
    text += fmt::format("{}{}, level {}: {}: {}\n", before, entry.row.name,
                        to_string(entry.outcome.level), to_string(entry.verdict), entry.reason);
    for (const std::string& bundle : entry.outcome.bundles)
      text += fmt::format("{}  assay qualify replay {}\n", before, bundle);
  }
  return text;
}

std::string escaped_cell(const std::string& text) {
  std::string out;
  for (const char one : text) {
    if (one == '|' || one == '\\' || one == '<' || one == '`' || one == '*') out += '\\';
    out += one == '\n' ? ' ' : one;
  }
  return out;
}

std::string escaped_xml(const std::string& text) {
  static const std::map<char, std::string> kNames = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', "&#10;"}};
  std::string out;
  for (const char one : text) {
    const auto name = kNames.find(one);
    if (name != kNames.end())
      out += name->second;
    else
      out += static_cast<unsigned char>(one) < 0x20 ? '?' : one;
  }
  return out;
}

std::string junit_case(const MatrixEntry& entry) {
  std::string text = fmt::format(
      "    <testcase name=\"{}\" classname=\"qualify.{}\" time=\"{:.3f}\">\n",
      escaped_xml(entry.row.name), to_string(entry.outcome.level), entry.outcome.elapsed_s);
  if (entry.verdict != Verdict::pass) {
    const std::string_view kind = entry.verdict == Verdict::fail            ? "failure"
                                  : entry.verdict == Verdict::harness_error ? "error"
                                                                            : "skipped";
    text += fmt::format("      <{} message=\"{}: {}\"/>\n", kind, to_string(entry.verdict),
                        escaped_xml(entry.reason));
  }
  text +=
      fmt::format("      <system-out>claimed {}, observed {}, proven {}, {} cases</system-out>\n",
                  to_string(entry.claimed), to_string(entry.outcome.observed),
                  text_of(entry.outcome.proven), entry.outcome.cases);
  return text + "    </testcase>\n";
}

nlohmann::json entry_json(const MatrixEntry& entry) {
  nlohmann::json json = to_json(entry.outcome);
  json.erase("resume");
  json.erase("finished");
  json["row"] = entry.row.name;
  json["settings_given"] = entry.row.settings;
  json["claimed"] = to_string(entry.claimed);
  json["verdict"] = to_string(entry.verdict);
  json["reason"] = entry.reason;
  json["reached"] = to_string(entry.reached);
  json["control"] = nullptr;
  if (entry.control) {
    json["control"] = {{"may_lose", to_string(entry.control->most)},
                       {"must_reach", nullptr},
                       {"reached_what_it_must", nullptr},
                       {"within_its_maximum", entry.outcome.observed <= entry.control->most},
                       {"source", entry.control->source}};
    if (entry.control->must_reach) {
      json["control"]["must_reach"] = to_string(*entry.control->must_reach);
      json["control"]["reached_what_it_must"] = entry.reached >= *entry.control->must_reach;
    }
  }
  return json;
}

}  // namespace

std::vector<MatrixLine> matrix_lines(const Matrix& matrix) {
  std::vector<MatrixLine> lines{{"setting", "level", "profile", "claimed", "may lose", "observed",
                                 "proven", "reached", "cases", "verdict"}};
  for (const MatrixEntry& entry : matrix.entries) {
    const LevelOutcome& outcome = entry.outcome;
    lines.push_back({entry.row.name, std::string(to_string(outcome.level)),
                     outcome.profile.empty() ? "-" : outcome.profile,
                     std::string(to_string(entry.claimed)), std::string(to_string(outcome.allowed)),
                     std::string(to_string(outcome.observed)), text_of(outcome.proven),
                     reached_text(entry), std::to_string(outcome.cases),
                     std::string(to_string(entry.verdict))});
    if (!outcome.coverage.is_object() || !outcome.coverage.contains("profiles")) continue;
    // Under the other profiles the same states are a matter of information.
    for (const auto& [name, profile] : outcome.coverage["profiles"].items()) {
      if (name == outcome.profile) continue;
      lines.push_back({entry.row.name, std::string(to_string(outcome.level)), name,
                       std::string(to_string(entry.claimed)),
                       std::string(to_string(outcome.allowed)), profile.value("worst", "?"), "-",
                       "-", std::to_string(profile.value("states_checked", std::uint64_t{0})),
                       profile.value("passes", false) ? "(within)" : "(worse)"});
    }
  }
  return lines;
}

std::string matrix_text(const Matrix& matrix) {
  const std::vector<MatrixLine> lines = matrix_lines(matrix);
  std::array<std::size_t, kMatrixColumns> widths{};
  for (const MatrixLine& line : lines)
    for (std::size_t at = 0; at < kMatrixColumns; ++at)
      widths[at] = std::max(widths[at], line[at].size());
  std::string text;
  for (const MatrixLine& line : lines) {
    std::string shown;
    for (std::size_t at = 0; at < kMatrixColumns; ++at)
      shown += fmt::format("{:<{}}  ", line[at], widths[at]);
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  const std::string reasons = reasons_of(matrix, "");
  return reasons.empty() ? text : text + "\n" + reasons;
}

std::string matrix_markdown(const Matrix& matrix) {
  const auto row = [](const MatrixLine& line) {
    std::string text = "|";
    for (const std::string& cell : line) text += " " + escaped_cell(cell) + " |";
    return text + "\n";
  };
  const std::vector<MatrixLine> lines = matrix_lines(matrix);
  std::string text = row(lines.front()) + "|";
  for (std::size_t at = 0; at < kMatrixColumns; ++at) text += "---|";
  text += "\n";
  for (std::size_t at = 1; at < lines.size(); ++at) text += row(lines[at]);
  const std::string reasons = reasons_of(matrix, "- ");
  return reasons.empty() ? text : text + "\n" + reasons;
}

nlohmann::json matrix_json(const MatrixPlan& plan, const Matrix& matrix) {
  nlohmann::json rows = nlohmann::json::array();
  for (const MatrixEntry& entry : matrix.entries) rows.push_back(entry_json(entry));
  return {{"schema", 1},
          {"seed", plan.seed},
          {"budget", plan.budget_text},
          {"verdict", to_string(worst_verdict(matrix))},
          {"rows", std::move(rows)},
          {"interrupted", matrix.interrupted},
          {"out", plan.out},
          {"ledger", matrix.ledger_path}};
}

std::string matrix_junit(const Matrix& matrix) {
  std::map<Level, std::vector<const MatrixEntry*>> levels;
  for (const MatrixEntry& entry : matrix.entries) levels[entry.outcome.level].push_back(&entry);
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay qualify\">\n";
  for (const auto& [level, entries] : levels) {
    const auto of = [&](auto wanted) {
      return std::ranges::count_if(entries,
                                   [&](const MatrixEntry* one) { return wanted(one->verdict); });
    };
    text += fmt::format(
        "  <testsuite name=\"level {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
        "skipped=\"{}\">\n",
        to_string(level), entries.size(), of([](Verdict one) { return one == Verdict::fail; }),
        of([](Verdict one) { return one == Verdict::harness_error; }),
        of([](Verdict one) { return one == Verdict::inconclusive || one == Verdict::skipped; }));
    for (const MatrixEntry* entry : entries) text += junit_case(*entry);
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace assay::qualify
