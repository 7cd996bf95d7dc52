#include "harness/qualify/rot/rot_level.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/controls.h"
#include "harness/qualify/rot/rot_claim.h"
#include "harness/qualify/rot/rot_server.h"
#include "harness/qualify/served_level.h"
#include "harness/qualify/shards.h"

namespace assay::qualify::rot {
namespace {

void add_round(const nlohmann::json& round, LevelOutcome& outcome) {
  nlohmann::json& coverage = outcome.coverage;
  ++outcome.cases;
  const std::string effect = round.at("effect");
  const std::string kind = round.at("kind");
  count(coverage["effects"], effect);
  count(coverage["effects_by_damage"][kind], effect);
  count(coverage, "processes_left_behind", round.at("left_behind"));
  const std::string sentence = fmt::format(
      "case {}: {}: {}: {}", round.at("case").get<std::uint64_t>(),
      round.at("damage").get<std::string>(), effect, round.at("text").get<std::string>());
  const bool is_well = effect == "harmless" || effect == "repaired";
  if (!is_well && !coverage["first_of_effect"].contains(effect))
    coverage["first_of_effect"][effect] = sentence;
  // What a store has said is a loss of the disk's, not of the store's.
  if (effect == "lost-an-end" || effect == "wrong-data") {
    const std::string loss = round.at("loss");
    outcome.observed = std::max(outcome.observed, parse_loss(loss).value_or(Loss::unopenable));
    outcome.lost_most = std::max(outcome.lost_most, round.at("lost").get<std::uint64_t>());
  }
  if (!round.at("beyond").get<bool>()) return;
  ++outcome.failures;
  if (outcome.reason.empty()) outcome.reason = sentence;
  if (round.contains("bundle")) outcome.bundles.push_back(round.at("bundle"));
}

void judge_rot(const RotClaim& claim, LevelOutcome& outcome) {
  outcome.proven.reset();
  const nlohmann::json effects = outcome.coverage.value("effects", nlohmann::json::object());
  const auto of = [&](const char* effect) { return effects.value(effect, std::uint64_t{0}); };
  const std::uint64_t unsaid = of("wrong-data") + of("lost-an-end") + of("crashed") + of("hung");
  outcome.coverage["checksums"] =
      fmt::format("{}: {}", claim.checksums ? "claimed" : "not claimed", claim.source);
  if (outcome.failures > 0) {
    outcome.verdict = Verdict::fail;
  } else if (outcome.cases < kLeastDamages) {
    outcome.verdict = Verdict::inconclusive;
    outcome.reason = fmt::format("{} damages are too few to say anything; at least {} are needed",
                                 outcome.cases, kLeastDamages);
  } else {
    outcome.verdict = Verdict::pass;
    outcome.reason.clear();
    if (!claim.checksums)
      outcome.reason = fmt::format(
          "undetected: {} of {} damages went unsaid, and no checksums are "
          "claimed ({})",
          unsaid, outcome.cases, claim.source);
  }
}

}  // namespace

Result<std::vector<LevelOutcome>> run_rot_level(const CampaignPlan& plan,
                                                const std::vector<LevelOutcome>& from,
                                                const std::atomic<bool>& stop,
                                                CampaignObserver& observer) {
  const RotClaim claim = rot_claim_of(plan.store, plan.settings_in_force);
  LevelOutcome outcome;
  if (!from.empty()) outcome = from.front();
  outcome.allowed = claim.checksums ? claim.unsaid : Loss::unopenable;
  ServedLevel how;
  how.level = Level::rot;
  how.cases = "damages";
  how.request = [&plan, allowed = outcome.allowed](const std::string& directory) {
    KillRequest request;
    request.store = plan.store;
    request.durability = plan.durability;
    request.settings = small_scale(plan.store, plan.settings);
    request.seed = plan.seed;
    request.shape = plan.shape;
    request.allowed = allowed;
    request.directory = directory;
    request.open_timeout_ms = plan.open_timeout_ms;
    return rot_request_json(request);
  };
  how.begins = [](const nlohmann::json&, LevelOutcome&) { return true; };
  how.add_round = add_round;
  how.judge = [&claim](bool, LevelOutcome& done) { judge_rot(claim, done); };
  Result<LevelOutcome> done = run_served_level(how, plan, std::move(outcome), stop, observer);
  if (!done) return fail(done.error());
  return std::vector<LevelOutcome>{std::move(*done)};
}

Result<LevelOutcome> merge_rot_level(const CampaignPlan& whole,
                                     const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = add_up(shards);
  if (sum.verdict == Verdict::skipped) return sum;
  judge_rot(rot_claim_of(whole.store, whole.settings_in_force), sum);
  return sum;
}

}  // namespace assay::qualify::rot
