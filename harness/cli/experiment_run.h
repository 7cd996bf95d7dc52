// What `assay run` and `assay compare` have in common: flags about output, running a plan, showing
// its verdict.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "harness/cli/verb.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/runner.h"

namespace assay::cli {

struct OutputOptions {
  std::string out;
  bool json = false;
  bool no_report = false;
  bool fresh = false;
  std::string google_benchmark_json;
};

void add_output_flags(CLI::App& verb, OutputOptions& options);

/// This process's arguments, for the record.
[[nodiscard]] std::vector<std::string> command_line();

/// This machine, with plug-ins that are loaded in a child process first: one that crashes, exits or
/// hangs while it is loaded is an error. No thread may run yet.
[[nodiscard]] PlanEnvironment plan_environment();

/// Runs the plan with progress on standard error.
[[nodiscard]] Result<RunOutcome> run_plan(const Plan& plan, RunRequest request,
                                          const OutputOptions& options);
/// Writes the report and shows the table and the paths on standard output (with --json nothing is
/// shown). What was measured is recorded already, so that trouble is told and nothing more.
void show_outcome(const RunOutcome& outcome, const OutputOptions& options);
/// The exit status of a run that ended so.
[[nodiscard]] ExitStatus status_of(RunEnd end);

/// Runs the plan with progress on standard error, writes the report, and shows the table and the
/// paths (or the verdict's JSON alone) on standard output.
[[nodiscard]] Result<ExitStatus> run_and_show(const Plan& plan, RunRequest request,
                                              const OutputOptions& options);

}  // namespace assay::cli
