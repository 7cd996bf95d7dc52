// assay qualify: does a store keep what it acknowledged? And `assay qualify replay BUNDLE`.
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <linux/magic.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_run.h"
#include "harness/cli/verb.h"
#include "harness/experiment/progress.h"
#include "harness/experiment/stop_signal.h"
#include "harness/ledger/ledger.h"
#include "harness/qualify/bundle.h"
#include "harness/qualify/campaign.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
namespace qualify = assay::qualify;

struct QualifyOptions {
  std::string store;
  std::string durability = "power";
  std::vector<std::string> assignments;
  std::vector<std::string> levels = {"K"};
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

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

/// Memory is as good as a disk against SIGKILL, and faster: what was written to a file is the
/// kernel's in both cases.
std::string default_root() {
  struct statfs info{};
  const bool memory = ::statfs("/dev/shm", &info) == 0 && info.f_type == TMPFS_MAGIC &&
                      ::access("/dev/shm", W_OK | X_OK) == 0 &&
                      info.f_bavail * static_cast<std::uint64_t>(info.f_bsize) > (512ULL << 20);
  return fmt::format("{}/assay-qualify-{}", memory ? "/dev/shm" : "/var/tmp", ::getuid());
}

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

/// The newest stopped campaign of the same identity below runs/, else a new place.
std::string choose_out(const qualify::CampaignPlan& plan) {
  const std::string stem = fmt::format("qualify-{}-", fs::path(plan.store).stem().string());
  std::vector<std::string> stopped;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("runs", code)) {
    if (!entry.path().filename().string().starts_with(stem)) continue;
    std::ifstream file(entry.path() / "campaign.json");
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (json.is_object() && json.value("identity", nlohmann::json()) == identity_json(plan) &&
        !json.value("recorded", true))
      stopped.push_back(entry.path().string());
  }
  if (!stopped.empty()) return *std::ranges::max_element(stopped);
  std::string time = utc_now();
  std::erase_if(time, [](char one) { return one == '-' || one == ':'; });
  for (int again = 0;; ++again) {
    const std::string path =
        fmt::format("runs/{}{}{}", stem, time, again == 0 ? "" : fmt::format("-{}", again));
    if (!fs::exists(path, code)) return path;
  }
}

Result<qualify::CampaignPlan> plan_of(const QualifyOptions& options) {
  qualify::CampaignPlan plan;
  if (options.store.empty())
    return fail(Error(ErrorKind::bad_input, "--store is missing")
                    .hint("`assay store list` shows the stores"));
  const auto driver = plan_environment().find_store(options.store);
  if (!driver) return fail(driver.error());
  const bool plug_in = options.store.find('/') != std::string::npos;
  plan.store = plug_in ? fs::absolute(options.store).string() : options.store;
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
  for (const std::string& name : options.levels) {
    const auto level = qualify::parse_level(name);
    if (!level) return fail(level.error());
    plan.levels.push_back(*level);
  }
  const auto budget = qualify::parse_budget(options.budget);
  if (!budget) return fail(budget.error());
  plan.budget = *budget;
  const auto shard = qualify::parse_shard(options.shard);
  if (!shard) return fail(shard.error());
  plan.shard = *shard;
  plan.seed = options.seed;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  plan.jobs =
      options.jobs == 0 ? std::min(processors, 8U) : static_cast<std::uint32_t>(options.jobs);
  plan.open_timeout_ms = static_cast<std::uint32_t>(options.open_timeout_s * 1000);
  plan.root = options.root.empty() ? default_root() : options.root;
  plan.out = options.out.empty() ? choose_out(plan) : options.out;
  // In a tree its proofs go where results look for them.
  std::error_code code;
  if (options.out.empty() && fs::is_directory("ledgers", code))
    plan.ledger = "ledgers/qualification/ledger.jsonl";
  return plan;
}

/// Every line of a text that a store may have had a part in.
std::string printable_lines(const std::string& text) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    shown += printable(std::string_view(text).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return shown;
}

