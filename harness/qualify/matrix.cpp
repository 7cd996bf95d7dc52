#include "harness/qualify/matrix.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/named_output.h"

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;

Result<CampaignPlan> campaign_of(const MatrixPlan& plan, const MatrixRow& row) {
  const Result<const Driver*> driver = find_driver(row.store);
  if (!driver) return fail(driver.error());
  CampaignPlan made;
  made.store = row.store;
  made.settings = row.settings;
  const auto in_force = resolve_settings(**driver, made.durability, made.settings);
  if (!in_force) return fail(in_force.error());
  made.settings_in_force = *in_force;
  const auto claimed = given_durability(**driver, made.durability, made.settings);
  if (!claimed) return fail(claimed.error());
  made.claimed = claimed->given;
  const auto shape = shape_for((*driver)->capabilities(), plan.writers);
  if (!shape) return fail(shape.error());
  made.shape = *shape;
  made.levels = plan.levels;
  made.seed = plan.seed;
  made.budget = plan.budget;
  made.root = plan.root;
  std::string folder = row.name;
  std::ranges::replace(folder, ' ', '-');
  made.out = plan.out + "/" + folder;
  made.ledger = plan.ledger.empty() ? plan.out + "/ledger.jsonl" : plan.ledger;
  made.jobs = plan.jobs;
  made.open_timeout_ms = plan.open_timeout_ms;
  return made;
}

nlohmann::json identity_of(const MatrixPlan& plan) {
  nlohmann::json levels = nlohmann::json::array();
  for (const Level level : plan.levels) levels.push_back(to_string(level));
  return {{"seed", plan.seed},
          {"budget", plan.budget_text},
          {"levels", std::move(levels)},
          {"writers", plan.writers}};
}

std::string place_of(const MatrixPlan& plan) {
  return plan.out + "/matrix.json";
}

/// `out`/matrix.json says whose rows lie there.
Status claim_place(const MatrixPlan& plan) {
  const std::string path = place_of(plan);
  std::error_code code;
  if (!fs::exists(path, code)) {
    ASSAY_TRY(make_directories_durably(plan.out));
    return write_named_output(path, identity_of(plan).dump(1) + "\n");
  }
  const Result<std::string> text = read_whole_file(path);
  if (!text) return fail(text.error());
  if (nlohmann::json::parse(*text, nullptr, false) == identity_of(plan)) return {};
  return fail(Error(ErrorKind::bad_input, "another matrix was begun here")
                  .at(path)
                  .hint("go on with it by the same flags, or give another --out"));
}

void take_entries(const MatrixRow& row, const CampaignPlan& campaign,
                  const std::vector<LevelOutcome>& outcomes, Matrix& matrix) {
  for (const LevelOutcome& outcome : outcomes) {
    MatrixEntry entry;
    entry.row = row;
    entry.claimed = campaign.claimed;
    const Crash crash = outcome.level == Level::kill ? Crash::kill : Crash::power;
    // No error and no rot has to show what a lossy setting loses.
    if (outcome.level != Level::errors && outcome.level != Level::rot)
      entry.control = find_control(row.store, campaign.settings_in_force, crash);
    entry.outcome = outcome;
    examine(entry);
    matrix.entries.push_back(std::move(entry));
  }
}

}  // namespace

Result<std::vector<MatrixRow>> choose_rows(const std::vector<std::string>& names) {
  const std::vector<MatrixRow> all = matrix_rows();
  if (names.empty()) return all;
  std::vector<MatrixRow> chosen;
  for (const std::string& name : names) {
    const auto wanted = [&](const MatrixRow& row) { return row.name == name || row.store == name; };
    if (std::ranges::none_of(all, wanted)) {
      std::string valid;
      for (const MatrixRow& row : all) valid += (valid.empty() ? "" : ", ") + row.name;
      return fail(Error(ErrorKind::bad_input, fmt::format("the matrix has no row '{}'", name))
                      .hint("valid: a store of the tree, or " + valid));
    }
    std::ranges::copy_if(all, std::back_inserter(chosen), [&](const MatrixRow& row) {
      return wanted(row) && std::ranges::none_of(chosen, [&](const MatrixRow& known) {
               return known.name == row.name;
             });
    });
  }
  return chosen;
}

bool is_unfinished(const MatrixPlan& plan) {
  const Result<std::string> text = read_whole_file(place_of(plan));
  if (!text || nlohmann::json::parse(*text, nullptr, false) != identity_of(plan)) return false;
  return rows_left(plan) > 0;
}

std::size_t rows_left(const MatrixPlan& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(plan.rows, [&](const MatrixRow& row) {
    const Result<CampaignPlan> campaign = campaign_of(plan, row);
    return campaign && ended_campaign(*campaign).empty();
  }));
}

void examine(MatrixEntry& entry) {
  const LevelOutcome& outcome = entry.outcome;
  entry.reached = outcome.observed;
  const nlohmann::json profiles = outcome.coverage.is_object()
                                      ? outcome.coverage.value("profiles", nlohmann::json::object())
                                      : nlohmann::json::object();
  for (const auto& [name, profile] : profiles.items())
    entry.reached = std::max(
        entry.reached, parse_loss(profile.value("worst", "intact")).value_or(Loss::unopenable));
  entry.verdict = outcome.verdict;
  entry.reason = outcome.reason;
  const bool missed =
      entry.control && entry.control->must_reach && entry.reached < *entry.control->must_reach;
  if (!missed || outcome.verdict != Verdict::pass) return;
  entry.verdict = Verdict::inconclusive;
  entry.reason = fmt::format(
      "it has to lose '{}' ({}) and did not within this budget, which is below the one that would "
      "call the harness blind",
      to_string(*entry.control->must_reach), entry.control->source);
}

Verdict worst_verdict(const Matrix& matrix) {
  std::vector<LevelOutcome> verdicts(matrix.entries.size());
  for (std::size_t at = 0; at < verdicts.size(); ++at)
    verdicts[at].verdict = matrix.entries[at].verdict;
  return worst_verdict(verdicts);
}

Result<Matrix> run_matrix(
    const MatrixPlan& plan, const std::vector<std::string>& command_line,
    const std::atomic<bool>& stop, CampaignObserver& observer,
    const std::function<void(std::size_t number, const MatrixRow& row)>& row_begins) {
  ASSAY_TRY(claim_place(plan));
  Matrix matrix;
  matrix.ledger_path = plan.ledger.empty() ? plan.out + "/ledger.jsonl" : plan.ledger;
  for (std::size_t number = 0; number < plan.rows.size() && !matrix.interrupted; ++number) {
    const MatrixRow& row = plan.rows[number];
    const Result<CampaignPlan> campaign = campaign_of(plan, row);
    if (!campaign) return fail(campaign.error());
    if (const auto ended = ended_campaign(*campaign); !ended.empty()) {
      take_entries(row, *campaign, ended, matrix);
      continue;
    }
    row_begins(number + 1, row);
    const auto ran = run_campaign(*campaign, command_line, stop, observer);
    if (!ran) {
      // The other rows still say something.
      LevelOutcome broken;
      broken.level = plan.levels.front();
      broken.verdict = Verdict::harness_error;
      broken.reason = ran.error().message();
      take_entries(row, *campaign, {broken}, matrix);
      continue;
    }
    matrix.interrupted = ran->interrupted;
    if (!ran->interrupted) take_entries(row, *campaign, ran->levels, matrix);
  }
  return matrix;
}

}  // namespace assay::qualify
