// assay gate: the newest result of a ledger against an accepted one, for continuous integration:
// Markdown for people, JUnit for the server, an exit status for the job. Measures nothing.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/print_json.h"
#include "harness/cli/verb.h"
#include "harness/experiment/baseline.h"
#include "harness/experiment/gate.h"
#include "harness/experiment/plan_record.h"
#include "harness/ledger/junit.h"
#include "harness/ledger/named_output.h"
#include "harness/report/model.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct GateOptions {
  std::string ledger;
  std::string baseline;
  GateRequest request;
  bool any_machine = false;
  bool strict = false;
  bool json = false;
  std::string markdown;
  std::string junit;
};

/// The baseline with what must fit the newer result.
struct Past {
  Baseline baseline;
  std::string metric;
  std::string machine;
  std::string time;
};

void add_values(const json& values, std::vector<double>& into) {
  for (const json& value : values) {
    if (value.is_number() && value.get<double>() > 0.0) into.push_back(value.get<double>());
  }
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Past of_accept(const LedgerRecord& record) {
  return {.baseline = baseline_of(record),
          .metric = text(record.body, "metric"),
          .machine = text(record.body, "fingerprint"),
          .time = record.time};
}

Result<Past> of_result(const LedgerResult& result) {
  if (!result.verdict.is_object() || result.outcome == "void" || result.outcome == "disqualified") {
    return fail(Error(ErrorKind::bad_input, fmt::format("{} is {}: it can be nobody's baseline",
                                                        result.result, result.outcome))
                    .hint("--baseline takes a result that was judged"));
  }
  Past past;
  past.baseline.result = result.result;
  past.baseline.record = result.verdict_hash;
  past.metric = text(result.verdict, "metric");
  past.machine = result.machine;
  past.time = result.ended;
  for (const json& row : result.verdict.value("rows", json::array())) {
    add_values(row.value("values", json::array()), past.baseline.values[text(row, "arm")]);
  }
  return past;
}

Result<Past> newest_accepted(const std::string& ledger, const std::string& machine) {
  std::vector<LedgerRecord> accepted;
  const auto end = scan_ledger(ledger, [&](LedgerRecord&& record) -> Status {
    if (record.kind == "accept") accepted.push_back(std::move(record));
    return {};
  });
  if (!end) return fail(end.error());
  if (const LedgerRecord* const found = newest_acceptance(accepted, machine))
    return of_accept(*found);
  return fail(Error(ErrorKind::bad_input, "no result is accepted yet")
                  .at(ledger)
                  .hint("`assay accept NAME` accepts one; --baseline also takes a result, the "
                        "beginning of a record's hash, or another ledger"));
}

Result<Past> find_past(const std::string& reference, const std::string& ledger,
                       const std::string& machine) {
  if (reference == "accepted") return newest_accepted(ledger, machine);
  const auto record = find_record(reference, {ledger});
  if (record && record->record.kind == "accept") return of_accept(record->record);
  const auto result = find_result(reference, {ledger});
  if (!result) return fail(result.error());
  return of_result(*result);
}

struct Judged {
  const LedgerResult* newest = nullptr;
  Past past;
  GateVerdict verdict;
  bool other_machine = false;
};

std::string_view word_of(GateEnd end) {
  if (end == GateEnd::within) return "within the corridor";
  return end == GateEnd::regression ? "REGRESSION" : "undecided";
}

std::string markdown_cell(std::string value) {
  for (std::size_t at = value.find('|'); at != std::string::npos; at = value.find('|', at + 2)) {
    value.replace(at, 1, "\\|");
  }
  return printable(value);
}

std::string figure(const json& value) {
  return value.is_number() ? fmt::format("{:.3g}", value.get<double>()) : std::string("-");
}

std::string table_line(const json& one) {
  const json interval = one.value("interval", json());
  const bool bounded = interval.is_array() && interval.size() == 2;
  const std::string claim = text(one, "claim");
  const char* verdict = text(one, "verdict") == "void" ? "no baseline"
                        : claim == "refuted"           ? "**REGRESSION**"
                        : claim == "shown"             ? "within"
                                                       : "undecided";
  const json past = one.value("baseline", json::object());
  return fmt::format("| {} | {} | {} to {} | {}x | {} | {} / {} | {} |\n",
                     markdown_cell(text(one, "a")), figure(one.value("ratio", json())),
                     bounded ? figure(interval[0]) : "-", bounded ? figure(interval[1]) : "-",
                     figure(one.value("corridor", json())), figure(one.value("p_adjusted", json())),
                     one.value("n", json()).is_number() ? one["n"].dump() : "-",
                     past.contains("n") ? past["n"].dump() : "-", verdict);
}

std::string markdown_of(const Judged& judged) {
  const LedgerResult& newest = *judged.newest;
  std::string out =
      fmt::format("## {}: {}\n\n", markdown_cell(newest.experiment), word_of(judged.verdict.end));
  if (!newest.question.empty()) out += markdown_cell(newest.question) + "\n\n";
  out +=
      "| arm | ratio to baseline | interval | corridor | adjusted p | n now / then | verdict |\n"
      "|---|---:|---:|---:|---:|---:|---|\n";
  for (const json& one : judged.verdict.comparisons) out += table_line(one);
  out += "\n";
  for (const json& one : judged.verdict.comparisons) {
    out += fmt::format("- {}\n", markdown_cell(text(one, "sentence")));
  }
  out += fmt::format("\nNow: `{}` ({}, {}), record `{:.16}`, machine `{:.12}`. ", newest.result,
                     newest.status, newest.ended, newest.verdict_hash, newest.machine);
  out += fmt::format("Baseline: `{}` ({}), record `{:.16}`, machine `{:.12}`.\n",
                     judged.past.baseline.result, judged.past.time, judged.past.baseline.record,
                     judged.past.machine);
  if (judged.other_machine) {
    out += "\n**Measured on two machines**: a difference may be the machine's (`--any-machine`).\n";
  }
  if (judged.verdict.end == GateEnd::undecided) {
    out +=
        "\nUndecided: the scatter is too wide to tell; more trials narrow it "
        "(`assay plan --power`).\n";
  }
  return out;
}

/// The newest result with the gate's comparisons in place of its own.
std::string junit_of(const Judged& judged, const std::string& ledger) {
  LedgerResults all;
  all.path = ledger;
  LedgerResult one = *judged.newest;
  one.outcome = judged.verdict.end == GateEnd::regression ? "regression" : "judged";
  one.verdict["comparisons"] = judged.verdict.comparisons;
  for (json& comparison : one.verdict["comparisons"]) {
    comparison["gate"] = true;
    comparison["b"] = judged.past.baseline.result;
  }
  all.results.push_back(std::move(one));
  return junit_xml({all});
}

json json_of(const Judged& judged) {
  const char* ends[] = {"within", "undecided", "regression"};
  return {{"end", ends[static_cast<std::size_t>(judged.verdict.end)]},
          {"result", judged.newest->result},
          {"record", judged.newest->verdict_hash},
          {"baseline",
           {{"result", judged.past.baseline.result}, {"record", judged.past.baseline.record}}},
          {"other_machine", judged.other_machine},
          {"comparisons", judged.verdict.comparisons}};
}

Status check_fits(const GateOptions& options, const LedgerResult& newest, const Past& past) {
  if (past.baseline.record == newest.verdict_hash || past.baseline.result == newest.result) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("the newest result, {}, is the baseline itself", newest.result))
                    .hint("run the experiment again first"));
  }
  const std::string metric = text(newest.verdict, "metric");
  if (metric != past.metric) {
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("the newest result is of {}, the baseline of {}", metric, past.metric))
            .hint("the baseline must be a result of the same experiment"));
  }
  if (past.machine == newest.machine || options.any_machine) return {};
  return fail(Error(ErrorKind::environment,
                    fmt::format("the baseline was measured on another machine: {:.12} -> {:.12}",
                                past.machine, newest.machine))
                  .hint("measure both on one machine, or give --any-machine, best together with "
                        "--relative-to raw-file, which takes out what the machines differ in"));
}

