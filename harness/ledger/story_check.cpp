#include "harness/ledger/story_check.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/ledger/machines.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

using nlohmann::json;

std::string text_at(const json& body, const char* key) {
  const auto found = body.find(key);
  return found != body.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t count_at(const json& body, const char* key) {
  const auto found = body.find(key);
  return found != body.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

void StoryCheck::find(const LedgerRecord& record, const char* code, std::string what) {
  into_.findings.push_back({fmt::format("{}:{}", into_.path, record.line), code, std::move(what)});
}

void StoryCheck::take(const LedgerRecord& record) {
  check_time(record);
  const std::string result = result_of(record);
  if (result.empty()) return;
  if (record.kind == "plan") {
    // Trials before their plan have no machine yet: they are those of the plan that comes.
    if (auto early = results_.extract({result, ""}); !early.empty()) {
      early.key() = {result, record.machine};
      results_.insert(std::move(early));
    }
  }
  Told& told = results_[{result, record.machine}];
  if (record.kind == "plan") take_plan(record, told);
  if (record.kind == "trial") take_trial(record, told);
  if (record.kind == "verdict") take_verdict(record, told);
}

/// Clocks are set back for good reasons, too: worth knowing, no more. Of each source by itself.
void StoryCheck::check_time(const LedgerRecord& record) {
  const std::string route = record.source.is_null()
                                ? ""
                                : std::to_string(record.source.at("ledger").get<std::uint64_t>());
  auto& [time, line] = last_times_[route];
  if (record.time < time) {
    into_.notes.push_back({fmt::format("{}:{}", into_.path, record.line), "clock",
                           fmt::format("this record is dated {}, before line {} ({}): a clock was "
                                       "set back",
                                       record.time, line, time)});
  }
  time = record.time;
  line = record.line;
}

void StoryCheck::take_plan(const LedgerRecord& record, Told& told) {
  const std::string result = result_of(record);
  if (told.plan_line != 0) {
    find(record, "second_plan",
         fmt::format("result {} has its plan in line {} already", result, told.plan_line));
  }
  told.plan_line = record.line;
  const auto experiment = record.body.find("experiment");
  if (experiment == record.body.end()) return;
  told.design = text_at(*experiment, "design");
  const auto aggregation = experiment->find("aggregation");
  if (aggregation != experiment->end() && aggregation->is_object()) {
    told.warm_up_trials = count_at(*aggregation, "warm_up_trials");
  }
  const std::string digest = text_at(record.body, "digest");
  const std::string found = sha256_hex(experiment->dump());
  if (digest != found) {
    find(record, "plan_digest",
         fmt::format("the plan of result {} hashes to {:.12}..., and its digest says {:.12}...: it "
                     "was changed",
                     result, found, digest));
  }
}

void StoryCheck::take_trial(const LedgerRecord& record, Told& told) {
  const std::string result = result_of(record);
  if (told.plan_line == 0 && told.first_trial_line == 0) {
    find(record, "plan_late",
         fmt::format("this trial of result {} was recorded before any plan of it", result));
  }
  if (told.first_trial_line == 0) told.first_trial_line = record.line;
  if (told.verdict_line != 0) {
    find(record, "after_verdict",
         fmt::format("this trial of result {} was recorded after its verdict (line {})", result,
                     told.verdict_line));
  }
  if (text_at(record.body, "status") == "ok") {
    told.sound_rounds[text_at(record.body, "arm")].insert(count_at(record.body, "round"));
    for (const json& other : record.body.value("counts_for", json::array())) {
      if (!other.is_string()) continue;
      told.sound_rounds[other.get<std::string>()].insert(count_at(record.body, "round"));
    }
  }
}

void StoryCheck::take_verdict(const LedgerRecord& record, Told& told) {
  const std::string result = result_of(record);
  if (told.plan_line == 0) {
    find(record, "plan_late",
         fmt::format("there is no plan of result {} before its verdict", result));
  }
  if (told.verdict_line != 0) {
    find(record, "second_verdict",
         fmt::format("result {} was judged in line {} already", result, told.verdict_line));
  }
  told.verdict_line = record.line;
  const std::string outcome = text_at(record.body, "outcome");
  const bool whole = outcome == "judged" || outcome == "rejected" || outcome == "regression";
  const auto rows = record.body.find("rows");
  if (rows == record.body.end() || !rows->is_array()) return;
  for (const json& row : *rows) {
    if (!row.is_object() || !row.contains("values") || !row["values"].is_array()) continue;
    const std::string arm = text_at(row, "arm");
    const std::size_t counted = row["values"].size();
    const std::size_t sound = told.sound_rounds[arm].size();
    // Of sets in windows only those count in which every arm was sound.
    const bool fewer = counted + told.warm_up_trials < sound && whole && told.design != "windows";
    if (counted > sound || fewer) {
      find(record, "samples",
           fmt::format("the verdict counts {} values of {}, and the ledger holds {} sound trials",
                       counted, arm, sound));
    }
  }
}

}  // namespace assay
