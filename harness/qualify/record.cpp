#include "harness/qualify/record.h"

namespace assay::qualify {
namespace {

/// Of levels whose verdict is apart from durability classes.
bool is_apart(Level level) {
  return level == Level::errors || level == Level::rot;
}

/// The class that a level says something about: what it proved, or what it refuted.
std::string class_of(const CampaignPlan& plan, const LevelOutcome& outcome) {
  if (outcome.proven) return std::string(to_string(*outcome.proven));
  if (outcome.verdict != Verdict::fail || is_apart(outcome.level)) return {};
  // A kill that loses what was acknowledged refutes the weakest class that survives one.
  if (outcome.level == Level::kill) return std::string(to_string(DurabilityClass::process));
  return std::string(to_string(plan.claimed));
}

std::string outcome_of(const LevelOutcome& outcome) {
  if (outcome.proven) return "proven";
  return outcome.verdict == Verdict::fail && !is_apart(outcome.level) ? "refuted" : "undecided";
}

}  // namespace

nlohmann::json qualification_record(const CampaignPlan& plan, const LevelOutcome& outcome,
                                    const RecordContext& context) {
  nlohmann::json record = to_json(outcome);
  record.erase("resume");
  record.erase("finished");
  record.update({{"schema", 1},
                 {"campaign", context.campaign},
                 {"store", outcome.store.value("store", plan.store)},
                 {"store_path", plan.store},
                 {"version", outcome.store.value("version", "")},
                 {"settings", outcome.store.value("settings", nlohmann::json::object())},
                 {"settings_given", plan.settings},
                 {"opened_for", to_string(plan.durability)},
                 {"claimed", to_string(plan.claimed)},
                 {"class", class_of(plan, outcome)},
                 {"outcome", outcome_of(outcome)},
                 {"seed", plan.seed},
                 {"shard", {{"index", plan.shard.index}, {"count", plan.shard.count}}},
                 {"shape", to_json(plan.shape)},
                 {"binary_sha256", context.binary_sha256},
                 {"provenance", context.provenance},
                 {"command_line", context.command_line}});
  return record;
}

}  // namespace assay::qualify
