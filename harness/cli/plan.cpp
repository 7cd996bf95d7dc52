// assay plan: what a plan says once every default is filled in, and what its trials can see.
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"
#include "harness/experiment/power_forecast.h"
#include "harness/experiment/registration.h"
#include "harness/ledger/ledger.h"

namespace assay::cli {
namespace {

struct PlanOptions {
  std::string experiment;
  bool power = false;
  double effect = 0.0;
  double cv_percent = 0.0;
};

/// The records of the experiment's ledger; none where it has no ledger yet.
Result<std::vector<LedgerRecord>> records_of(const std::string& file, const Plan& plan) {
  const auto path = registered_ledger(file, plan);
  if (!path) return std::vector<LedgerRecord>();
  auto contents = read_ledger(*path);
  if (contents) return std::move(contents->records);
  if (contents.error().kind() == ErrorKind::bad_input) return std::vector<LedgerRecord>();
  return fail(contents.error());
}

Status show_power(const PlanOptions& options, Plan plan, const std::string& file) {
  const auto records = records_of(file, plan);
  if (!records) return fail(records.error());
  if (options.effect != 0.0) plan.effect_percent = (options.effect - 1.0) * 100.0;
  std::optional<Scatter> scatter;
  if (options.cv_percent > 0.0) {
    scatter = Scatter{deviation_of_cv(options.cv_percent / 100.0), "--cv-percent"};
  } else {
    const nlohmann::json provenance = RunServices::real(command_line()).provenance(plan);
    scatter = recorded_scatter(plan, *records, provenance.value("fingerprint", ""));
  }
  const nlohmann::json power = power_before(plan, scatter);
  fmt::print("{}\n", power_sentence(plan, power));
  const nlohmann::json cases = power.value("cases", nlohmann::json::array({power}));
  for (const nlohmann::json& one : cases) {
    const std::string where =
        one.contains("cv_percent")
            ? fmt::format(" at a scatter of {:g} %", one["cv_percent"].get<double>())
            : std::string();
    fmt::print("an effect of {:.4g}x takes {} {}{}\n", 1.0 + plan.effect_percent / 100.0,
               one["trials_needed"].get<std::uint64_t>(), unit_of_trials(plan.design), where);
  }
  return {};
}

Result<ExitStatus> show_plan(const PlanOptions& options) {
  const auto file = experiment_file(options.experiment);
  if (!file) return fail(file.error());
  const auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  if (options.effect != 0.0 && options.effect <= 1.0) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("--effect {:g} is no effect: it is a ratio", options.effect))
                    .hint("--effect 1.02 asks for a difference of 2 %"));
  }
  if (options.power || options.effect != 0.0) {
    ASSAY_TRY(show_power(options, *plan, *file));
    return ExitStatus::done;
  }
  const nlohmann::json canonical = to_json(*plan);
  fmt::print("{}\n", canonical.dump(2));
  std::string state = "not registered";
  const auto records = records_of(*file, *plan);
  if (!records) return fail(records.error());
  if (const auto registration = registration_of(*records)) {
    const auto changed = differences(registration->experiment, canonical);
    state = changed.empty() ? fmt::format("registered at {}", registration->time)
                            : "NOT as it is registered: " + difference_text(changed, 6);
  }
  const std::string told = fmt::format("digest {}\n{}\n", plan_digest(canonical), printable(state));
  std::fputs(told.c_str(), stderr);
  return ExitStatus::done;
}

}  // namespace

void add_plan(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand(
      "plan", "Show an experiment's plan with every default, or what its trials can see");
  verb->add_option("experiment", options->experiment,
                   "experiment.toml, or NAME of ledgers/NAME/experiment.toml")
      ->required();
  verb->add_flag("--power", options->power,
                 "how small a difference the trials see, and how many a wanted effect takes, from "
                 "the scatter in the ledger");
  verb->add_option("--effect", options->effect,
                   "the wanted effect as a ratio (1.02 = 2 %) instead of the plan's effect_percent")
      ->check(number(0.0, 1'000.0));
  verb->add_option("--cv-percent", options->cv_percent,
                   "a scatter to assume instead of the ledger's")
      ->check(number(0.0, 1'000.0));
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return show_plan(*options); }; });
}

}  // namespace assay::cli
