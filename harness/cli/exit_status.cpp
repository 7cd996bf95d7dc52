#include "harness/cli/exit_status.h"

namespace assay::cli {

ExitStatus exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input:
      return ExitStatus::bad_input;
    case ErrorKind::environment:
      return ExitStatus::environment;
    case ErrorKind::store:
      return ExitStatus::store_failed;
    case ErrorKind::wrong_contents:
      return ExitStatus::wrong_contents;
    case ErrorKind::unsupported:
      return ExitStatus::unsupported;
    case ErrorKind::child:
      return ExitStatus::store_failed;
    case ErrorKind::ledger:
      return ExitStatus::ledger_damaged;
    case ErrorKind::plan_changed:
      return ExitStatus::plan_changed;
    case ErrorKind::void_experiment:
      return ExitStatus::void_experiment;
    case ErrorKind::interrupted:
      return ExitStatus::interrupted;
    case ErrorKind::internal:
      return ExitStatus::internal_error;
  }
  return ExitStatus::internal_error;
}

}  // namespace assay::cli
