#include "harness/experiment/calibration.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "harness/experiment/result_place.h"
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

/// Hands on what the trials say, not where each experiment begins and ends: to whom it is told, all
/// of them are one run.
class WholeCalibration : public RunObserver {
 public:
  explicit WholeCalibration(RunObserver& told) : told_(told) {}
  void trial_begins(const std::string& arm, std::uint64_t trials) override {
    told_.trial_begins(arm, trials);
  }
  void trial_progress(const Progress& progress) override { told_.trial_progress(progress); }
  void trial_ends(const std::string& arm, std::uint64_t trials, const std::string& status,
                  const std::string& reason) override {
    told_.trial_ends(arm, trials, status, reason);
  }

 private:
  RunObserver& told_;
};

Plan experiment_of(const Plan& plan, std::uint64_t number) {
  Plan one = plan;
  one.seed = plan.seed + number * plan.rounds();
  return one;
}

/// What the directory's ledger holds of this calibration.
struct Recorded {
  std::map<std::string, json> verdicts;  ///< by the digest of their plan
  std::uint64_t trials = 0;  ///< those that count, also of an experiment without verdict
};

Result<Recorded> recorded_part(const Plan& plan, const CalibrationRequest& request,
                               const json& provenance) {
  Recorded recorded;
  const std::string path = (fs::path(request.out) / "ledger.jsonl").string();
  std::error_code error;
  if (!fs::exists(path, error)) return recorded;
  const auto ledger = LedgerWriter::open(path);
  if (!ledger) return fail(ledger.error());
  std::set<std::string> ours;
  for (std::uint64_t number = 0; number < request.experiments; ++number) {
    ours.insert(plan_digest(to_json(experiment_of(plan, number))));
  }
  const auto refused = [&](const std::string& why) {
    return fail(Error(ErrorKind::bad_input, why).at(path).hint("give --out a new directory"));
  };
  std::map<std::string, std::string> digests;
  for (const LedgerRecord& record : ledger->records()) {
    const std::string result = record.body.value("result", "");
    if (record.kind == "calibration") return refused("this calibration is finished");
    if (record.kind == "plan") {
      const std::string digest = record.body.value("digest", "");
      if (!ours.contains(digest)) {
        return refused("this ledger holds a plan that is none of this calibration");
      }
      const RunIdentity now = identity_of(digest, provenance);
      const RunIdentity then = identity_of(digest, record.body.value("provenance", json()));
      if (now.binary_sha256 != then.binary_sha256 || now.libraries != then.libraries ||
          now.fingerprint != then.fingerprint) {
        return refused("this calibration was begun by another build or on another machine");
      }
      digests[result] = digest;
    } else if (record.kind == "verdict") {
      recorded.verdicts[digests[result]] = record.body;
    } else if (record.kind == "trial" && record.body.value("status", "") != "void") {
      ++recorded.trials;
    }
  }
  return recorded;
}

/// How to go on after an experiment that ended early.
Error stopped(const Error& error, std::uint64_t done, const CalibrationRequest& request,
              const std::string& ledger_path) {
  if (error.kind() != ErrorKind::interrupted) return error;
  return Error(ErrorKind::interrupted,
               fmt::format("stopped after {} of {} experiments; every trial is recorded in {}",
                           done, request.experiments, ledger_path))
      .hint("run the same command again to go on from there");
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
                                               const std::atomic<bool>& stop,
                                               RunObserver& observer) {
  ASSAY_CHECK(!plan.a_a.empty(), "a calibration needs an A/A arm");
  const RunServices once = asked_once(services, plan);
  const auto recorded = recorded_part(plan, request, once.provenance(plan));
  if (!recorded) return fail(recorded.error());
  const std::uint64_t trials = plan.arms.size() * plan.rounds();
  WholeCalibration whole(observer);
  observer.run_begins("calibrate", recorded->trials, request.experiments * trials);
  std::vector<double> a_a;
  std::vector<double> control;
  CalibrationOutcome outcome;
  outcome.ledger_path = (fs::path(request.out) / "ledger.jsonl").string();
  for (std::uint64_t number = 0; number < request.experiments; ++number) {
    const Plan one = experiment_of(plan, number);
    json verdict;
    const auto found = recorded->verdicts.find(plan_digest(to_json(one)));
    if (found != recorded->verdicts.end()) {
      verdict = found->second;
    } else {
      RunRequest run;
      run.out = request.out;  // one that was stopped in its midst is gone on with
      const auto done = run_experiment(one, run, once, stop, whole);
      if (!done) {
        observer.run_ends();
        return fail(stopped(done.error(), number, request, outcome.ledger_path));
      }
      outcome.ledger_path = done->ledger_path;
      verdict = done->verdict;
    }
    if (const auto p = p_of(verdict["a_a"], plan.metric.latency)) a_a.push_back(*p);
    if (const auto p = p_of(verdict["positive_control"], plan.metric.latency)) {
      control.push_back(*p);
    }
  }
  observer.run_ends();
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
