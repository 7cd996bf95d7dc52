// assay plan: what a plan says once every default is filled in, and what its trials can see.
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/experiment/power_forecast.h"
#include "harness/experiment/registration.h"
#include "harness/ledger/ledger.h"
#include "harness/stats/trials_text.h"

namespace assay::cli {
namespace {

struct PlanOptions {
  std::string experiment;
  bool power = false;
  std::optional<double> effect;
  std::optional<double> cv_percent;
  bool json = false;
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
  if (options.effect) plan.effect_percent = (*options.effect - 1.0) * 100.0;
  std::optional<Scatter> scatter;
  if (options.cv_percent) {
    scatter = Scatter{deviation_of_cv(*options.cv_percent / 100.0), "--cv-percent"};
  } else {
    const nlohmann::json provenance = RunServices::real(command_line()).provenance(plan);
    scatter = recorded_scatter(plan, *records, provenance.value("fingerprint", ""));
  }
  const nlohmann::json power = power_before(plan, scatter);
  const std::string sentence =
      power_sentence(plan, power, options.effect ? "asked for with --effect" : "of the plan");
  if (options.json) {
    print_json({{"schema", 1},
                {"experiment", plan.name},
                {"unit", unit_of_trials(plan.design)},
                {"effect_percent", plan.effect_percent},
                {"power", power},
                {"sentence", sentence}});
    return {};
  }
  print_hanging("", sentence, 0);
  const nlohmann::json cases = power.value("cases", nlohmann::json::array({power}));
  for (const nlohmann::json& one : cases) {
    const std::string where =
        one.contains("cv_percent")
            ? fmt::format(" at a scatter of {:g} %", one["cv_percent"].get<double>())
            : std::string();
    fmt::print("an effect of {:.4g}x takes {} {}{}\n", 1.0 + plan.effect_percent / 100.0,
               stats::trials_text(one["trials_needed"].get<std::uint64_t>()),
               unit_of_trials(plan.design), where);
  }
  return {};
}

/// Whether the plan is what is registered, in words. A registration of an earlier assay has the
/// digest of the form that plans had then; the keys that came later are filled in.
std::string registration_state(const nlohmann::json& canonical,
                               const std::optional<Registration>& registration) {
  if (!registration) return "not registered";
  const auto changed = differences(registration->experiment, canonical);
  if (!changed.empty()) return "NOT as it is registered: " + difference_text(changed, 6);
  const std::string since = fmt::format("registered at {}", registration->time);
  if (registration->digest == plan_digest(canonical)) return since;
  return fmt::format(
      "{} under digest {}, in the form that plans had then; with the keys that came later filled "
      "in "
      "it is this plan",
      since, registration->digest);
}

nlohmann::json plan_json(const nlohmann::json& canonical,
                         const std::optional<Registration>& registration) {
  nlohmann::json all = {{"schema", 1},
                        {"plan", canonical},
                        {"digest", plan_digest(canonical)},
                        {"registration", nullptr},
                        {"state", registration_state(canonical, registration)}};
  if (registration) {
    all["registration"] = {{"time", registration->time},
                           {"by", registration->by},
                           {"digest", registration->digest},
                           {"record", registration->hash},
                           {"differences", differences(registration->experiment, canonical)}};
  }
  return all;
}

Result<ExitStatus> show_plan(const PlanOptions& options) {
  const auto file = experiment_file(options.experiment);
  if (!file) return fail(file.error());
  const auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  if (options.effect && *options.effect <= 1.0) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("--effect {:g} is no effect: it is a ratio", *options.effect))
                    .hint("--effect 1.02 asks for a difference of 2 %"));
  }
  if (options.power || options.effect || options.cv_percent) {
    ASSAY_TRY(show_power(options, *plan, *file));
    return ExitStatus::done;
  }
  const nlohmann::json canonical = to_json(*plan);
  const auto records = records_of(*file, *plan);
  if (!records) return fail(records.error());
  const auto registration = registration_of(*records);
  if (options.json) {
    print_json(plan_json(canonical, registration));
    return ExitStatus::done;
  }
  fmt::print("{}\n", canonical.dump(2));
  const std::string told = fmt::format("digest {}\n{}\n", plan_digest(canonical),
                                       printable(registration_state(canonical, registration)));
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
                   "a scatter to assume instead of the ledger's, for --power")
      ->check(number(0.001, 1'000.0));
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return show_plan(*options); }; });
}

}  // namespace assay::cli
