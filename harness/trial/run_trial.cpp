#include "harness/trial/cpu_pins.h"
#include "harness/trial/trial.h"
#include "harness/trial/trial_run.h"

namespace assay {

Result<nlohmann::json> run_trial(const TrialRequest& request, const std::atomic<bool>& stop,
                                 const OnProgress& progress) {
  const ParentElsewhere elsewhere(request.workload);
  Result<std::unique_ptr<TrialRun>> made =
      TrialRun::make(request, stop, progress, elsewhere.before());
  if (!made) return fail(made.error());
  TrialRun& trial = **made;
  for (std::size_t number = 0; number < trial.segments().size() && !trial.over(); ++number)
    ASSAY_TRY(trial.run_segment(number));
  ASSAY_TRY(trial.validate());
  return trial.finish();
}

}  // namespace assay
