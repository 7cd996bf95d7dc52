// assay qualify: does a store keep what it acknowledged? And `assay qualify replay BUNDLE`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_run.h"
#include "harness/cli/matrix_page.h"
#include "harness/cli/qualify_output.h"
#include "harness/cli/qualify_places.h"
#include "harness/cli/text_flags.h"
#include "harness/cli/verb.h"
#include "harness/experiment/stop_signal.h"
#include "harness/qualify/block/exec_store.h"
#include "harness/qualify/block/file_system.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/campaign.h"
#include "harness/qualify/matrix.h"
#include "harness/qualify/shards.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
namespace qualify = assay::qualify;

struct QualifyOptions {
  std::string store;
  std::string program;
  std::string durability = "power";
  std::vector<std::string> assignments;
  std::vector<std::string> levels = {"K"};
  std::vector<std::string> file_systems = {"ext4"};
  std::string budget = "60s";
  std::string shard = "1/1";
  std::uint64_t seed = 1;
  std::uint64_t writers = 3;
  std::uint64_t jobs = 0;
  std::uint64_t open_timeout_s = 30;
  std::string root;
  std::string out;
  bool json = false;
};

struct MatrixOptions {
  std::vector<std::string> rows;
  std::string budget = "10s";
  bool markdown = false;
  bool junit = false;
  bool html = false;
};

/// "name=value"; a name once.
Result<Settings> settings_of(const std::vector<std::string>& assignments) {
  Settings settings;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Error(ErrorKind::bad_input, fmt::format("--set {} is no assignment", assignment))
                      .hint("write --set SETTING=VALUE; `assay store show STORE` lists them"));
    if (!settings.emplace(assignment.substr(0, equals), assignment.substr(equals + 1)).second)
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("--set gives '{}' twice", assignment.substr(0, equals))));
  }
  return settings;
}

Result<std::vector<qualify::Level>> levels_of(const std::vector<std::string>& names) {
  std::vector<qualify::Level> levels;
  for (const std::string& name : names) {
    const auto level = qualify::parse_level(name);
    if (!level) return fail(level.error());
    if (!qualify::find_level(*level))
      return fail(
          Error(ErrorKind::unsupported, fmt::format("level {} is not built yet", name))
              .hint("there are K (kill), F (power loss at file level), B (power loss under a file "
                    "system), E (errors) and R (rot)"));
    if (std::ranges::find(levels, *level) == levels.end()) levels.push_back(*level);
  }
  return levels;
}

std::uint32_t jobs_of(std::uint64_t given) {
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return given == 0 ? std::min(processors, 8U) : static_cast<std::uint32_t>(given);
}

/// A program is seen from outside only: by what it acknowledges and what the disk was given.
Status check_program(const QualifyOptions& options) {
  if (options.program.empty()) return {};
  if (options.levels == std::vector<std::string>{"B"}) return {};
  return fail(Error(ErrorKind::bad_input, "--exec goes with level B only").hint("add --level B"));
}

Status check_file_systems(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto known = qualify::block::find_file_system(name);
    if (!known) return fail(known.error());
    if (std::ranges::count(names, name) > 1)
      return fail(Error(ErrorKind::bad_input, fmt::format("--file-system names {} twice", name))
                      .hint("each gets a part of the budget: name it once"));
  }
  return {};
}

