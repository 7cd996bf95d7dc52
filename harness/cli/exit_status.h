// Exit statuses of the assay command. They are documented in the README; never renumber.
#pragma once

#include "adapters/result.h"

namespace assay::cli {

enum class ExitStatus : int {
  done = 0,             ///< done as asked; of a registered run: done as registered
  internal_error = 1,   ///< a defect of assay
  bad_input = 2,        ///< a flag, file, workload, plan, setting or directory was refused
  rejected = 3,         ///< a registered hypothesis was rejected
  regression = 4,       ///< a registered arm left the corridor of its accepted baseline
  void_experiment = 5,  ///< the experiment may not be judged
  plan_changed = 6,     ///< the plan differs from the registered one
  environment = 7,      ///< the machine lacks what the plan demands
  wrong_contents = 8,   ///< an arm was disqualified: its store lied, failed or crashed
  store_failed = 9,     ///< a store failed, or a child process died
  ledger_damaged = 10,  ///< a ledger or a raw result cannot be trusted
  unsupported = 11,     ///< the store declares that it cannot do this
  harness_error = 12,   ///< a qualification whose controls show that its verdict means nothing
  interrupted = 130,    ///< stopped by the user; running again resumes
};

[[nodiscard]] ExitStatus exit_status(ErrorKind kind);

}  // namespace assay::cli
