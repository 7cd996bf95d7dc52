#include "harness/qualify/block/block_level.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/block/cut_search.h"
#include "harness/qualify/block/exec_store.h"
#include "harness/qualify/block/loop_device.h"
#include "harness/qualify/budget_meter.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/controls.h"
#include "harness/qualify/shards.h"
#include "harness/trial/trial_directory.h"

namespace assay::qualify::block {
namespace {

constexpr std::uint64_t kTransactions = 48;  ///< of all writers together
constexpr std::uint64_t kStatesOfHistory = 125;
constexpr std::uint32_t kShrinkTries = 40;
constexpr std::uint64_t kSpillBytes = std::uint64_t{8} << 30;  ///< of a history's log, on a disk

/// The verdict of all cuts; `exhausted`: there are no more of them.
void judge(const CampaignPlan& plan, bool exhausted, const std::string& disk_error,
           LevelOutcome& outcome) {
  const auto control = find_control(plan.store, plan.settings_in_force, Crash::power);
  outcome.proven.reset();
  if (!disk_error.empty()) {
    outcome.verdict = Verdict::harness_error;
    outcome.reason =
        "the disk lost what was flushed, so that nothing is said about the store: " + disk_error;
  } else if (outcome.failures > 0) {
    outcome.verdict = Verdict::fail;
  } else if (outcome.cases < kLeastCuts && !exhausted) {
    outcome.verdict = Verdict::inconclusive;
    outcome.reason = fmt::format("{} cuts are too few to say anything; at least {} are needed",
                                 outcome.cases, kLeastCuts);
  } else if (control && control->must_reach && outcome.cases >= kStandardCuts &&
             outcome.observed < *control->must_reach) {
    outcome.verdict = Verdict::harness_error;
    outcome.reason = fmt::format(
        "these settings lose '{}' by their own documentation ({}), but {} cuts showed '{}' at "
        "worst: the harness does not see what it must",
        to_string(*control->must_reach), control->source, outcome.cases,
        to_string(outcome.observed));
  } else {
    outcome.verdict = Verdict::pass;
    outcome.reason.clear();
    outcome.proven = class_proven_by(outcome.observed);
  }
}

class BlockLevel {
 public:
  BlockLevel(const CampaignPlan& plan, FileSystem system, const DiskFault& fault,
             LevelOutcome outcome, unsigned share, const std::atomic<bool>& stop,
             CampaignObserver& observer)
      : plan_(plan),
        outcome_(std::move(outcome)),
        stop_(stop),
        observer_(observer),
        meter_(plan, outcome_.elapsed_s, share) {
    lanes_plan_.system = std::move(system);
    lanes_plan_.fault = fault;
    next_ = outcome_.resume.value("next", std::uint64_t{0});
    // What it says was of the state in which the level was stopped.
    if (outcome_.failures == 0) outcome_.reason.clear();
    if (outcome_.coverage.contains("states_that_the_disk_cannot_have"))
      disk_error_ = "seen before the campaign was stopped";
  }

