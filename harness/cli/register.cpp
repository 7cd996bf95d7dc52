// assay register: fixes the plan of an experiment in its ledger before the first sample.
// assay accept: names a result of that ledger the baseline that later ones are held against.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_place.h"
#include "harness/cli/experiment_run.h"
#include "harness/cli/print_json.h"
#include "harness/experiment/baseline.h"
#include "harness/experiment/registration.h"
#include "harness/ledger/ledger.h"

namespace assay::cli {
namespace {

struct RegisterOptions {
  std::string experiment;
  bool json = false;
};

Result<ExitStatus> register_plan(const RegisterOptions& options) {
  const auto file = experiment_file(options.experiment);
  if (!file) return fail(file.error());
  const auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  const auto ledger = registered_ledger(*file, *plan);
  if (!ledger) return fail(ledger.error());
  const auto request = request_of(*file, *plan);
  const RunServices services = RunServices::real(command_line());
  const auto done = register_experiment(*plan, request->tree, services.provenance(*plan));
  if (!done) return fail(done.error());
  if (options.json) {
    print_json({{"schema", 1},
                {"experiment", plan->name},
                {"is_new", done->is_new},
                {"time", done->registration.time},
                {"by", done->registration.by},
                {"digest", done->registration.digest},
                {"record", done->registration.hash},
                {"ledger", done->ledger_path},
                {"head", done->head},
                {"notes", plan->notes}});
    return ExitStatus::done;
  }
  for (const std::string& note : plan->notes) fmt::print("note    {}\n", printable(note));
  fmt::print("{}  {} at {} ({})\nplan    {}\nrecord  {}\nledger  {}\nhead    {}\n", plan->name,
             done->is_new ? "registered" : "registered before,", done->registration.time,
             done->registration.by, done->registration.digest, done->registration.hash,
             done->ledger_path, done->head);
  return ExitStatus::done;
}

struct AcceptOptions {
  std::string experiment;
  std::string result;
  std::string note;
  bool json = false;
};

Result<ExitStatus> accept(const AcceptOptions& options) {
  const auto file = experiment_file(options.experiment);
  if (!file) return fail(file.error());
  const auto plan = load_plan(*file, plan_environment());
  if (!plan) return fail(plan.error());
  const auto path = registered_ledger(*file, *plan);
  if (!path) return fail(path.error());
  const auto before = read_ledger(*path);  // a missing one is not made
  if (!before) return fail(before.error());
  auto ledger = LedgerWriter::open(*path);
  if (!ledger) return fail(ledger.error());
  auto body = acceptance_of(ledger->records(), options.result, options.note, *path);
  if (!body) return fail(body.error());
  const std::string result = body->at("result").get<std::string>();
  const auto hash = ledger->append("accept", std::move(*body));
  if (!hash) return fail(hash.error());
  if (options.json) {
    print_json({{"schema", 1},
                {"experiment", plan->name},
                {"result", result},
                {"record", *hash},
                {"ledger", *path},
                {"head", *hash}});
    return ExitStatus::done;
  }
  fmt::print("{}  {} is the baseline from now on\nrecord  {}\nledger  {}\n", plan->name, result,
             *hash, *path);
  return ExitStatus::done;
}

}  // namespace

void add_register(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<RegisterOptions>();
  CLI::App* verb = app.add_subcommand(
      "register", "Fix an experiment's plan in its ledger before its first sample");
  verb->add_option("experiment", options->experiment,
                   "ledgers/NAME/experiment.toml, or NAME of ledgers/NAME/experiment.toml")
      ->required();
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options, &invocation] {
    invocation.action = [options] { return register_plan(*options); };
  });
}

void add_accept(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<AcceptOptions>();
  CLI::App* verb = app.add_subcommand(
      "accept", "Make a result the baseline that hypotheses of kind regression are held against");
  verb->add_option("experiment", options->experiment, "NAME of ledgers/NAME/experiment.toml")
      ->required();
  verb->add_option("--result", options->result, "a result with a verdict; default: the newest");
  verb->add_option("--note", options->note, "why, for the record");
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return accept(*options); }; });
}

}  // namespace assay::cli
