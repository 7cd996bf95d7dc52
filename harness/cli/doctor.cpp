// assay doctor: what about this machine disturbs a measurement, and, with --apply, a machine that
// is as wanted for as long as one command runs.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/text_flags.h"
#include "harness/cli/text_table.h"
#include "harness/cli/verb.h"
#include "harness/doctor/checks.h"
#include "harness/doctor/settings.h"

namespace assay::cli {
namespace {

using doctor::Finding;
using doctor::State;

struct Flags {
  std::string root;
  std::string plan;  ///< an experiment, whose demands and root are taken
  std::vector<std::string> demanded;
  std::uint64_t watch_ms = 400;
  bool as_json = false;
  bool apply = false;
  std::vector<std::string> command;
};

/// What `assay run` of that experiment would look at: the plan's demands and its root, beside those
/// given here.
Status take_plan(Flags& flags) {
  const auto file = experiment_file(flags.plan);
  if (!file) return fail(file.error());
  const auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  for (const std::string& id : plan->machine_demands) flags.demanded.push_back(id);
  if (flags.root.empty()) flags.root = benchmark_root(*plan);
  fmt::print(stderr, "doctor: the plan {} demands {}\n", printable(plan->name),
             plan->machine_demands.empty()
                 ? std::string("nothing of the machine")
                 : fmt::format("{}", fmt::join(plan->machine_demands, ", ")));
  return {};
}

std::string mark_of(const Finding& finding) {
  if (finding.state == State::fine) return "fine   ";
  if (finding.demanded) return "REFUSED";
  return finding.state == State::unknown ? "unknown" : "differs";
}

/// `text` after `indent` blanks, broken at blanks: what explains is read, also in a pipe.
void print_wrapped(std::string_view text, std::size_t indent) {
  const std::string blanks(indent, ' ');
  fmt::print("{}{}\n", blanks, hanging_text(text, indent, indent, terminal_columns()));
}

void print_findings(const std::vector<Finding>& findings) {
  constexpr std::size_t kIndent = 9;
  for (const Finding& finding : findings) {
    const std::string wanted =
        finding.state == State::fine ? "" : fmt::format("  (wanted: {})", finding.wanted);
    print_hanging(mark_of(finding) + "  ",
                  fmt::format("{}: {}{}{}", finding.title, finding.found, wanted,
                              finding.demanded ? "  [demanded]" : ""),
                  kIndent);
    if (finding.state != State::differs) continue;
    print_wrapped(finding.why, kIndent);
    print_wrapped("-> " + finding.how, kIndent);
  }
  const auto count = [&](State state) {
    return std::ranges::count(findings, state, &Finding::state);
  };
  const std::string counts =
      fmt::format("{} fine, {} not as wanted, {} unknown.", count(State::fine),
                  count(State::differs), count(State::unknown));
  fmt::print("\n");
  print_hanging("",
                counts +
                    " Nothing was changed; --apply sets what it can for as long as a command "
                    "runs.",
                0);
}

/// Runs the command to its end, handing on what people send to us; its status as a shell tells it.
Result<int> run_under(const std::vector<std::string>& command) {
  sigset_t awaited;
  sigset_t before;
  sigemptyset(&awaited);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&awaited, signal);
  ::sigprocmask(SIG_BLOCK, &awaited, &before);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(stdout);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // it must not run on under settings that are gone
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    if (::getppid() == parent) ::execvp(arguments[0], arguments.data());
    const std::string line =
        fmt::format("assay: cannot run {}: {}\n", printable(command[0]), std::strerror(errno));
    std::fputs(line.c_str(), stderr);
    ::_exit(127);
  }
  if (child < 0) return fail(system_error("cannot start the command", errno));
  for (;;) {
    siginfo_t got{};
    const int signal = ::sigwaitinfo(&awaited, &got);
    int status = 0;
    if (signal == SIGCHLD && ::waitpid(child, &status, WNOHANG) == child) {
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    // The terminal has sent its Ctrl-C to the command as well.
    if (signal > 0 && signal != SIGCHLD && got.si_code == SI_USER) ::kill(child, signal);
  }
}

void wait_for_the_end() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&awaited, signal);
  ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
  fmt::print("held until Ctrl-C\n");
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&awaited, &signal);
}

/// Refuses where `unmet` holds a demanded item, which `what` is said of.
Status refuse(const std::vector<Finding>& unmet, std::string_view what) {
  std::vector<std::string> ids;
  for (const Finding& one : unmet) {
    ids.push_back(one.id);
    fmt::print(stderr, "doctor: {} ({}): found {}, wanted {}; {}\n", one.title, one.id,
               printable(one.found), one.wanted, one.how);
  }
  if (ids.empty()) return {};
  return fail(Error(ErrorKind::environment,
                    fmt::format("{}, so that nothing was run: {}", what, fmt::join(ids, ", "))));
}

