#include "harness/cli/experiment_run.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "adapters/conformance/isolated.h"
#include "adapters/registry.h"
#include "harness/cli/terminal_width.h"
#include "harness/experiment/google_benchmark_json.h"
#include "harness/experiment/stop_signal.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/named_output.h"
#include "harness/report/model.h"
#include "harness/report/terminal.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

/// The plan record's provenance, which Google Benchmark's context is made from.
nlohmann::json provenance_of(const RunOutcome& outcome) {
  const auto contents = read_ledger(outcome.ledger_path);
  if (contents) {
    for (const LedgerRecord& record : contents->records) {
      if (record.kind == "plan" && record.body.value("result", "") == outcome.result) {
        return record.body.value("provenance", nlohmann::json::object());
      }
    }
  }
  return nlohmann::json::object();
}

/// Table and paths. What was measured is recorded already, so that trouble with the report is
/// told and nothing more.
Status show(const RunOutcome& outcome, const OutputOptions& options) {
  const auto model = report::load_report(outcome.ledger_path, outcome.result);
  if (!model) return fail(model.error());
  if (!options.json) {
    fmt::print("{}", report::terminal_report(*model, wants_colour(), terminal_columns()));
  }
  if (options.no_report) return {};
  const auto written = report::write_report(*model, outcome.directory);
  if (!written) return fail(written.error());
  if (options.json) return {};
  fmt::print("\nreport  {}\n        {}\n", written->html, written->markdown);
  if (!written->plots.empty()) {
    fmt::print("plots   {} ({} figures)\n", folder_of(written->plots.front()),
               written->plots.size());
  }
  for (const std::string& note : written->notes) fmt::print("left out: {}\n", printable(note));
  return {};
}

/// Loads the store of that name in a child process and asks what every plan asks.
Status try_loading(std::string_view name) {
  Isolation isolation;
  isolation.subject = std::string(name);
  const auto tried = run_isolated(isolation, [name](const OnStep&) -> Result<std::string> {
    const Result<const Driver*> driver = find_driver(name);
    if (!driver) return fail(driver.error());
    const Capabilities declared = (*driver)->capabilities();
    for (const DurabilityClass one : declared.durability) (void)(*driver)->settings(one);
    return (*driver)->name() + " " + (*driver)->version();
  });
  if (!tried) return fail(tried.error());
  return {};
}

/// A file that is written last is refused first, unless it goes into a folder that the run makes.
Status check_output(const OutputOptions& options) {
  const std::string& path = options.google_benchmark_json;
  if (path.empty()) return {};
  const auto plain = [](const std::string& given) {
    return std::filesystem::absolute(given).lexically_normal().string();
  };
  if (!options.out.empty() && plain(path).starts_with(plain(options.out))) return {};
  return check_named_output(path);
}

}  // namespace

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

PlanEnvironment plan_environment() {
  PlanEnvironment environment = PlanEnvironment::real();
  environment.find_store = [](std::string_view name) -> Result<const Driver*> {
    const bool plug_in = name.find('/') != std::string_view::npos || name.ends_with(".so");
    if (plug_in) ASSAY_TRY(try_loading(name));
    return find_driver(name);
  };
  return environment;
}

void add_output_flags(CLI::App& verb, OutputOptions& options) {
  verb.add_option("--out", options.out, "directory for the result instead of the usual one");
  verb.add_flag("--json", options.json, "print the verdict as JSON and nothing else");
  verb.add_flag("--no-report", options.no_report, "write no report and no plots");
  verb.add_flag("--new", options.fresh, "begin a new result even if one can be resumed");
  verb.add_option("--google-benchmark-json", options.google_benchmark_json,
                  "also write the values in Google Benchmark's JSON format to this file");
}

ExitStatus status_of(RunEnd end) {
  switch (end) {
    case RunEnd::judged:
      return ExitStatus::done;
    case RunEnd::void_experiment:
      return ExitStatus::void_experiment;
    case RunEnd::disqualified:
      return ExitStatus::wrong_contents;
    case RunEnd::rejected:
      return ExitStatus::rejected;
    case RunEnd::regression:
      return ExitStatus::regression;
  }
  return ExitStatus::internal_error;
}

Result<RunOutcome> run_plan(const Plan& plan, RunRequest request, const OutputOptions& options) {
  request.out = options.out;
  request.fresh = options.fresh;
  ASSAY_TRY(check_output(options));
  const StopOnSignal stop;
  ProgressLine progress = ProgressLine::standard_error();
  return run_experiment(plan, request, RunServices::real(command_line()), stop.flag(), progress);
}

void show_outcome(const RunOutcome& outcome, const OutputOptions& options) {
  const Status shown = show(outcome, options);
  if (shown) return;
  const std::string told =
      fmt::format("assay: the verdict is recorded, but its report failed: {}\n",
                  printable(shown.error().message()));
  std::fputs(told.c_str(), stderr);
}

Result<ExitStatus> run_and_show(const Plan& plan, RunRequest request,
                                const OutputOptions& options) {
  const auto outcome = run_plan(plan, std::move(request), options);
  if (!outcome) return fail(outcome.error());
  if (options.json) fmt::print("{}\n", outcome->verdict.dump(2));
  show_outcome(*outcome, options);
  if (!options.json) fmt::print("ledger  {}\n", outcome->ledger_path);
  // Last: a file that cannot be written must not hide the verdict.
  if (!options.google_benchmark_json.empty()) {
    const auto text = google_benchmark_json(outcome->verdict, provenance_of(*outcome)).dump(2);
    ASSAY_TRY(write_named_output(options.google_benchmark_json, text + "\n"));
  }
  return status_of(outcome->end);
}

}  // namespace assay::cli