  Result<LevelOutcome> run() {
    const Result<const Driver*> driver = find_block_store(plan_.store);
    if (!driver) return fail(driver.error());
    outcome_.store = {{"store", (*driver)->name()},
                      {"version", (*driver)->version()},
                      {"settings", plan_.settings_in_force}};
    if (std::string lacking = what_is_lacking(lanes_plan_.system); !lacking.empty())
      return skipped(std::move(lacking));
    lanes_plan_.driver = *driver;
    lanes_plan_.durability = plan_.durability;
    lanes_plan_.settings = small_scale(plan_.store, plan_.settings);
    lanes_plan_.shape = plan_.shape;
    lanes_plan_.transactions = std::max<std::uint64_t>(kTransactions / plan_.shape.writers, 8);
    lanes_plan_.patience = std::chrono::milliseconds(plan_.open_timeout_ms);
    Result<SharedDisk> disk = SharedDisk::make({.image_bytes = lanes_plan_.system.image_bytes,
                                                .spill_bytes = kSpillBytes,
                                                .spill_directory = plan_.out});
    if (!disk) return fail(disk.error());
    Result<TrialDirectory> home = TrialDirectory::make(plan_.root);
    if (!home) return fail(home.error());
    std::vector<Lane> lanes;
    const std::uint32_t jobs = lanes_plan_.system.one_at_a_time ? 1 : std::max(1U, plan_.jobs);
    for (std::uint32_t job = 0; job < jobs; ++job) {
      Result<Lane> lane =
          Lane::start(lanes_plan_, *disk, fmt::format("{}/lane-{}", home->path(), job));
      if (!lane) return fail(lane.error());
      lanes.push_back(std::move(*lane));
    }
    while (!stop_ && !meter_.spent(outcome_)) {
      const Status done = run_history(*disk, lanes, home->path());
      if (!done && done.error().kind() == ErrorKind::environment && outcome_.cases == 0)
        return skipped(done.error().message());
      if (!done) return fail(done.error());
      // Between two histories only: what is kept of a part of one would be counted again with it.
      note_position();
      observer_.so_far(outcome_);
      if (plan_.region || (exhausted_ && found_new_ == 0)) break;
    }
    outcome_.finished = !stop_;
    if (outcome_.finished) outcome_.resume = nullptr;
    judge(plan_, exhausted_, disk_error_, outcome_);
    return std::move(outcome_);
  }

 private:
  Result<LevelOutcome> skipped(std::string why) {
    outcome_.verdict = Verdict::skipped;
    outcome_.reason = std::move(why);
    outcome_.finished = true;
    return std::move(outcome_);
  }

  Status run_history(SharedDisk& disk, std::vector<Lane>& lanes, const std::string& home) {
    const std::uint64_t seed = plan_.seed + plan_.shard.index + plan_.shard.count * next_;
    ASSAY_TRY(lanes.front().ask_to_record(seed));
    const Result<nlohmann::json> answer =
        lanes.front().answer(lanes_plan_.patience * 4 + std::chrono::seconds(60));
    if (!answer) return fail(answer.error());
    if (answer->is_null())
      return fail(ErrorKind::child, "a lane of level B hangs while it records");
    const Result<Recorded> recorded = recorded_from_json(*answer);
    if (!recorded) return fail(recorded.error());
    CutSearch search(disk, *recorded, seed, lanes, lanes_plan_.patience);
    if (plan_.region) search.only(*plan_.region);
    note_recording(disk, *recorded, search);
    std::optional<Cut> worst;
    found_new_ = 0;
    ASSAY_TRY(search.look(states_of_history(), [&](const Cut& cut) {
      add(cut);
      ++found_new_;
      const bool beyond = cut.disk_lied() || !cut.checked.judgement.allowed(outcome_.allowed);
      if (beyond && !worst) worst = cut;
      meter_.tell(outcome_, "cuts", observer_);
      return !stop_ && !meter_.spent(outcome_);
    }));
    exhausted_ = search.exhausted();
    note_search(search);
    if (worst) ASSAY_TRY(keep_bundle(search, *worst, seed, home));
    ++next_;
    return {};
  }

  /// Some histories for every budget, so that one of them cannot decide alone.
  [[nodiscard]] std::uint64_t states_of_history() const {
    const std::uint64_t all = meter_.cases();
    if (all == 0) return kStatesOfHistory;
    if (plan_.region) return all;
    return std::min(all - std::min(all, outcome_.cases),
                    std::clamp<std::uint64_t>(all / 4, 20, kStatesOfHistory));
  }