/// Demanded items that nothing which is set could make as wanted: refused before anything changes.
Status check_what_cannot_be_set(const std::vector<Finding>& findings) {
  std::vector<Finding> unmet = doctor::unmet_demands(findings);
  std::erase_if(unmet, [](const Finding& one) { return !one.remedies.empty(); });
  return refuse(unmet, "demanded, not as wanted and nothing that --apply can set");
}

Result<ExitStatus> hold_settings(const Flags& flags, const doctor::Options& options,
                                 const std::vector<Finding>& findings) {
  ASSAY_TRY(check_what_cannot_be_set(findings));
  std::vector<doctor::Remedy> remedies;
  for (const Finding& finding : findings) {
    remedies.insert(remedies.end(), finding.remedies.begin(), finding.remedies.end());
  }
  Result<doctor::HeldSettings> held =
      doctor::HeldSettings::apply(remedies, doctor::SettingsPlace{});
  if (!held) return fail(held.error());
  for (const doctor::Change& change : held->changes()) {
    fmt::print(stderr, "doctor: {} = {} (was {})\n", change.path, change.applied, change.before);
  }
  if (held->changes().empty()) fmt::print(stderr, "doctor: there is nothing that it could set\n");
  // The look again tells whether it helped; what is held is put back at the end of its scope.
  if (!options.demanded.empty()) {
    ASSAY_TRY(refuse(doctor::unmet_demands(doctor::examine(options)),
                     "demanded and not as wanted after all was set that can be"));
  }
  int status = 0;
  if (flags.command.empty()) {
    wait_for_the_end();
  } else {
    const Result<int> ended = run_under(flags.command);
    if (!ended) return fail(ended.error());
    status = *ended;
  }
  ASSAY_TRY(held->restore());
  if (!held->changes().empty()) fmt::print(stderr, "doctor: everything is as it was\n");
  return static_cast<ExitStatus>(status);
}

Result<ExitStatus> examine(const Flags& given) {
  Flags flags = given;
  if (!flags.plan.empty()) ASSAY_TRY(take_plan(flags));
  if (const auto error = doctor::unknown_id(flags.demanded)) return fail(*error);
  if (!flags.command.empty() && !flags.apply) {
    return fail(Error(ErrorKind::bad_input, "a command is run only with --apply"));
  }
  if (flags.as_json && flags.apply) {
    return fail(Error(ErrorKind::bad_input, "--json and --apply exclude each other"));
  }
  if (std::error_code error;
      !given.root.empty() && !std::filesystem::is_directory(given.root, error)) {
    return fail(Error(ErrorKind::bad_input, "--root is no directory")
                    .at(given.root)
                    .hint("name the directory whose device the trials would write to"));
  }
  const doctor::Leftovers left = doctor::restore_leftovers(doctor::SettingsPlace{});
  for (const std::string& line : left.restored) {
    fmt::print(stderr, "doctor: left by a run that was killed: {}\n", line);
  }
  if (left.trouble) fmt::print(stderr, "doctor: {}\n", printable(left.trouble->message()));
  doctor::Options options;
  options.benchmark_root = flags.root.empty() ? "/var/tmp" : flags.root;
  options.watch = std::chrono::milliseconds(flags.watch_ms);
  options.demanded = flags.demanded;
  const std::vector<Finding> findings = doctor::examine(options);
  if (flags.apply) return hold_settings(flags, options, findings);
  if (flags.as_json) {
    fmt::print("{}\n", doctor::to_json(findings).dump(2, ' ', false,
                                                      nlohmann::json::error_handler_t::replace));
  } else {
    print_findings(findings);
  }
  return doctor::unmet_demands(findings).empty() ? ExitStatus::done : ExitStatus::environment;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand(
      "doctor", "What about this machine disturbs a measurement, and how to set it");
  verb->add_option("--root", flags->root,
                   "the directory whose file system and device are looked at (the plan's, else "
                   "/var/tmp)");
  verb->add_option("--plan", flags->plan,
                   "an experiment: shows what it demands, status 7 where that is not so");
  add_list_flag(*verb, "--demand", flags->demanded,
                "items that must be as wanted, else the status is 7 (comma separated)");
  verb->add_option("--watch-ms", flags->watch_ms, "how long others are watched")
      ->check(whole_number(0, 60'000))
      ->capture_default_str();
  verb->add_flag("--json", flags->as_json, "print what was found as JSON");
  verb->add_flag("--apply", flags->apply,
                 "set what can be set while COMMAND runs (without one: until Ctrl-C), then put it "
                 "back; needs root");
  verb->add_option("command", flags->command, "after --: what to run meanwhile");
  verb->callback([flags, &invocation] {
    invocation.action = [flags]() -> Result<ExitStatus> { return examine(*flags); };
  });
}

}  // namespace assay::cli