/// One rewritten line on a terminal, a line every few seconds elsewhere; to standard error.
class CampaignLine final : public qualify::CampaignObserver {
 public:
  CampaignLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}
  void level_begins(qualify::Level level, const std::string& profile) override {
    level_ = fmt::format("level {}{}{}", to_string(level), profile.empty() ? "" : ", ", profile);
    began_ = Clock::now();
    first_fraction_.reset();
  }
  void progress(double fraction, const std::string& sentence) override {
    const auto now = Clock::now();
    if (!first_fraction_) first_fraction_ = fraction;
    const auto quiet = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5);
    if (now - shown_ < quiet) return;
    shown_ = now;
    const double done = fraction - *first_fraction_;
    const double took = std::chrono::duration<double>(now - began_).count();
    std::string text = fmt::format("{}: {:3.0f} %, {}", level_, fraction * 100.0, sentence);
    if (done > 0.01)
      text += fmt::format(
          ", {} left", duration_text(static_cast<std::uint64_t>(took / done * (1.0 - fraction))));
    write(terminal_ ? "\r\x1b[2K" + text : text + "\n");
  }
  void level_ends(const qualify::LevelOutcome& /*outcome*/) override {
    if (terminal_) write("\r\x1b[2K");
  }
  void note(const std::string& sentence) override { write(printable(sentence) + "\n"); }

 private:
  using Clock = std::chrono::steady_clock;
  static void write(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  }
  bool terminal_;
  std::string level_;
  Clock::time_point began_;
  Clock::time_point shown_;
  std::optional<double> first_fraction_;
};

std::string counts_text(const nlohmann::json& counts) {
  std::string text;
  for (const auto& [name, value] : counts.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value.dump());
  return text;
}

void print_outcome(const qualify::CampaignPlan& plan, const qualify::LevelOutcome& outcome) {
  fmt::print("level {}{}  {}\n", to_string(outcome.level),
             outcome.profile.empty() ? "" : " (" + outcome.profile + ")",
             to_string(outcome.verdict));
  fmt::print("  claimed   {} (may lose here: {})\n", to_string(plan.claimed),
             to_string(outcome.allowed));
  fmt::print("  observed  {}", to_string(outcome.observed));
  if (outcome.lost_most > 0) fmt::print(", {} acknowledged commits at once", outcome.lost_most);
  fmt::print("\n  proven    {}\n",
             outcome.proven ? to_string(*outcome.proven) : std::string_view("nothing"));
  if (!outcome.reason.empty()) fmt::print("  why       {}\n", printable(outcome.reason));
  fmt::print("  cases     {} in {:.1f} s ({:.1f}/s), {} beyond the contract\n", outcome.cases,
             outcome.elapsed_s,
             static_cast<double>(outcome.cases) / std::max(0.001, outcome.elapsed_s),
             outcome.failures);
  fmt::print("  coverage\n");
  for (const auto& [name, value] : outcome.coverage.items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    fmt::print("    {}: {}\n", words, value.is_object() ? counts_text(value) : value.dump());
  }
  for (const std::string& bundle : outcome.bundles)
    fmt::print("  bundle    {}  (assay qualify replay {})\n", bundle, bundle);
}

ExitStatus status_of(qualify::Verdict verdict) {
  switch (verdict) {
    case qualify::Verdict::pass:
      return ExitStatus::done;
    case qualify::Verdict::fail:
      return ExitStatus::wrong_contents;
    case qualify::Verdict::inconclusive:
      return ExitStatus::void_experiment;
    case qualify::Verdict::harness_error:
      return ExitStatus::internal_error;
    case qualify::Verdict::skipped:
      return ExitStatus::environment;
  }
  return ExitStatus::internal_error;
}

