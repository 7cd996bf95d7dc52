#include "harness/ledger/results.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/ledger/machines.h"

namespace assay {
namespace {

using nlohmann::json;

std::string text_at(const json& body, const json::json_pointer& place) {
  if (!body.contains(place)) return {};
  const json& found = body.at(place);
  return found.is_string() ? found.get<std::string>() : std::string();
}

void take_plan(LedgerRecord&& record, LedgerResult& result) {
  result.experiment = text_at(record.body, json::json_pointer("/experiment/name"));
  result.question = text_at(record.body, json::json_pointer("/experiment/question"));
  result.status = text_at(record.body, json::json_pointer("/status"));
  result.began = record.time;
  result.outcome = "not complete";
  result.plan_line = record.line;
  result.plan = std::move(record.body);
}

void take_trial(const LedgerRecord& record, LedgerResult& result) {
  ++result.trials;
  if (text_at(record.body, json::json_pointer("/status")) == "void") ++result.void_trials;
  const std::string arm = text_at(record.body, json::json_pointer("/arm"));
  if (result.arms.contains(arm) || !record.body.contains("store")) return;
  json store = record.body["store"];
  if (store.is_object()) store.erase("counters");
  result.arms[arm] = std::move(store);
}

void take_verdict(LedgerRecord&& record, LedgerResult& result) {
  const json& body = record.body;
  result.outcome = text_at(body, json::json_pointer("/outcome"));
  result.ended = record.time;
  result.verdict_line = record.line;
  result.verdict_hash = origin_hash(record);
  if (result.experiment.empty()) {
    result.experiment = text_at(body, json::json_pointer("/experiment"));
  }
  result.verdicts.clear();
  result.sentences.clear();
  const auto comparisons = body.find("comparisons");
  if (comparisons != body.end() && comparisons->is_array()) {
    for (const json& one : *comparisons) {
      ++result.verdicts[text_at(one, json::json_pointer("/verdict"))];
      result.sentences.push_back(text_at(one, json::json_pointer("/sentence")));
    }
  }
  result.verdict = std::move(record.body);
}

}  // namespace

Result<LedgerResults> read_results(const std::string& path) {
  LedgerResults all;
  all.path = path;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  const auto end = scan_ledger(path, [&](LedgerRecord&& record) -> Status {
    if (record.kind == "merge" && record.source.is_null() && record.body.contains("sources")) {
      all.merged_from = record.body["sources"].size();
    }
    const std::string name = result_of(record);
    if (name.empty()) return {};
    const bool tells = record.kind == "plan" || record.kind == "trial" ||
                       record.kind == "verdict" || record.kind == "interrupted";
    if (!tells) return {};
    const auto [place, added] = places.try_emplace({name, record.machine}, all.results.size());
    if (added) {
      all.results.emplace_back();
      all.results.back().result = name;
      all.results.back().machine = record.machine;
      all.results.back().arms = json::object();
    }
    LedgerResult& result = all.results[place->second];
    if (record.kind == "plan")
      take_plan(std::move(record), result);
    else if (record.kind == "trial")
      take_trial(record, result);
    else if (record.kind == "verdict")
      take_verdict(std::move(record), result);
    else
      result.outcome = "interrupted";
    return {};
  });
  if (!end) return fail(end.error());
  all.end = *end;
  return all;
}

Result<const LedgerResult*> choose_result(const LedgerResults& results, const std::string& name,
                                          const std::string& machine) {
  std::vector<const LedgerResult*> fit;
  for (const LedgerResult& one : results.results) {
    if ((name.empty() || one.result == name) && one.machine.starts_with(machine)) {
      fit.push_back(&one);
    }
  }
  if (name.empty() && !fit.empty()) {
    const auto judged = std::find_if(fit.rbegin(), fit.rend(),
                                     [](const LedgerResult* one) { return !one->ended.empty(); });
    return judged == fit.rend() ? fit.back() : *judged;
  }
  if (fit.size() == 1) return fit.front();
  if (!fit.empty()) {
    std::vector<std::string> machines;
    for (const LedgerResult* one : fit) machines.push_back(fmt::format("{:.12}", one->machine));
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("{} machines have a result \"{}\"", fit.size(), name))
                    .at(results.path)
                    .hint(fmt::format("--machine takes one of {}", fmt::join(machines, ", "))));
  }
  std::vector<std::string> names;
  for (const LedgerResult& one : results.results) names.push_back(one.result);
  Error error(ErrorKind::bad_input, name.empty() ? std::string("the ledger holds no result")
                                                 : fmt::format("there is no result \"{}\"", name));
  error.at(results.path);
  if (const std::string near = nearest_name(name, names); !near.empty()) {
    error.hint(fmt::format("did you mean {}?", near));
  } else if (!names.empty()) {
    error.hint(fmt::format("there are: {}", fmt::join(names, ", ")));
  }
  return fail(std::move(error));
}

}  // namespace assay