Status write_out(const GateOptions& options, const Judged& judged, const std::string& ledger) {
  const std::string markdown = markdown_of(judged);
  if (!options.junit.empty()) {
    ASSAY_TRY(write_named_output(options.junit, junit_of(judged, ledger)));
  }
  if (!options.markdown.empty()) ASSAY_TRY(write_named_output(options.markdown, markdown));
  if (options.json) {
    print_json(json_of(judged));
  } else if (options.markdown.empty()) {
    fmt::print("{}", markdown);
  }
  return {};
}

Result<ExitStatus> gate(const GateOptions& options) {
  const auto ledger = report::find_ledger(options.ledger);
  if (!ledger) return fail(ledger.error());
  const auto results = read_results(*ledger);
  if (!results) return fail(results.error());
  const auto newest = choose_result(*results, "", "");
  if (!newest) return fail(newest.error());
  const std::string& outcome = (*newest)->outcome;
  if (outcome == "void" || outcome == "disqualified" || !(*newest)->verdict.is_object()) {
    const ErrorKind kind = outcome == "void"           ? ErrorKind::void_experiment
                           : outcome == "disqualified" ? ErrorKind::wrong_contents
                                                       : ErrorKind::bad_input;
    return fail(Error(kind, fmt::format("the newest result, {}, is {}: it cannot be judged",
                                        (*newest)->result, outcome))
                    .at(*ledger)
                    .hint("`assay report` says why"));
  }
  const auto plan = judging_plan((*newest)->plan.value("experiment", json::object()));
  if (!plan) return fail(plan.error());
  Judged judged;
  judged.newest = *newest;
  auto past = find_past(options.baseline, *ledger, (*newest)->machine);
  if (!past) return fail(past.error());
  judged.past = std::move(*past);
  ASSAY_TRY(check_fits(options, **newest, judged.past));
  judged.other_machine = judged.past.machine != (*newest)->machine;
  auto verdict = judge_gate(*plan, (*newest)->verdict, judged.past.baseline, options.request);
  if (!verdict) return fail(verdict.error());
  judged.verdict = std::move(*verdict);
  ASSAY_TRY(write_out(options, judged, *ledger));
  if (judged.verdict.end == GateEnd::regression) return ExitStatus::regression;
  const bool open = judged.verdict.end == GateEnd::undecided;
  return open && options.strict ? ExitStatus::rejected : ExitStatus::done;
}

}  // namespace

