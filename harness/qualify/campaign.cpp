#include "harness/qualify/campaign.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "harness/ledger/directory_lock.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/named_output.h"
#include "harness/provenance/provenance.h"
#include "harness/provenance/sha256.h"
#include "harness/qualify/record.h"
#include "harness/qualify/root_space.h"
#include "harness/qualify/second_look.h"
#include "harness/trial/trial.h"

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;

/// `out`/campaign.json: the identity, and the levels so far.
class CampaignState {
 public:
  CampaignState(std::string path, const CampaignPlan& plan)
      : path_(std::move(path)), identity_(identity_json(plan)), budget_(to_json(plan.budget)) {}

  Status load() {
    std::error_code code;
    if (!fs::exists(path_, code)) return {};
    const Result<std::string> text = read_whole_file(path_);
    if (!text) return fail(text.error());
    const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("identity") || !json.contains("levels"))
      return fail(Error(ErrorKind::bad_input, "this is not the state of a campaign")
                      .at(path_)
                      .hint("give another directory with --out"));
    if (json["identity"] != identity_)
      return fail(Error(ErrorKind::bad_input, "another campaign was stopped here")
                      .at(path_)
                      .hint("resume it with the same flags, or give another --out"));
    if (json.value("recorded", false))
      return fail(Error(ErrorKind::bad_input, "this campaign has ended and is recorded")
                      .at(path_)
                      .hint("give another --out"));
    for (const nlohmann::json& level : json["levels"]) {
      Result<LevelOutcome> outcome = level_outcome_from_json(level);
      if (!outcome) {
        Error error = outcome.error();
        return fail(error.at(path_));
      }
      levels_.push_back(std::move(*outcome));
    }
    return {};
  }

  [[nodiscard]] std::vector<LevelOutcome> of(Level level) const {
    std::vector<LevelOutcome> found;
    for (const LevelOutcome& outcome : levels_)
      if (outcome.level == level) found.push_back(outcome);
    return found;
  }

  void put(const LevelOutcome& outcome) {
    for (LevelOutcome& known : levels_) {
      if (known.level != outcome.level || known.profile != outcome.profile) continue;
      known = outcome;
      return;
    }
    levels_.push_back(outcome);
  }

  Status save(bool recorded) const {
    nlohmann::json levels = nlohmann::json::array();
    for (const LevelOutcome& outcome : levels_) levels.push_back(to_json(outcome));
    const nlohmann::json json = {{"identity", identity_},
                                 {"budget", budget_},
                                 {"levels", std::move(levels)},
                                 {"recorded", recorded}};
    return write_named_output(path_, json.dump(1) + "\n");
  }

  [[nodiscard]] const std::vector<LevelOutcome>& levels() const { return levels_; }

 private:
  std::string path_;
  nlohmann::json identity_;
  nlohmann::json budget_;
  std::vector<LevelOutcome> levels_;
};

/// Hands everything on, and saves what could be resumed.
class SavingObserver final : public CampaignObserver {
 public:
  SavingObserver(CampaignState& state, CampaignObserver& next) : state_(state), next_(next) {}
  void level_begins(Level level, const std::string& profile) override {
    next_.level_begins(level, profile);
  }
  void progress(double fraction, const std::string& sentence) override {
    next_.progress(fraction, sentence);
  }
  void note(const std::string& sentence) override { next_.note(sentence); }
  void so_far(const LevelOutcome& outcome) override {
    state_.put(outcome);
    // The campaign goes on: what cannot be saved now may be later, and at the end it is told.
    (void)state_.save(false);
    next_.so_far(outcome);
  }
  void level_ends(const LevelOutcome& outcome) override { next_.level_ends(outcome); }

 private:
  CampaignState& state_;
  CampaignObserver& next_;
};

/// A level that has nowhere to put stores is skipped, for its verdict would be about the disk.
Result<std::vector<LevelOutcome>> run_where_there_is_room(const RunLevel& run, Level level,
                                                          const CampaignPlan& plan,
                                                          const std::vector<LevelOutcome>& before,
                                                          const std::atomic<bool>& stop,
                                                          CampaignObserver& observer) {
  if (const Status room = check_room_to_begin(plan.root, plan.jobs); !room) {
    // What was found before is not thrown away for it.
    if (!before.empty()) return fail(room.error());
    LevelOutcome skipped;
    skipped.level = level;
    skipped.verdict = Verdict::skipped;
    skipped.reason = room.error().message();
    skipped.store = {{"store", plan.store}, {"settings", plan.settings_in_force}};
    skipped.coverage = nlohmann::json::object();
    skipped.finished = true;
    return std::vector<LevelOutcome>{std::move(skipped)};
  }
  Result<std::vector<LevelOutcome>> ran = run(plan, before, stop, observer);
  if (!ran) return fail(explained_by_room(ran.error(), plan.root));
  return ran;
}

