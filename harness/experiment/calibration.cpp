#include "harness/experiment/calibration.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "harness/ledger/ledger.h"
#include "harness/stats/stats.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Provenance and probes are the same for all of a calibration's runs: asked once.
RunServices asked_once(const RunServices& services, const Plan& plan) {
  RunServices once = services;
  const json provenance = services.provenance(plan);
  once.provenance = [provenance](const Plan&) { return provenance; };
  if (services.conditions) {
    const json conditions = services.conditions(plan);
    once.conditions = [conditions](const Plan&) { return conditions; };
  }
  once.flush_warning = [](const std::string&) { return std::string(); };
  return once;
}

/// p of the A/A line; of the control 1 where the delayed arm came out as the better one.
std::optional<double> p_of(const json& line, bool latency) {
  if (!line.is_object() || !line["p"].is_number()) return std::nullopt;
  if (!line.contains("delay_ns")) return line["p"].get<double>();
  const bool worse = (line["ratio"].get<double>() > 1.0) == latency;
  return worse ? line["p"].get<double>() : 1.0;
}

std::size_t below(const std::vector<double>& p, double alpha) {
  return static_cast<std::size_t>(
      std::count_if(p.begin(), p.end(), [alpha](double one) { return one < alpha; }));
}

}  // namespace

json calibration_body(const Plan& plan, const std::vector<double>& a_a,
                      const std::vector<double>& control) {
  const std::size_t found = below(a_a, plan.alpha);
  const auto interval = stats::binomial_interval(std::max<std::size_t>(1, a_a.size()), plan.alpha,
                                                 kCalibrationConfidence);
  const bool ok = !a_a.empty() && found >= interval.low && found <= interval.high;
  const double share =
      a_a.empty() ? 0.0 : 100.0 * static_cast<double>(found) / static_cast<double>(a_a.size());
  std::string sentence = fmt::format(
      "{} of {} A/A experiments ({:.1f} %) found a difference at alpha {:g} with the design {} and "
      "{} {}; {} to {} are to be expected: {}",
      found, a_a.size(), share, plan.alpha, to_string(plan.design), plan.trials,
      unit_of_trials(plan.design), interval.low, interval.high,
      ok ? "the level is held" : "the level is NOT held");
  json body = {{"experiments", a_a.size()},
               {"false_positives", found},
               {"expected", {interval.low, interval.high}},
               {"confidence", kCalibrationConfidence},
               {"alpha", plan.alpha},
               {"design", to_string(plan.design)},
               {"trials", plan.trials},
               {"digest", plan_digest(to_json(plan))},
               {"p", a_a},
               {"ok", ok}};
  if (!control.empty()) {
    const std::size_t seen = below(control, plan.alpha);
    body["control"] = {{"delay_ns", plan.control.delay_ns}, {"seen", seen}, {"p", control}};
    sentence += fmt::format("; a delay of {} ns a call was seen in {} of {}", plan.control.delay_ns,
                            seen, control.size());
  }
  body["sentence"] = sentence;
  return body;
}

Result<CalibrationOutcome> calibrate_on_trials(const Plan& plan, const CalibrationRequest& request,
                                               const RunServices& services,
                                               const std::atomic<bool>& stop) {
  ASSAY_CHECK(!plan.a_a.empty(), "a calibration needs an A/A arm");
  std::error_code error;
  if (fs::exists(fs::path(request.out) / "ledger.jsonl", error)) {
    return fail(Error(ErrorKind::bad_input, "this directory holds a ledger already")
                    .at(request.out)
                    .hint("give --out a new directory"));
  }
  const RunServices once = asked_once(services, plan);
  RunObserver silent;
  std::vector<double> a_a;
  std::vector<double> control;
  CalibrationOutcome outcome;
  for (std::uint64_t number = 0; number < request.experiments; ++number) {
    Plan one = plan;
    one.seed = plan.seed + number * plan.rounds();
    RunRequest run;
    run.out = request.out;
    run.fresh = true;
    const auto done = run_experiment(one, run, once, stop, silent);
    if (!done) return fail(done.error());
    outcome.ledger_path = done->ledger_path;
    if (const auto p = p_of(done->verdict["a_a"], plan.metric.latency)) a_a.push_back(*p);
    if (const auto p = p_of(done->verdict["positive_control"], plan.metric.latency)) {
      control.push_back(*p);
    }
  }
  outcome.body = calibration_body(plan, a_a, control);
  outcome.body["void"] = request.experiments - a_a.size();
  auto ledger = LedgerWriter::open(outcome.ledger_path);
  if (!ledger) return fail(ledger.error());
  const auto hash = ledger->append("calibration", outcome.body);
  if (!hash) return fail(hash.error());
  outcome.head = *hash;
  return outcome;
}

}  // namespace assay
