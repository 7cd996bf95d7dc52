#include "harness/ledger/junit.h"

#include <fmt/format.h>

namespace assay {
namespace {

using nlohmann::json;

struct Case {
  enum class End { passed, failed, skipped };
  std::string name;
  End end = End::passed;
  std::string why;   ///< of a failure or a skipped case
  std::string text;  ///< what was found, in words
};

/// XML text: what XML 1.0 cannot hold becomes '?', else a store's message could spoil the file.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string text_at(const json& body, const char* key) {
  const auto found = body.is_object() ? body.find(key) : body.end();
  if (!body.is_object() || found == body.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

bool flag_at(const json& body, const char* key) {
  const auto found = body.is_object() ? body.find(key) : body.end();
  return body.is_object() && found != body.end() && found->is_boolean() && found->get<bool>();
}

/// Recorded since plans are registered; before that, a superiority that came out the other way.
bool refuted(const json& one) {
  if (one.contains("claim")) return text_at(one, "claim") == "refuted";
  return text_at(one, "kind") == "superiority" && text_at(one, "verdict") == "inferior";
}

Case comparison_case(const json& one, bool registered) {
  Case made{
      fmt::format("{} vs {} ({})", text_at(one, "a"), text_at(one, "b"), text_at(one, "kind")),
      Case::End::passed,
      {},
      text_at(one, "sentence")};
  const std::string verdict = text_at(one, "verdict");
  // A gate's claims are made by whoever asks, after the run.
  const bool declared = (registered || flag_at(one, "gate")) && flag_at(one, "declared");
  if (declared && refuted(one)) {
    made.end = Case::End::failed;
    made.why = fmt::format("the declared claim was refuted: {}", verdict);
  } else if (verdict == "void" || (declared && verdict == "inconclusive")) {
    made.end = Case::End::skipped;
    made.why = verdict;
  }
  return made;
}

Case outcome_case(const LedgerResult& one) {
  Case made{"outcome", Case::End::passed, {}, one.outcome};
  if (one.outcome == "disqualified" || one.outcome == "rejected" || one.outcome == "regression") {
    made.end = Case::End::failed;
    made.why = one.outcome;
  } else if (one.outcome != "judged") {
    made.end = Case::End::skipped;
    made.why = one.outcome;
    const auto reasons =
        one.verdict.is_object() ? one.verdict.find("void_reasons") : one.verdict.end();
    if (one.verdict.is_object() && reasons != one.verdict.end() && reasons->is_array()) {
      for (const json& reason : *reasons) {
        if (reason.is_string()) made.why += "; " + reason.get<std::string>();
      }
    }
  }
  return made;
}

std::vector<Case> cases_of(const LedgerResult& one) {
  std::vector<Case> cases{outcome_case(one)};
  if (!one.verdict.is_object()) return cases;
  const json& verdict = one.verdict;
  const auto comparisons = verdict.find("comparisons");
  if (comparisons != verdict.end() && comparisons->is_array()) {
    for (const json& comparison : *comparisons) {
      cases.push_back(comparison_case(comparison, one.status == "registered"));
    }
  }
  for (const char* check : {"a_a", "positive_control"}) {
    const auto found = verdict.find(check);
    if (found == verdict.end() || !found->is_object() || !found->contains("ok")) continue;
    const bool ok = flag_at(*found, "ok");
    cases.push_back({std::string(check) == "a_a" ? "A/A check" : "positive control",
                     ok ? Case::End::passed : Case::End::skipped,
                     ok ? "" : "the check failed: nothing is judged", text_at(*found, "sentence")});
  }
  return cases;
}

std::string xml_of(const Case& one, const std::string& suite) {
  std::string xml = fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", escaped(suite),
                                escaped(one.name));
  if (one.end == Case::End::failed) {
    xml += fmt::format("      <failure message=\"{}\">{}</failure>\n", escaped(one.why),
                       escaped(one.text));
  } else if (one.end == Case::End::skipped) {
    xml += fmt::format("      <skipped message=\"{}\"/>\n", escaped(one.why));
  }
  if (one.end != Case::End::failed && !one.text.empty()) {
    xml += fmt::format("      <system-out>{}</system-out>\n", escaped(one.text));
  }
  return xml + "    </testcase>\n";
}

std::string suite_xml(const LedgerResult& one, const std::string& ledger) {
  const std::vector<Case> cases = cases_of(one);
  std::size_t failed = 0;
  std::size_t skipped = 0;
  std::string body;
  const std::string suite = one.experiment.empty() ? one.result : one.experiment;
  for (const Case& each : cases) {
    failed += each.end == Case::End::failed ? 1 : 0;
    skipped += each.end == Case::End::skipped ? 1 : 0;
    body += xml_of(each, suite);
  }
  std::string xml = fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" "
      "timestamp=\"{}\">\n    <properties>\n",
      escaped(suite), cases.size(), failed, skipped,
      escaped(one.began.substr(0, one.began.find('Z'))));
  const std::pair<const char*, const std::string&> properties[] = {
      {"ledger", ledger},     {"result", one.result},     {"machine", one.machine},
      {"status", one.status}, {"question", one.question}, {"record", one.verdict_hash}};
  for (const auto& [name, value] : properties) {
    xml += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, escaped(value));
  }
  return xml + "    </properties>\n" + body + "  </testsuite>\n";
}

}  // namespace

std::string junit_xml(const std::vector<LedgerResults>& ledgers) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\">\n";
  for (const LedgerResults& ledger : ledgers) {
    for (const LedgerResult& one : ledger.results) xml += suite_xml(one, ledger.path);
  }
  return xml + "</testsuites>\n";
}

}  // namespace assay
