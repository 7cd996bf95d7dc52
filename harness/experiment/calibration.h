// The error rate of the whole pipeline, measured: many A/A experiments, and how many of them
// "found" a difference between an arm and itself. That count must lie inside the binomial interval
// of alpha. With a positive control also how often the injected delay was seen.
//
// Every experiment is a run of its own (own seed, own order, own result) in one ledger, which ends
// with a record of kind "calibration" (harness/FORMATS.md). One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "harness/experiment/plan.h"
#include "harness/experiment/runner.h"

namespace assay {

/// Level at which a count of false positives is held against alpha: one calibration in a thousand
/// is refuted by chance.
inline constexpr double kCalibrationConfidence = 0.999;

/// The body of a calibration record from the p-values of A/A comparisons. `control`: p-values of
/// the comparisons with the delayed arm (1 where it came out the other way), or none.
[[nodiscard]] nlohmann::json calibration_body(const Plan& plan, const std::vector<double>& a_a,
                                              const std::vector<double>& control);

struct CalibrationRequest {
  std::uint64_t experiments = 200;
  std::string out;  ///< new directory, or that of the same calibration, which is gone on with
};

struct CalibrationOutcome {
  nlohmann::json body;
  std::string ledger_path;
  std::string head;
};

/// Runs `plan`, which has an A/A arm, `experiments` times with other seeds; those that the ledger
/// in `out` holds already are taken from there. `observer` is told of all of them as one run.
/// Errors: bad_input for a ledger of something else, of another build or machine, or of a
/// calibration that is finished; interrupted; those of run_experiment(). Void experiments are
/// counted, not judged.
[[nodiscard]] Result<CalibrationOutcome> calibrate_on_trials(const Plan& plan,
                                                             const CalibrationRequest& request,
                                                             const RunServices& services,
                                                             const std::atomic<bool>& stop,
                                                             RunObserver& observer);

}  // namespace assay
