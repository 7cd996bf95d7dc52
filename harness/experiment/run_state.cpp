#include "harness/experiment/run_state.h"

#include <algorithm>
#include <tuple>

namespace assay {

nlohmann::json conditions_of_trial(const nlohmann::json& trial_body,
                                   const nlohmann::json& declared) {
  using nlohmann::json;
  json found = json::object();
  const json store = trial_body.value("store", json::object());
  for (const char* key : {"version", "durability"}) {
    if (store.is_object() && store.contains(key)) found["store"][key] = store[key];
  }
  const json settings = store.value("settings_effective", json::object());
  for (const auto& [name, value] : settings.items()) {
    if (!declared.is_object() || declared.contains(name)) found["settings"][name] = value;
  }
  const json memory = trial_body.value("memory", json::object());
  if (memory.is_object() && !memory.empty()) {
    found["memory"] = memory.contains("unknown") ? "not held to the budget" : "held to the budget";
  }
  for (const json& phase : trial_body.value("phases", json::array())) {
    const json path = phase.value("table", json::object()).value("access_path_digest", json());
    if (!path.is_null()) found["access_path"][phase.value("name", "")] = path;
    const json cache = phase.value("cache", json::object());
    if (!cache.is_object() || !cache.contains("policy")) continue;
    json& of_phase = found["cache"][phase.value("name", "")];
    of_phase["policy"] = cache["policy"];
    // Why a step could not be done may carry figures; that it was not done is what counts.
    if (cache.contains("not_done")) of_phase["not_done"] = true;
  }
  return found;
}

void RunState::load(const std::vector<LedgerRecord>& records) {
  for (const LedgerRecord& record : records) {
    if (record.kind == "trial" && record.body.value("result", "") == result_) add(record.body);
  }
}

void RunState::add(const nlohmann::json& trial_body) {
  TrialEntry entry;
  entry.arm = trial_body.value("arm", "");
  entry.cell = trial_body.value("cell", "");
  entry.index = trial_body.value("index", std::uint64_t{0});
  entry.round = trial_body.value("round", std::uint64_t{0});
  entry.attempt = trial_body.value("attempt", std::uint64_t{0});
  entry.status = trial_body.value("status", "");
  entry.reason = trial_body.value("reason", "");
  if (const auto raw = trial_body.find("raw"); raw != trial_body.end()) {
    entry.raw_path = raw->value("path", "");
    entry.raw_sha256 = raw->value("sha256", "");
  }
  entry.body = trial_body;
  if (entry.status == "disqualified") disqualify(entry);
  trials_.push_back(std::move(entry));
}

void RunState::disqualify(const TrialEntry& trial) {
  disqualified_.emplace(trial.arm, trial.reason);
  const Arm* wrong = plan_->find_arm(trial.arm);
  if (wrong == nullptr || trial.cell.empty()) return;
  for (const Arm& arm : plan_->arms) {
    if (name_without_cell(arm) != name_without_cell(*wrong)) continue;
    disqualified_.emplace(arm.name, "in cell " + trial.cell + ": " + trial.reason);
  }
}

const std::string& RunState::recorded_as(const std::string& arm) const {
  const Arm* planned = plan_->find_arm(arm);
  return planned == nullptr || planned->trials_of.empty() ? arm : planned->trials_of;
}

bool RunState::done(const std::string& arm, std::uint64_t round) const {
  return disqualified_.contains(arm) || counted(arm, round) != nullptr;
}

std::optional<std::uint64_t> RunState::sound_attempt(std::uint64_t round,
                                                     const std::string& cell) const {
  std::map<std::uint64_t, std::set<std::string>> sound;  // attempt -> arms
  for (const TrialEntry& trial : trials_) {
    if (trial.round == round && trial.cell == cell && trial.status == "ok") {
      sound[trial.attempt].insert(trial.arm);
    }
  }
  for (const auto& entry : sound) {
    const std::set<std::string>& arms = entry.second;
    const bool whole = std::all_of(plan_->arms.begin(), plan_->arms.end(), [&](const Arm& arm) {
      return arm.cell != cell || arms.contains(arm.name) || disqualified_.contains(arm.name);
    });
    if (whole) return entry.first;
  }
  return std::nullopt;
}

bool RunState::set_done(std::uint64_t round, const std::string& cell) const {
  const bool nobody_left = std::all_of(plan_->arms.begin(), plan_->arms.end(), [&](const Arm& arm) {
    return arm.cell != cell || disqualified_.contains(arm.name);
  });
  return nobody_left || sound_attempt(round, cell).has_value();
}

const TrialEntry* RunState::counted(const std::string& arm, std::uint64_t round) const {
  std::optional<std::uint64_t> attempt;
  if (plan_->design == Design::windows) {
    const Arm* planned = plan_->find_arm(arm);
    attempt = sound_attempt(round, planned == nullptr ? std::string() : planned->cell);
    if (!attempt) return nullptr;
  }
  const std::string& recorded = recorded_as(arm);
  for (const TrialEntry& trial : trials_) {
    if (trial.arm == recorded && trial.round == round && trial.status == "ok" &&
        (!attempt || trial.attempt == *attempt)) {
      return &trial;
    }
  }
  return nullptr;
}

std::uint64_t RunState::attempts(const std::string& arm, std::uint64_t round) const {
  std::uint64_t next = 0;
  for (const TrialEntry& trial : trials_) {
    if (trial.round == round && trial.arm == arm) next = std::max(next, trial.attempt + 1);
  }
  return next;
}

std::uint64_t RunState::attempts_of_set(std::uint64_t round, const std::string& cell) const {
  std::uint64_t next = 0;
  for (const TrialEntry& trial : trials_) {
    if (trial.round == round && trial.cell == cell) next = std::max(next, trial.attempt + 1);
  }
  return next;
}

std::uint64_t RunState::void_count(const std::string& arm) const {
  const std::string& recorded = recorded_as(arm);
  return static_cast<std::uint64_t>(std::count_if(
      trials_.begin(), trials_.end(),
      [&](const TrialEntry& trial) { return trial.arm == recorded && trial.status == "void"; }));
}

std::uint64_t RunState::void_turns() const {
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> sets;
  std::uint64_t trials = 0;
  for (const TrialEntry& trial : trials_) {
    if (trial.status != "void") continue;
    ++trials;
    sets.emplace(trial.cell, trial.round, trial.attempt);
  }
  return plan_->design == Design::windows ? sets.size() : trials;
}

std::uint64_t RunState::next_index() const {
  std::uint64_t next = 0;
  for (const TrialEntry& trial : trials_) next = std::max(next, trial.index + 1);
  return next;
}

}  // namespace assay
