// Declared experiments at small scale, one after another: whether each still runs, in minutes.
//
// What is recorded goes into a folder of its own (runs/small-TIME, or --out): ledgers and results
// of registered experiments are neither read nor written. small.json in it says which experiments
// are done, after each; a run that was stopped goes on from there. One thread.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/verb.h"

namespace assay::cli {

struct SmallRunOptions {
  std::vector<std::string> files;  ///< experiment.toml of each, in the order of the run
  std::string out;                 ///< folder instead of runs/small-TIME
  bool json = false;               ///< print small.json instead of the table
  bool no_report = false;
  bool fresh = false;  ///< begin again even where a stopped run could go on
};

/// Done when every experiment ran to its end, whatever its verdict: two trials decide nothing.
/// wrong_contents when an arm was disqualified, else the status of the first experiment that could
/// not be run; the others are run all the same. interrupted: the same command goes on.
[[nodiscard]] Result<ExitStatus> run_small(const SmallRunOptions& options);

}  // namespace assay::cli
