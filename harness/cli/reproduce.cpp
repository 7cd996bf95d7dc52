// assay reproduce: builds the plan of a recorded result back from its ledger alone, says what
// differs here, runs it as a new exploratory result, and says whether the earlier one is confirmed.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_run.h"
#include "harness/cli/ledger_verb.h"
#include "harness/cli/terminal_width.h"
#include "harness/experiment/plan_record.h"
#include "harness/experiment/reproduction.h"
#include "harness/ledger/difference.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct ReproduceOptions {
  std::string record;
  std::vector<std::string> ledgers;
  std::string root;
  bool only_look = false;
  OutputOptions output;
};

/// The earlier result: judged, with its plan in the form that this assay writes.
Result<LedgerResult> earlier_result(const ReproduceOptions& options) {
  auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers && !options.ledgers.empty()) return fail(ledgers.error());
  auto found = find_result(options.record, ledgers ? *ledgers : std::vector<std::string>());
  if (!found) return fail(found.error());
  const auto refused = [&](const std::string& why) {
    return fail(Error(ErrorKind::bad_input, fmt::format("result {} {}", found->result, why)));
  };
  if (!found->plan.is_object() || !found->plan.contains("experiment")) {
    return refused("has no plan record: there is nothing to run");
  }
  if (!found->verdict.is_object()) return refused("has no verdict: there is nothing to confirm");
  if (found->outcome == "void") return refused("is void: there is nothing to confirm");
  found->plan["experiment"] = migrated_plan(found->plan["experiment"]);
  return found;
}

/// This machine, this binary and the plan as it would run here, in the form of a result.
LedgerResult as_here(const LedgerResult& earlier, const Plan& plan, const RunServices& services) {
  LedgerResult here = earlier;
  here.plan["experiment"] = to_json(plan);
  here.plan["provenance"] = services.provenance(plan);
  if (services.conditions) here.plan["provenance"]["conditions"] = services.conditions(plan);
  return here;
}

/// What differs, without figures and what is read anew at every run.
std::vector<Difference> what_differs(const LedgerResult& earlier, const LedgerResult& now) {
  std::vector<Difference> all = differences(earlier, now);
  std::erase_if(all, [](const Difference& one) { return one.reading || one.section == "verdict"; });
  return all;
}

json to_json(const std::vector<Difference>& all) {
  json list = json::array();
  for (const Difference& one : all) {
    list.push_back(
        {{"section", one.section}, {"what", one.what}, {"earlier", one.a}, {"now", one.b}});
  }
  return list;
}

void print_what_differs(const std::vector<Difference>& all, const std::vector<std::string>& parts) {
  for (const std::string& section : parts) {
    std::vector<std::vector<std::string>> rows{{section, "EARLIER", "HERE"}};
    for (const Difference& one : all) {
      if (one.section == section) rows.push_back({one.what, one.a, one.b});
    }
    if (rows.size() == 1) {
      fmt::print("{}: the same\n", section);
    } else {
      print_table(rows);
    }
  }
  fmt::print("\n");
}

void print_confirmation(const LedgerResult& earlier, const RunOutcome& outcome,
                        const json& confirmation) {
  fmt::print("\n{} (earlier: {}, {}; now: {})\n",
             printable(confirmation["sentence"].get<std::string>()), printable(earlier.result),
             short_time(earlier.ended), printable(outcome.result));
  for (const json& one : confirmation["comparisons"]) {
    const bool counted = one["counted"] == true;
    const char* mark = !counted ? "." : one["confirmed"] == true ? "=" : "!";
    fmt::print("  {} {}\n", mark, printable(one["sentence"].get<std::string>()));
  }
  fmt::print("ledger  {}\n", outcome.ledger_path);
}

Result<LedgerResult> new_result(const RunOutcome& outcome) {
  const auto all = read_results(outcome.ledger_path);
  if (!all) return fail(all.error());
  const auto chosen = choose_result(*all, outcome.result, "");
  if (!chosen) return fail(chosen.error());
  return **chosen;
}

Result<ExitStatus> reproduce(const ReproduceOptions& options) {
  const auto earlier = earlier_result(options);
  if (!earlier) return fail(earlier.error());
  auto plan = plan_from_record(earlier->plan["experiment"], plan_environment());
  if (!plan) return fail(plan.error());
  if (!options.root.empty()) plan->root = options.root;
  const bool quiet = options.output.json;
  const auto before =
      what_differs(*earlier, as_here(*earlier, *plan, RunServices::real(command_line())));
  if (!quiet) {
    fmt::print("{} of {}, {}\n", printable(earlier->result), printable(earlier->experiment),
               short_time(earlier->ended));
    print_what_differs(before, {"plan", "binary", "environment"});
  }
  if (options.only_look) {
    if (quiet) {
      fmt::print("{}\n", json{{"earlier", earlier->result}, {"differences", to_json(before)}}.dump(
                             2, ' ', false, json::error_handler_t::replace));
    }
    return ExitStatus::done;
  }
  const auto outcome = run_plan(*plan, RunRequest{}, options.output);
  if (!outcome) return fail(outcome.error());
  show_outcome(*outcome, options.output);
  const auto now = new_result(*outcome);
  if (!now) return fail(now.error());
  const auto after = what_differs(*earlier, *now);
  const json confirmation = confirm(earlier->verdict, outcome->verdict);
  if (quiet) {
    const json all = {
        {"earlier", {{"result", earlier->result}, {"verdict", earlier->verdict_hash}}},
        {"now",
         {{"result", outcome->result},
          {"verdict", outcome->head},
          {"ledger", outcome->ledger_path}}},
        {"differences", to_json(after)},
        {"confirmation", confirmation}};
    fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    fmt::print("\n");
    print_what_differs(after, {"settings"});
    print_confirmation(*earlier, *outcome, confirmation);
  }
  if (outcome->end == RunEnd::void_experiment) return ExitStatus::void_experiment;
  return confirmation["confirmed"] == true ? ExitStatus::done : ExitStatus::rejected;
}

}  // namespace

void add_reproduce(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* verb = app.add_subcommand(
      "reproduce",
      "Run a recorded result's plan again and say whether it is confirmed; status 3 if not");
  verb->add_option("record", options->record,
                   "a record of the result: LEDGER, LEDGER:RESULT, LEDGER:LINE, the beginning of a "
                   "hash (6 digits or more), or the result's name")
      ->required();
  verb->add_option("--in", options->ledgers,
                   "ledgers to look in for a hash or name (default: all below ledgers/ and runs/)");
  verb->add_option("--root", options->root, "benchmark root instead of the recorded one");
  verb->add_flag("--look", options->only_look, "say what differs here and run nothing");
  add_output_flags(*verb, options->output);
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return reproduce(*options); }; });
}

}  // namespace assay::cli
