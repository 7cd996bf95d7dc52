// The assay command: parses the command line and runs one verb.
#include <cstdio>

#include <fmt/format.h>

#include "harness/cli/verb.h"

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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(cli::ExitStatus::bad_input);
  }
  const Result<cli::ExitStatus> status = invocation.action();
  if (!status) {
    fmt::print(stderr, "assay: {}\n", status.error().message());
    return static_cast<int>(cli::exit_status(status.error().kind()));
  }
  return static_cast<int>(*status);
}