  void note_recording(const SharedDisk& disk, const Recorded& recorded, const CutSearch& search) {
    outcome_.store = {{"store", lanes_plan_.driver->name()},
                      {"version", lanes_plan_.driver->version()},
                      {"settings", recorded.settings_in_force}};
    nlohmann::json& coverage = outcome_.coverage;
    coverage["file_system"] = recorded.file_system;
    count(coverage, "histories");
    count(coverage, "acknowledged_commits", recorded.timed.all.acknowledged_commits());
    count(coverage, "disk_flushes", search.picker().intervals().size() - 1);
    std::uint64_t writes = 0;
    std::uint64_t bytes = 0;
    for (const LogEntry& entry : disk.entries()) {
      if (entry.kind == LogEntry::Kind::flush) continue;
      ++writes;
      bytes += entry.bytes;
    }
    count(coverage, "disk_writes", writes);
    count(coverage, "disk_bytes", bytes);
  }

  void note_search(const CutSearch& search) {
    nlohmann::json& coverage = outcome_.coverage;
    count(coverage, "distinct_images", search.distinct_images());
    count(coverage, "states_that_were_the_same", search.same_images());
    for (std::uint32_t kind = 0; kind < kStateClasses; ++kind) {
      const StatePicker::Count states = search.picker().count(static_cast<StateClass>(kind));
      nlohmann::json& of =
          coverage["states"][std::string(to_string(static_cast<StateClass>(kind)))];
      count(of, "picked", states.picked);
      if (static_cast<StateClass>(kind) != StateClass::seeded) count(of, "legal", states.legal);
    }
    const nlohmann::json& single = coverage["states"]["drop_one"];
    const nlohmann::json& pairs = coverage["states"]["drop_two"];
    coverage["one_drop_exhaustive"] = single["picked"] == single["legal"];
    coverage["two_drop_exhaustive"] = pairs["picked"] == pairs["legal"];
  }

  void add(const Cut& cut) {
    nlohmann::json& coverage = outcome_.coverage;
    ++outcome_.cases;
    if (cut.disk_lied()) {
      count(coverage, "states_that_the_disk_cannot_have");
      if (disk_error_.empty())
        disk_error_ = cut.checked.not_mounted.empty()
                          ? fmt::format(
                                "a file of the harness that was flushed {} times came back "
                                "as of {} times",
                                cut.canaries_due, cut.checked.canaries)
                          : "after a legal cut: " + cut.checked.not_mounted;
      return;
    }
    const Judgement& judgement = cut.checked.judgement;
    count(coverage["states_by_loss"], std::string(to_string(judgement.loss)));
    outcome_.observed = std::max(outcome_.observed, judgement.loss);
    outcome_.lost_most = std::max(outcome_.lost_most, judgement.lost_acknowledged);
    if (judgement.allowed(outcome_.allowed)) return;
    ++outcome_.failures;
    for (const Finding& finding : judgement.findings)
      count(coverage["findings"], std::string(to_string(finding.kind)));
    if (outcome_.reason.empty() && !judgement.findings.empty())
      outcome_.reason = judgement.findings.front().text;
  }

  Status keep_bundle(CutSearch& search, const Cut& failing, std::uint64_t seed,
                     const std::string& home) {
    if (outcome_.bundles.size() >= plan_.bundles_max || failing.disk_lied()) return {};
    const auto fails = [&](const Cut& cut) {
      return !cut.disk_lied() && !cut.checked.judgement.allowed(outcome_.allowed);
    };
    const Result<Cut> small = search.shrink(failing, kShrinkTries, fails);
    if (!small) return fail(small.error());
    const std::string image = home + "/image";
    std::error_code code;
    std::filesystem::remove_all(image, code);
    const Result<Cut> kept = search.again(*small, image);
    if (!kept) return fail(kept.error());
    Bundle bundle;
    bundle.level = to_string(Level::power_blocks);
    bundle.profile = lanes_plan_.system.name;
    bundle.store = plan_.store;
    bundle.version = lanes_plan_.driver->version();
    bundle.durability = plan_.durability;
    bundle.settings = lanes_plan_.settings;
    bundle.allowed = outcome_.allowed;
    bundle.seed = seed;
    bundle.shape = plan_.shape;
    bundle.acknowledgements = kept->known;
    bundle.judgement = kept->checked.judgement;
    bundle.story = search.story(*kept);
    bundle.transactions_after = lanes_plan_.transactions_after;
    bundle.open_timeout_ms = plan_.open_timeout_ms;
    bundle.origin = {{"campaign_seed", plan_.seed},
                     {"history", next_},
                     {"class", std::string(to_string(failing.state.kind))},
                     {"reproduced", fails(*kept)}};
    std::string path =
        fmt::format("{}/bundles/B-{}-{}", plan_.out, bundle.profile, outcome_.bundles.size() + 1);
    // A run that was cut short may have left one.
    while (std::filesystem::exists(path, code)) path += "-again";
    ASSAY_TRY(write_bundle(path, bundle, image));
    outcome_.bundles.push_back(path);
    std::filesystem::remove_all(image, code);
    return {};
  }

