#include "harness/qualify/error/error_level.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/controls.h"
#include "harness/qualify/error/error_server.h"
#include "harness/qualify/served_level.h"
#include "harness/qualify/shards.h"

namespace assay::qualify::error {
namespace {

/// What one case, as a server tells it, adds to an outcome.
void add_round(const nlohmann::json& round, LevelOutcome& outcome) {
  nlohmann::json& coverage = outcome.coverage;
  if (round.at("reached").get<bool>()) {
    ++outcome.cases;
    count(coverage["faults"], round.at("shape"));
    count(coverage["faults_by_call"], round.at("call"));
    count(coverage["faults_by_stage"], round.at("stage"));
    count(coverage,
          round.at("recovers").get<bool>() ? "in_lives_that_recover" : "in_lives_that_create");
    const bool silent = round.at("reported").get<std::uint64_t>() == 0;
    count(coverage, silent ? "errors_that_the_store_overcame" : "errors_that_the_store_reported");
    if (!round.at("opened").get<bool>()) count(coverage, "openings_refused");
  } else {
    count(coverage, "faults_not_reached");
  }
  const bool several = round.at("writers").get<std::uint64_t>() > 1;
  if (several) count(coverage, "lives_with_several_writers");
  count(coverage, "acknowledged_commits", round.at("acknowledged"));
  count(coverage, "readings_refused", round.at("unread"));
  count(coverage, "processes_left_behind", round.at("left_behind"));
  if (round.at("acknowledged_after_failed_sync").get<std::uint64_t>() > 0)
    count(coverage, "lives_that_acknowledge_after_a_failed_sync");
  if (round.at("cut_checked").get<bool>()) count(coverage, "power_losses_after_a_failed_sync");
  if (round.at("unseen_calls").get<bool>()) count(coverage, "lives_with_io_uring");
  const std::string loss = round.at("loss");
  outcome.observed = std::max(outcome.observed, parse_loss(loss).value_or(Loss::unopenable));
  outcome.lost_most = std::max(outcome.lost_most, round.at("lost").get<std::uint64_t>());
  if (round.at("findings").empty()) return;
  ++outcome.failures;
  if (several) count(coverage, "failures_with_several_writers");
  for (const nlohmann::json& finding : round.at("findings"))
    count(coverage["findings"], finding.at("kind"));
  const nlohmann::json& first = round.at("findings").at(0);
  // One sentence for each kind, so that a report of a store shows all that is wrong with it.
  const std::string kind = first.at("kind");
  const std::string sentence =
      fmt::format("case {}: {}: {}: {}", round.at("case").get<std::uint64_t>(), kind,
                  round.at("fault").get<std::string>(), first.at("text").get<std::string>());
  if (!coverage["first_of_kind"].contains(kind)) coverage["first_of_kind"][kind] = sentence;
  if (outcome.reason.empty()) outcome.reason = sentence;
  if (round.contains("bundle")) outcome.bundles.push_back(round.at("bundle"));
}

void judge_errors(bool can, LevelOutcome& outcome) {
  outcome.proven.reset();
  outcome.coverage["not_followed"] =
      "names whose directory's sync failed; calls through io_uring; pages changed through a "
      "mapping to what they were";
  if (!can) {
    outcome.verdict = Verdict::skipped;
    outcome.reason =
        "this kernel or container does not let calls be answered in its place (seccomp user "
        "notification), so no call can be made to fail";
  } else if (outcome.failures > 0) {
    outcome.verdict = Verdict::fail;
  } else if (outcome.cases < kLeastFaults) {
    outcome.verdict = Verdict::inconclusive;
    outcome.reason = fmt::format("{} faults are too few to say anything; at least {} are needed",
                                 outcome.cases, kLeastFaults);
  } else {
    outcome.verdict = Verdict::pass;
    outcome.reason.clear();
  }
}

}  // namespace

Result<std::vector<LevelOutcome>> run_error_level(const CampaignPlan& plan,
                                                  const std::vector<LevelOutcome>& from,
                                                  const std::atomic<bool>& stop,
                                                  CampaignObserver& observer) {
  LevelOutcome outcome;
  if (!from.empty()) outcome = from.front();
  outcome.allowed = contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::kill);
  ServedLevel how;
  how.level = Level::errors;
  how.cases = "faults";
  how.request = [&plan, allowed = outcome.allowed](const std::string& directory) {
    ErrorRequest request;
    request.base.store = plan.store;
    request.base.durability = plan.durability;
    request.base.settings = small_scale(plan.store, plan.settings);
    request.base.seed = plan.seed;
    request.base.shape = plan.shape;
    request.base.allowed = allowed;
    request.base.directory = directory;
    request.base.open_timeout_ms = plan.open_timeout_ms;
    request.allowed_after_power_loss =
        contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::power);
    return to_json(request);
  };
  how.begins = [](const nlohmann::json& description, LevelOutcome& begun) {
    if (!description.value("calls", false)) return false;
    begun.coverage["calls_of_a_life"] = description.at("calls_of_a_life");
    return true;
  };
  how.add_round = add_round;
  how.judge = judge_errors;
  Result<LevelOutcome> done = run_served_level(how, plan, std::move(outcome), stop, observer);
  if (!done) return fail(done.error());
  return std::vector<LevelOutcome>{std::move(*done)};
}

Result<LevelOutcome> merge_error_level(const CampaignPlan& /*whole*/,
                                       const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = add_up(shards);
  if (sum.verdict == Verdict::skipped) return sum;
  judge_errors(true, sum);
  return sum;
}

}  // namespace assay::qualify::error