Result<qualify::CampaignPlan> plan_of(const QualifyOptions& options) {
  qualify::CampaignPlan plan;
  const std::string store = options.program.empty()
                                ? options.store
                                : std::string(qualify::block::kExecPrefix) + options.program;
  if (store.empty())
    return fail(Error(ErrorKind::bad_input, "--store is missing")
                    .hint("`assay store list` shows the stores"));
  ASSAY_TRY(check_program(options));
  ASSAY_TRY(check_file_systems(options.file_systems));
  plan.file_systems = options.file_systems;
  const auto driver = driver_of(store);
  if (!driver) return fail(driver.error());
  const bool plug_in = !is_program(store) && store.find('/') != std::string::npos;
  plan.store = plug_in ? fs::absolute(store).string() : store;
  if (!(*driver)->capabilities().retains_data)
    return fail(ErrorKind::unsupported,
                fmt::format("{} keeps nothing: there is nothing to qualify", options.store));
  const auto durability = parse_durability(options.durability);
  if (!durability) return fail(durability.error());
  plan.durability = *durability;
  const auto settings = settings_of(options.assignments);
  if (!settings) return fail(settings.error());
  plan.settings = *settings;
  OpenOptions opening;
  opening.durability = plan.durability;
  opening.settings = plan.settings;
  const auto writers = static_cast<std::uint32_t>(options.writers);
  ASSAY_TRY((*driver)->check_settings(opening, writers));
  const auto in_force = resolve_settings(**driver, plan.durability, plan.settings);
  if (!in_force) return fail(in_force.error());
  plan.settings_in_force = *in_force;
  const auto claimed = given_durability(**driver, plan.durability, plan.settings);
  if (!claimed) return fail(claimed.error());
  plan.claimed = claimed->given;
  const auto shape = qualify::shape_for((*driver)->capabilities(), writers);
  if (!shape) return fail(shape.error());
  plan.shape = *shape;
  const auto levels = levels_of(options.levels);
  if (!levels) return fail(levels.error());
  plan.levels = *levels;
  const auto budget = qualify::parse_budget(options.budget);
  if (!budget) return fail(budget.error());
  plan.budget = *budget;
  const auto shard = qualify::parse_shard(options.shard);
  if (!shard) return fail(shard.error());
  plan.shard = *shard;
  plan.seed = options.seed;
  plan.jobs = jobs_of(options.jobs);
  plan.open_timeout_ms = static_cast<std::uint32_t>(options.open_timeout_s * 1000);
  plan.root = options.root.empty() ? default_root() : options.root;
  plan.out = options.out.empty() ? choose_out(plan) : options.out;
  plan.ledger = ledger_of(options.out);
  return plan;
}

Result<ExitStatus> run_qualify(const QualifyOptions& options) {
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  Result<qualify::CampaignOutcome> outcome = fail(ErrorKind::internal, "it did not begin");
  {
    const StopOnSignal stop;
    CampaignLine line;
    outcome = run_campaign(*plan, command_line(), stop.flag(), line);
  }
  if (!outcome) return fail(outcome.error());
  print_campaign(*plan, *outcome, options.json);
  if (outcome->interrupted)
    return fail(Error(ErrorKind::interrupted, "stopped; what was found so far is kept")
                    .at(plan->out)
                    .hint("the same command goes on with it"));
  return status_of(worst_verdict(outcome->levels));
}

Result<qualify::MatrixPlan> matrix_plan_of(const QualifyOptions& options,
                                           const MatrixOptions& matrix) {
  qualify::MatrixPlan plan;
  const auto rows = qualify::choose_rows(matrix.rows);
  if (!rows) return fail(rows.error());
  plan.rows = *rows;
  const auto levels = levels_of(options.levels);
  if (!levels) return fail(levels.error());
  plan.levels = *levels;
  const auto budget = qualify::parse_budget(matrix.budget);
  if (!budget) return fail(budget.error());
  plan.budget = *budget;
  plan.budget_text = matrix.budget;
  plan.seed = options.seed;
  plan.writers = static_cast<std::uint32_t>(options.writers);
  plan.jobs = jobs_of(options.jobs);
  plan.open_timeout_ms = static_cast<std::uint32_t>(options.open_timeout_s * 1000);
  plan.root = options.root.empty() ? default_root() : options.root;
  plan.out = options.out;
  if (plan.out.empty())
    plan.out = choose_place("qualify-matrix-", [there = plan](const std::string& place) mutable {
      there.out = place;
      return is_unfinished(there);
    });
  plan.ledger = ledger_of(options.out);
  return plan;
}

Result<ExitStatus> run_matrix(const QualifyOptions& options, const MatrixOptions& how) {
  const auto plan = matrix_plan_of(options, how);
  if (!plan) return fail(plan.error());
  Result<qualify::Matrix> matrix = fail(ErrorKind::internal, "it did not begin");
  {
    const StopOnSignal stop;
    CampaignLine line;
    line.note(matrix_forecast(*plan));
    matrix = qualify::run_matrix(
        *plan, command_line(), stop.flag(), line,
        [&](std::size_t number, const qualify::MatrixRow& row) {
          line.note(fmt::format("setting {} of {}: {}", number, plan->rows.size(), row.name));
        });
  }
  if (!matrix) return fail(matrix.error());
  if (options.json)
    fmt::print("{}\n", matrix_json(*plan, *matrix).dump(2));
  else if (how.junit)
    fmt::print("{}", matrix_junit(*matrix));
  else if (how.markdown)
    fmt::print("{}", matrix_markdown(*matrix));
  else if (how.html)
    fmt::print("{}", matrix_page(*plan, *matrix));
  else
    fmt::print("{}verdict {}\nrecord  {}\n", printable_lines(matrix_text(*matrix)),
               to_string(worst_verdict(*matrix)), matrix->ledger_path);
  if (matrix->interrupted)
    return fail(Error(ErrorKind::interrupted, "stopped; the settings that were looked at are kept")
                    .at(plan->out)
                    .hint("the same command goes on with the setting that it was at"));
  return status_of(worst_verdict(*matrix));
}

