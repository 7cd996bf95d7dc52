#include "harness/experiment/baseline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {
namespace {

using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string fingerprint_of(const json& provenance) {
  return provenance.is_object() ? text(provenance, "fingerprint") : std::string();
}

const LedgerRecord* plan_of(const std::vector<LedgerRecord>& records, const std::string& result) {
  for (const LedgerRecord& record : records) {
    if (record.kind == "plan" && text(record.body, "result") == result) return &record;
  }
  return nullptr;
}

}  // namespace

Result<json> acceptance_of(const std::vector<LedgerRecord>& records, const std::string& result,
                           const std::string& note, const std::string& ledger_path) {
  const LedgerRecord* verdict = nullptr;
  std::vector<std::string> known;
  for (const LedgerRecord& record : records) {
    if (record.kind != "verdict") continue;
    known.push_back(text(record.body, "result"));
    if (result.empty() || known.back() == result) verdict = &record;
  }
  if (verdict == nullptr) {
    const std::string near = nearest_name(result, known);
    Error error(ErrorKind::bad_input,
                known.empty() ? std::string("the ledger holds no verdict yet")
                              : fmt::format("the ledger holds no verdict of '{}'", result));
    if (!near.empty()) {
      error.hint(fmt::format("did you mean {}?", near));
    } else if (!known.empty()) {
      error.hint(fmt::format("results with a verdict: {}", fmt::join(known, ", ")));
    }
    return fail(error.at(ledger_path));
  }
  const std::string outcome = text(verdict->body, "outcome");
  if (outcome == "void" || outcome == "disqualified") {
    return fail(
        Error(ErrorKind::void_experiment, fmt::format("{} is {}: it can be nobody's baseline",
                                                      text(verdict->body, "result"), outcome))
            .at(ledger_path));
  }
  json values = json::object();
  json table_work = json::object();
  for (const json& row : verdict->body.value("rows", json::array())) {
    values[text(row, "arm")] = row.value("values", json::array());
    if (std::string work = table_work_of(row); !work.empty()) {
      table_work[text(row, "arm")] = std::move(work);
    }
  }
  const LedgerRecord* plan = plan_of(records, text(verdict->body, "result"));
  json accepted{{"result", text(verdict->body, "result")},
                {"verdict", verdict->hash},
                {"metric", verdict->body.value("metric", "")},
                {"unit", verdict->body.value("unit", "")},
                {"fingerprint",
                 plan == nullptr ? "" : fingerprint_of(plan->body.value("provenance", json()))},
                {"values", std::move(values)},
                {"note", note}};
  if (!table_work.empty()) accepted["table_work"] = std::move(table_work);
  return accepted;
}

const LedgerRecord* newest_acceptance(const std::vector<LedgerRecord>& records,
                                      const std::string& machine) {
  const LedgerRecord* any = nullptr;
  const LedgerRecord* here = nullptr;
  for (const LedgerRecord& record : records) {
    if (record.kind != "accept") continue;
    any = &record;
    if (text(record.body, "fingerprint") == machine) here = &record;
  }
  return here != nullptr ? here : any;
}

Baseline baseline_of(const LedgerRecord& acceptance) {
  Baseline baseline;
  baseline.result = text(acceptance.body, "result");
  baseline.record = acceptance.hash;
  const json work = acceptance.body.value("table_work", json::object());
  for (const auto& [arm, digest] : work.items()) {
    if (digest.is_string()) baseline.table_work[arm] = digest.get<std::string>();
  }
  const json by_arm = acceptance.body.value("values", json::object());
  for (const auto& [arm, values] : by_arm.items()) {
    for (const json& value : values) {
      if (value.is_number() && value.get<double>() > 0.0) {
        baseline.values[arm].push_back(value.get<double>());
      }
    }
  }
  return baseline;
}

Result<std::optional<Baseline>> accepted_baseline(const std::vector<LedgerRecord>& records,
                                                  const std::string& kept, const json& provenance,
                                                  const std::string& ledger_path) {
  const std::string ours = fingerprint_of(provenance);
  const LedgerRecord* accepted = nullptr;
  if (kept.empty()) {
    accepted = newest_acceptance(records, ours);
  } else {
    for (const LedgerRecord& record : records) {
      if (record.kind == "accept" && record.hash == kept) accepted = &record;
    }
  }
  if (accepted == nullptr) return std::optional<Baseline>();
  const std::string theirs = text(accepted->body, "fingerprint");
  if (theirs != ours) {
    return fail(Error(ErrorKind::environment,
                      fmt::format("the accepted baseline {} was measured on another machine: "
                                  "fingerprint {:.12} -> {:.12}",
                                  text(accepted->body, "result"), theirs, ours))
                    .at(ledger_path)
                    .hint("run where it was measured, or accept a result of this machine"));
  }
  return std::optional<Baseline>(baseline_of(*accepted));
}

}  // namespace assay
