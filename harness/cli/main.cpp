// The assay command: parses the command line and runs one verb.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/verb.h"

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
  fmt::print(stderr, "assay: {}\n", assay::printable(message));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay;
  CLI::App app{"assay: is it faster, really, and does it keep what it acknowledged?", "assay"};
  app.require_subcommand(1);
  cli::Invocation invocation;
  cli::add_workload(app, invocation);
  cli::add_store(app, invocation);
  cli::add_run(app, invocation);
  cli::add_compare(app, invocation);
  cli::add_plot(app, invocation);
  cli::add_report(app, invocation);
  cli::add_worker(app, invocation);
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