Result<ExitStatus> replay(const std::string& path, const std::string& root) {
  const auto bundle = qualify::read_bundle(path);
  if (!bundle) return fail(bundle.error());
  const auto driver = driver_of(bundle->store);
  if (!driver) return fail(driver.error());
  const auto now = replay_bundle(path, *bundle, **driver, root.empty() ? default_root() : root);
  if (!now) return fail(now.error());
  fmt::print("{}", printable_lines(bundle_story(*bundle, *now)));
  const bool again = !now->allowed(bundle->allowed);
  if ((*driver)->version() != bundle->version)
    fmt::print("\nthe bundle was made with version {}, this is {}\n", bundle->version,
               (*driver)->version());
  if (!again && !case_command(*bundle).empty()) return ExitStatus::done;
  fmt::print("\n{}\n", again ? "the failure shows again"
                             : "the failure does not show again: what came back is allowed");
  return again ? ExitStatus::wrong_contents : ExitStatus::done;
}

void add_levels_flag(CLI::App& verb, QualifyOptions& options) {
  add_list_flag(verb, "--level,--levels", options.levels,
                "K (SIGKILL), F (power loss at file level: recorded calls that may be lost are "
                "lost), B (power loss under a file system on a disk of ours: writes that were not "
                "flushed are lost; needs root), E (calls of the store fail: EIO, a full "
                "disk, a failed sync, a short write), R (a bit, a sector or an end of a closed "
                "store's files is damaged: is it noticed?), separated by commas when several")
      ->capture_default_str();
}

void add_running_flags(CLI::App& verb, QualifyOptions& options) {
  add_seed_flag(verb, options.seed, "seed of histories and crashes");
  verb.add_option("--writers", options.writers, "writers at once (at K half of the cases have one)")
      ->check(whole_number(1, 32))
      ->capture_default_str();
  verb.add_option("--jobs", options.jobs, "cases at once; 0 = as many as there are CPUs")
      ->check(whole_number(0, 256))
      ->capture_default_str();
  verb.add_option("--open-timeout", options.open_timeout_s,
                  "seconds after which a store that is opening hangs")
      ->check(whole_number(1, 3600))
      ->capture_default_str();
  verb.add_option("--root", options.root,
                  "where stores live meanwhile (/dev/shm/assay-qualify-UID; /var/tmp where there "
                  "is no memory file system); level F keeps the states that it makes in "
                  "/dev/shm/assay-states-UID all the same where 256 MiB are free there");
}

CLI::App* add_replay(CLI::App& verb, Invocation& invocation) {
  const auto bundle = std::make_shared<std::string>();
  const auto root = std::make_shared<std::string>();
  CLI::App* const again = verb.add_subcommand("replay", "Show a failure again, with its story");
  again->add_option("bundle", *bundle, "directory that `assay qualify` printed")->required();
  again->add_option("--root", *root, "where the copy lives meanwhile");
  again->footer("Exit status: 8 the failure shows again, 0 it does not.");
  again->callback([bundle, root, &invocation] {
    invocation.action = [bundle, root] { return replay(*bundle, *root); };
  });
  return again;
}

Result<ExitStatus> merge(const std::vector<std::string>& places, const std::string& out,
                         bool json) {
  std::vector<qualify::ShardFound> shards;
  for (const std::string& place : places) {
    auto found = qualify::read_shard(place);
    if (!found) return fail(found.error());
    shards.push_back(std::move(*found));
  }
  ASSAY_TRY(check_shards(shards));
  const nlohmann::json& identity = shards.front().identity;
  const auto driver = driver_of(identity.value("store", ""));
  if (!driver) return fail(driver.error());
  auto plan = qualify::plan_of_identity(identity, **driver);
  if (!plan) return fail(plan.error());
  plan->root = default_root();
  plan->out = out.empty() ? choose_out(*plan) : out;
  plan->ledger = ledger_of(out);
  qualify::CampaignOutcome outcome;
  auto levels = qualify::merge_shards(*plan, shards);
  if (!levels) return fail(levels.error());
  outcome.levels = std::move(*levels);
  ASSAY_TRY(record_campaign(*plan, command_line(), outcome));
  print_campaign(*plan, outcome, json);
  return status_of(worst_verdict(outcome.levels));
}