  void note_position() {
    outcome_.elapsed_s = meter_.elapsed_s();
    if (outcome_.elapsed_s > 0.0)
      outcome_.coverage["cuts_per_second"] =
          static_cast<double>(static_cast<std::int64_t>(static_cast<double>(outcome_.cases) /
                                                        outcome_.elapsed_s * 10.0)) /
          10.0;
    outcome_.resume = {{"next", next_}};
  }

  const CampaignPlan& plan_;
  LanePlan lanes_plan_;
  LevelOutcome outcome_;
  const std::atomic<bool>& stop_;
  CampaignObserver& observer_;
  std::uint64_t next_ = 0;
  std::uint64_t found_new_ = 0;
  bool exhausted_ = false;
  std::string disk_error_;
  BudgetMeter meter_;
};

}  // namespace

Result<std::vector<LevelOutcome>> run_block_level_on(const DiskFault& fault,
                                                     const CampaignPlan& plan,
                                                     const std::vector<LevelOutcome>& from,
                                                     const std::atomic<bool>& stop,
                                                     CampaignObserver& observer) {
  clear_stale_loops();
  std::vector<LevelOutcome> outcomes;
  for (const std::string& name : plan.file_systems) {
    Result<FileSystem> system = find_file_system(name);
    if (!system) return fail(system.error());
    LevelOutcome outcome;
    for (const LevelOutcome& before : from)
      if (before.profile == name) outcome = before;
    if (outcome.finished) {
      outcomes.push_back(std::move(outcome));
      continue;
    }
    outcome.level = Level::power_blocks;
    outcome.profile = name;
    outcome.allowed = contract_of(plan.store, plan.settings_in_force, plan.claimed, Crash::power);
    if (outcome.resume.is_null()) outcome.resume = nlohmann::json::object();
    if (outcome.coverage.is_null()) outcome.coverage = nlohmann::json::object();
    observer.level_begins(Level::power_blocks, name);
    Result<LevelOutcome> done =
        BlockLevel(plan, std::move(*system), fault, std::move(outcome),
                   static_cast<unsigned>(plan.file_systems.size()), stop, observer)
            .run();
    if (!done) return fail(done.error());
    observer.level_ends(*done);
    outcomes.push_back(std::move(*done));
    if (stop) break;
  }
  return outcomes;
}

Result<std::vector<LevelOutcome>> run_block_level(const CampaignPlan& plan,
                                                  const std::vector<LevelOutcome>& from,
                                                  const std::atomic<bool>& stop,
                                                  CampaignObserver& observer) {
  return run_block_level_on({}, plan, from, stop, observer);
}

Result<LevelOutcome> merge_block_level(const CampaignPlan& whole,
                                       const std::vector<LevelOutcome>& shards) {
  LevelOutcome sum = add_up(shards);
  if (sum.verdict == Verdict::skipped) return sum;
  // A shard that passes with few cuts has seen all that there are.
  const bool exhausted = std::ranges::all_of(
      shards, [](const LevelOutcome& shard) { return shard.verdict == Verdict::pass; });
  std::string disk_error;
  for (const LevelOutcome& shard : shards)
    if (shard.coverage.contains("states_that_the_disk_cannot_have")) disk_error = shard.reason;
  judge(whole, exhausted, disk_error, sum);
  return sum;
}

}  // namespace assay::qualify::block
