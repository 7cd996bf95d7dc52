// The assay command: parses the command line and runs one verb.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/text_flags.h"
#include "harness/cli/verb.h"
#include "harness/trial/trial.h"

namespace {

/// CLI11 says of an unknown verb only that one is missing; say which word, and the nearest verb.
assay::Status check_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string given = argv[1];
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == given) return {};
    if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
  }
  const std::string near = assay::nearest_name(given, verbs);
  return assay::fail(
      assay::Error(assay::ErrorKind::bad_input, fmt::format("there is no verb '{}'", given))
          .hint(near.empty() ? fmt::format("valid: {}", fmt::join(verbs, ", "))
                             : fmt::format("did you mean '{}'?", near)));
}

/// The one place where a message leaves: what was given must not drive the terminal.
void print_message(const std::string& message) {
  const std::string line = fmt::format("assay: {}\n", assay::printable(message));
  std::fputs(line.c_str(), stderr);  // standard error that is gone must not change the status
}

int run_command(int argc, char** argv) {
  using namespace assay;
  CLI::App app{"assay: is it faster, really, and does it keep what it acknowledged?", "assay"};
  app.require_subcommand(1);
  cli::Invocation invocation;
  cli::add_workload(app, invocation);
  cli::add_store(app, invocation);
  cli::add_register(app, invocation);
  cli::add_plan(app, invocation);
  cli::add_run(app, invocation);
  cli::add_accept(app, invocation);
  cli::add_reproduce(app, invocation);
  cli::add_history(app, invocation);
  cli::add_gate(app, invocation);
  cli::add_calibrate(app, invocation);
  cli::add_compare(app, invocation);
  cli::add_qualify(app, invocation);
  cli::add_soak(app, invocation);
  cli::add_qualify_worker(app, invocation);
  cli::add_plot(app, invocation);
  cli::add_report(app, invocation);
  cli::add_ledger(app, invocation);
  cli::add_doctor(app, invocation);
  cli::add_serve(app, invocation);
  cli::refuse_empty_texts(app);
  if (const Status known = check_verb(app, argc, argv); !known) {
    print_message(known.error().message());
    return static_cast<int>(cli::ExitStatus::bad_input);
  }
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("assay: {} (--help lists what there is)\n", printable(error.what()));
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(cli::ExitStatus::bad_input);
  }
  const Result<cli::ExitStatus> status = invocation.action();
  if (!status) {
    print_message(status.error().message());
    return static_cast<int>(cli::exit_status(status.error().kind()));
  }
  return static_cast<int>(*status);
}

/// What the process has open from the start, so that no file of ours takes the number of a closed
/// stream and gets what is printed. Opened the wrong way round: using a closed stream still fails.
void open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != stream) ::close(opened);
  }
}

/// The end of a command whose results could not be written (`reason`: errno, 0 when not known).
/// A reader that went away has what it wanted: that ends as quietly as if SIGPIPE were not ignored.
int output_failed(int status, int reason, std::string_view verb) {
  if (reason == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  const std::string what = "cannot write to standard output";
  assay::Error error = reason == 0 ? assay::Error(assay::ErrorKind::environment, what)
                                   : assay::system_error(what, reason);
  if (verb == "run" || verb == "compare") {
    error.hint("what was measured is in the ledger; `assay report` shows it");
  }
  print_message(error.message());
  const int worse = static_cast<int>(assay::cli::ExitStatus::environment);
  return status == 0 ? worse : status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  // `assay worker REQUEST-FILE`, not for people: the child process of a trial. It is told here
  // because the parser of all the other verbs costs every trial its start.
  const bool worker = verb == "worker" && argc == 3;
  open_missing_streams();
  // A terminal or a pipe that goes away must not end a run: writing fails instead. The child of a
  // trial dies with its parent, as its store's exceptions are the store's crash.
  std::signal(SIGPIPE, worker || verb == "qualify-worker" ? SIG_DFL : SIG_IGN);
  int status = 0;
  int reason = 0;
  try {
    status = worker ? assay::worker_main(argv[2]) : run_command(argc, argv);
  } catch (const std::exception& error) {
    if (worker) throw;
    if (const auto* failed = dynamic_cast<const std::system_error*>(&error)) {
      reason = failed->code().value();
    }
    if (std::ferror(stdout) == 0) {
      print_message(
          fmt::format("stopped by what it did not expect, a defect of assay: {}", error.what()));
      return static_cast<int>(assay::cli::ExitStatus::internal_error);
    }
  }
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool failed_now = std::fflush(stdout) != 0;
  if (failed_now && reason == 0) reason = errno;
  return failed_before || failed_now ? output_failed(status, reason, verb) : status;
}