void add_gate(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* verb = app.add_subcommand(
      "gate", "Hold the newest result of a ledger against an accepted one; status 4 on regression");
  verb->add_option("ledger", options->ledger,
                   "a ledger.jsonl, its directory, or the name of an experiment")
      ->required();
  verb->add_option("--baseline", options->baseline,
                   "accepted (the newest `assay accept` of that machine), a result, the beginning "
                   "of a record's "
                   "hash, LEDGER or LEDGER:RESULT")
      ->required();
  verb->add_option("--corridor", options->request.corridor,
                   "how many times worse an arm may be (default: the plan's, else 1.2)")
      ->check(CLI::Range(1.0, 1000.0));
  verb->add_option("--relative-to", options->request.relative_to,
                   "compare shares of this reference (raw-file, null): takes the machine's drift "
                   "out");
  verb->add_flag("--any-machine", options->any_machine,
                 "a baseline of another machine is no error; the summary says so");
  verb->add_flag("--strict", options->strict, "status 3 where the scatter is too wide to tell");
  verb->add_option("--markdown", options->markdown, "write the summary there, not to the output");
  verb->add_option("--junit", options->junit, "also write JUnit XML to this file");
  verb->add_flag("--json", options->json, "print the comparisons as JSON instead of the summary");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return gate(*options); }; });
}

}  // namespace assay::cli