bool all_finished(const std::vector<LevelOutcome>& outcomes) {
  for (const LevelOutcome& outcome : outcomes)
    if (!outcome.finished) return false;
  return !outcomes.empty();
}

Status append_records(const CampaignPlan& plan, const std::vector<std::string>& command_line,
                      CampaignOutcome& outcome) {
  RecordContext context;
  context.campaign = sha256_hex(identity_json(plan).dump());
  context.command_line = command_line;
  ProvenanceOptions options;
  options.benchmark_root = plan.root;
  options.command_line = command_line;
  context.provenance = collect_provenance(options);
  const nlohmann::json binary = context.provenance.value("binary", nlohmann::json::object());
  if (binary.is_object() && binary.contains("sha256") && binary["sha256"].is_string())
    context.binary_sha256 = binary["sha256"];
  for (const LevelOutcome& level : outcome.levels)
    outcome.records.push_back(qualification_record(plan, level, context));
  outcome.ledger_path = plan.ledger.empty() ? plan.out + "/ledger.jsonl" : plan.ledger;
  ASSAY_TRY(make_directories_durably(folder_of(outcome.ledger_path)));
  Result<LedgerWriter> writer = LedgerWriter::open(outcome.ledger_path);
  if (!writer) return fail(writer.error());
  for (const nlohmann::json& record : outcome.records) {
    const auto appended = writer->append("qualification", record);
    if (!appended) return fail(appended.error());
  }
  return {};
}

}  // namespace

std::vector<LevelOutcome> ended_campaign(const CampaignPlan& plan) {
  const Result<std::string> text = read_whole_file(plan.out + "/campaign.json");
  if (!text) return {};
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.value("recorded", false) || !json.contains("levels") ||
      json.value("identity", nlohmann::json()) != identity_json(plan))
    return {};
  std::vector<LevelOutcome> outcomes;
  for (const nlohmann::json& level : json["levels"]) {
    Result<LevelOutcome> outcome = level_outcome_from_json(level);
    if (!outcome) return {};
    outcomes.push_back(std::move(*outcome));
  }
  return outcomes;
}

Result<CampaignOutcome> run_campaign(const CampaignPlan& plan,
                                     const std::vector<std::string>& command_line,
                                     const std::atomic<bool>& stop, CampaignObserver& observer) {
  ASSAY_TRY(make_directories_durably(plan.out));
  const Result<DirectoryLock> lock = DirectoryLock::take(plan.out);
  if (!lock) return fail(lock.error());
  remove_stale_trials(plan.root);
  CampaignState state(plan.out + "/campaign.json", plan);
  ASSAY_TRY(state.load());
  SavingObserver saving(state, observer);
  CampaignOutcome outcome;
  for (const Level level : plan.levels) {
    const std::vector<LevelOutcome> before = state.of(level);
    if (all_finished(before)) continue;
    const RunLevel run = find_level(level);
    if (!run)
      return fail(ErrorKind::unsupported,
                  fmt::format("level {} is not part of this build", to_string(level)));
    Result<std::vector<LevelOutcome>> ran =
        run_where_there_is_room(run, level, plan, before, stop, saving);
    if (!ran) return fail(ran.error());
    // Told to the observer alone: what a second look finds is no level of this campaign.
    if (level == Level::power_files)
      for (LevelOutcome& one : *ran) look_again_under_a_file_system(plan, one, stop, observer);
    for (const LevelOutcome& one : *ran) state.put(one);
    outcome.interrupted = !all_finished(*ran);
    ASSAY_TRY(state.save(false));
    if (outcome.interrupted) break;
  }
  outcome.levels = state.levels();
  if (outcome.interrupted) return outcome;
  ASSAY_TRY(append_records(plan, command_line, outcome));
  ASSAY_TRY(state.save(true));
  return outcome;
}

Status record_campaign(const CampaignPlan& plan, const std::vector<std::string>& command_line,
                       CampaignOutcome& outcome) {
  ASSAY_TRY(make_directories_durably(plan.out));
  const Result<DirectoryLock> lock = DirectoryLock::take(plan.out);
  if (!lock) return fail(lock.error());
  CampaignState state(plan.out + "/campaign.json", plan);
  ASSAY_TRY(state.load());
  for (const LevelOutcome& one : outcome.levels) state.put(one);
  ASSAY_TRY(state.save(false));
  ASSAY_TRY(append_records(plan, command_line, outcome));
  return state.save(true);
}

}  // namespace assay::qualify