CLI::App* add_merge(CLI::App& verb, Invocation& invocation) {
  const auto places = std::make_shared<std::vector<std::string>>();
  const auto out = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* const merging = verb.add_subcommand(
      "merge", "Put the shards of one campaign together, recorded as the whole campaign");
  merging->add_option("shards", *places, "what was the --out of each shard; all of them")
      ->required();
  merging->add_option("--out", *out,
                      "directory for state and ledger instead of runs/qualify-STORE-TIME");
  merging->add_flag("--json", *json, "print the outcome as JSON and nothing else");
  merging->footer(kQualifyStatuses);
  merging->callback([places, out, json, &invocation] {
    invocation.action = [places, out, json] { return merge(*places, *out, *json); };
  });
  return merging;
}

CLI::App* add_matrix(CLI::App& verb, Invocation& invocation) {
  const auto options = std::make_shared<QualifyOptions>();
  const auto how = std::make_shared<MatrixOptions>();
  options->levels = {"K", "F"};
  CLI::App* const matrix = verb.add_subcommand(
      "matrix", "Every setting whose legal loss is known: is the lossy seen, does the safe pass?");
  matrix->add_option("--row", how->rows, "only this setting or store; may be repeated")
      ->allow_extra_args(false);
  add_levels_flag(*matrix, *options);
  matrix->add_option("--budget", how->budget, "of each level of each setting, as for qualify")
      ->capture_default_str();
  add_running_flags(*matrix, *options);
  matrix->add_option("--out", options->out,
                     "directory for everything instead of runs/qualify-matrix-TIME");
  CLI::Option* const json = matrix->add_flag("--json", options->json, "print JSON");
  CLI::Option* const markdown = matrix->add_flag("--markdown", how->markdown, "print Markdown");
  CLI::Option* const junit = matrix->add_flag("--junit", how->junit, "print JUnit XML");
  CLI::Option* const html = matrix->add_flag("--html", how->html, "print one HTML page");
  json->excludes(markdown)->excludes(junit)->excludes(html);
  markdown->excludes(junit)->excludes(html);
  junit->excludes(html);
  matrix->footer(kQualifyStatuses);
  matrix->callback([options, how, &invocation] {
    invocation.action = [options, how] { return run_matrix(*options, *how); };
  });
  return matrix;
}

}  // namespace

void add_qualify(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<QualifyOptions>();
  CLI::App* const verb = app.add_subcommand(
      "qualify", "Does a store keep what it acknowledged? Crashes it and looks at what is left");
  verb->add_option("--store", options->store,
                   "a store of `assay store list` or the path of a plug-in");
  verb->add_option(
          "--exec", options->program,
          "instead of --store: a program that is driven over a pipe, at level B (protocol: "
          "harness/qualify/block/README.md)")
      ->excludes("--store");
  verb->add_option("--durability", options->durability,
                   "class to open it for: volatile, process, power-prefix, power-last or power")
      ->capture_default_str();
  verb->add_option("--set", options->assignments, "SETTING=VALUE of the store; may be repeated")
      ->allow_extra_args(false);
  add_levels_flag(*verb, *options);
  verb->add_option("--budget", options->budget,
                   "of each level: a time (60s, 5m) or a number of cases (1000 kills or states)")
      ->capture_default_str();
  verb->add_option(
          "--shard", options->shard,
          "I/N: this part of N of the same campaign; --budget is that of all N where it counts "
          "cases; `assay qualify merge` puts them together")
      ->capture_default_str();
  add_list_flag(*verb, "--file-system,--file-systems", options->file_systems,
                "of level B: ext4, ext4-nojournal, xfs, btrfs, separated by commas when several; "
                "they share the "
                "budget")
      ->capture_default_str();
  add_running_flags(*verb, *options);
  verb->add_option("--out", options->out,
                   "directory for bundles, state and ledger instead of runs/qualify-STORE-TIME");
  verb->add_flag("--json", options->json, "print the outcome as JSON and nothing else");
  verb->footer(kQualifyStatuses);
  CLI::App* const again = add_replay(*verb, invocation);
  CLI::App* const matrix = add_matrix(*verb, invocation);
  CLI::App* const merging = add_merge(*verb, invocation);
  verb->callback([options, again, matrix, merging, &invocation] {
    if (again->parsed() || matrix->parsed() || merging->parsed()) return;
    invocation.action = [options] { return run_qualify(*options); };
  });
}

}  // namespace assay::cli