Result<ExitStatus> run_qualify(const QualifyOptions& options) {
  const auto plan = plan_of(options);
  if (!plan) return fail(plan.error());
  Result<qualify::CampaignOutcome> outcome = fail(ErrorKind::internal, "it did not begin");
  {
    const StopOnSignal stop;
    CampaignLine line;
    outcome = run_campaign(*plan, own_arguments(), stop.flag(), line);
  }
  if (!outcome) return fail(outcome.error());
  if (options.json) {
    nlohmann::json levels = nlohmann::json::array();
    for (const qualify::LevelOutcome& level : outcome->levels) levels.push_back(to_json(level));
    for (nlohmann::json& level : levels) level.erase("resume");
    fmt::print("{}\n", nlohmann::json{{"levels", std::move(levels)},
                                      {"interrupted", outcome->interrupted},
                                      {"out", plan->out},
                                      {"ledger", outcome->ledger_path}}
                           .dump(2));
  } else {
    std::string settings;
    for (const auto& [name, value] : plan->settings) settings += fmt::format(" {}={}", name, value);
    fmt::print("{}{}, opened for durability {}, seed {}\n", printable(plan->store),
               printable(settings), to_string(plan->durability), plan->seed);
    for (const qualify::LevelOutcome& level : outcome->levels) print_outcome(*plan, level);
    if (!outcome->interrupted) fmt::print("record    {}\n", outcome->ledger_path);
  }
  if (outcome->interrupted)
    return fail(Error(ErrorKind::interrupted, "stopped; what was found so far is kept")
                    .at(plan->out)
                    .hint("the same command goes on with it"));
  return status_of(worst_verdict(outcome->levels));
}

Result<ExitStatus> replay(const std::string& path, const std::string& root) {
  const auto bundle = qualify::read_bundle(path);
  if (!bundle) return fail(bundle.error());
  const auto driver = plan_environment().find_store(bundle->store);
  if (!driver) return fail(driver.error());
  const auto now = replay_bundle(path, *bundle, **driver, root.empty() ? default_root() : root);
  if (!now) return fail(now.error());
  fmt::print("{}", printable_lines(bundle_story(*bundle, *now)));
  const bool again = !now->allowed(bundle->allowed);
  if ((*driver)->version() != bundle->version)
    fmt::print("\nthe bundle was made with version {}, this is {}\n", bundle->version,
               (*driver)->version());
  fmt::print("\n{}\n", again ? "the failure shows again"
                             : "the failure does not show again: what came back is allowed");
  return again ? ExitStatus::wrong_contents : ExitStatus::done;
}

}  // namespace

void add_qualify(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<QualifyOptions>();
  CLI::App* const verb =
      app.add_subcommand("qualify", "Does a store keep what it acknowledged? Kills it and looks");
  verb->add_option("--store", options->store,
                   "a store of `assay store list` or the path of a plug-in");
  verb->add_option("--durability", options->durability,
                   "class to open it for: volatile, process, power-prefix, power-last or power")
      ->capture_default_str();
  verb->add_option("--set", options->assignments, "SETTING=VALUE of the store; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--level,--levels", options->levels,
                   "K (kill), separated by commas when several")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--budget", options->budget,
                   "of each level: a time (60s, 5m) or a number of cases (1000)")
      ->capture_default_str();
  verb->add_option("--shard", options->shard, "I/N: this part of N of the same campaign")
      ->capture_default_str();
  add_seed_flag(*verb, options->seed, "seed of histories and crashes");
  verb->add_option("--writers", options->writers, "writers at once (half of the cases have one)")
      ->check(whole_number(1, 32))
      ->capture_default_str();
  verb->add_option("--jobs", options->jobs, "cases at once; 0 = as many as there are CPUs")
      ->check(whole_number(0, 256))
      ->capture_default_str();
  verb->add_option("--open-timeout", options->open_timeout_s,
                   "seconds after which a store that is opening hangs")
      ->check(whole_number(1, 3600))
      ->capture_default_str();
  verb->add_option("--root", options->root,
                   "where stores live meanwhile (/dev/shm/assay-qualify-UID; /var/tmp where there "
                   "is no memory file system)");
  verb->add_option("--out", options->out,
                   "directory for bundles, state and ledger instead of runs/qualify-STORE-TIME");
  verb->add_flag("--json", options->json, "print the outcome as JSON and nothing else");
  const auto bundle = std::make_shared<std::string>();
  CLI::App* const again = verb->add_subcommand("replay", "Show a failure again, with its story");
  again->add_option("bundle", *bundle, "directory that `assay qualify` printed")->required();
  again->add_option("--root", options->root, "where the copy lives meanwhile");
  again->callback([options, bundle, &invocation] {
    invocation.action = [options, bundle] { return replay(*bundle, options->root); };
  });
  verb->callback([options, again, &invocation] {
    if (again->parsed()) return;
    invocation.action = [options] { return run_qualify(*options); };
  });
}

}  // namespace assay::cli
