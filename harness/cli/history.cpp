// assay history: one experiment over its results and their commits, and where it changed first.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/verb.h"
#include "harness/experiment/history.h"
#include "harness/experiment/plan_record.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct HistoryOptions {
  std::string experiment;
  std::vector<std::string> ledgers;
  double corridor = 1.1;
  std::string relative_to;
  std::string machine;
  std::string plots;
  bool json = false;
};

std::string text_at(const json& tree, const char* pointer) {
  const json::json_pointer at(pointer);
  if (!tree.is_object() || !tree.contains(at)) return {};
  return tree.at(at).is_string() ? tree.at(at).get<std::string>() : std::string();
}

HistoryPoint point_of(const LedgerResult& result) {
  HistoryPoint point;
  point.result = result.result;
  point.time = result.ended;
  point.record = result.verdict_hash;
  point.commit = text_at(result.plan, "/provenance/source/commit");
  for (const json& row : result.verdict.value("rows", json::array())) {
    for (const json& value : row.value("values", json::array())) {
      if (!value.is_number() || value.get<double>() <= 0.0) continue;
      point.values[row.value("arm", "")].push_back(value.get<double>());
    }
  }
  return point;
}

/// Judged results of the experiment in all the ledgers, oldest first; copies of one record once.
Result<std::vector<LedgerResult>> results_of(const HistoryOptions& options) {
  const auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers) return fail(ledgers.error());
  std::vector<LedgerResult> found;
  std::vector<std::string> names;
  for (const std::string& ledger : *ledgers) {
    auto all = read_results(ledger);
    if (!all) return fail(all.error());
    for (LedgerResult& one : all->results) {
      names.push_back(one.experiment);
      const bool copy = std::any_of(found.begin(), found.end(), [&](const LedgerResult& other) {
        return other.result == one.result && other.machine == one.machine;
      });
      const bool judged = one.verdict.is_object() && one.outcome != "void";
      if (one.experiment == options.experiment && judged && !copy) found.push_back(std::move(one));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.ended < b.ended; });
  if (!found.empty()) return found;
  const std::string near = nearest_name(options.experiment, names);
  Error error(ErrorKind::bad_input,
              fmt::format("no ledger holds a judged result of '{}'", options.experiment));
  if (!near.empty() && near != options.experiment) {
    error.hint(fmt::format("did you mean '{}'?", near));
  }
  return fail(error);
}

/// Marks the result that the newest acceptance of its ledgers names, on the machine that is shown.
Status mark_accepted(const HistoryOptions& options, const std::vector<LedgerResult>& results,
                     std::vector<HistoryPoint>& points) {
  const auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers) return fail(ledgers.error());
  std::string time;
  std::string accepted;
  for (const std::string& ledger : *ledgers) {
    const auto end = scan_ledger(ledger, [&](LedgerRecord&& record) -> Status {
      if (record.kind != "accept" || record.time < time) return {};
      const std::string verdict = text_at(record.body, "/verdict");
      const bool ours = std::any_of(results.begin(), results.end(), [&](const LedgerResult& one) {
        return one.verdict_hash == verdict;
      });
      if (!ours) return {};
      time = record.time;
      accepted = verdict;
      return {};
    });
    if (!end) return fail(end.error());
  }
  for (HistoryPoint& point : points) {
    point.accepted = !accepted.empty() && point.record == accepted;
  }
  return {};
}

/// What is drawn: the same figures that are printed.
plots::FigureSet figures_of(const HistoryOptions& options, const LedgerResult& newest,
                            const Plan& plan, const json& arms) {
  plots::FigureSet set;
  set.stamp.experiment = options.experiment;
  set.stamp.workload = text_at(newest.verdict, "/workload");
  set.stamp.status = newest.status;
  set.stamp.date = newest.ended.substr(0, 10);
  set.stamp.hash = newest.verdict_hash;
  set.stamp.n = plan.trials;
  set.stamp.of_n = "a result";
  set.stamp.confidence = 1.0 - plan.alpha;
  set.stamp.mixed_durability = newest.verdict.value("mixed_durability", false);
  set.metric = text_at(newest.verdict, "/metric");
  set.unit = text_at(newest.verdict, "/unit");
  for (const json& arm : arms) {
    plots::History history;
    history.arm = arm["arm"].get<std::string>();
    history.store = arm["store"].get<std::string>();
    history.what = options.relative_to.empty() ? set.metric : "share of " + options.relative_to;
    history.corridor = options.corridor;
    for (const json& point : arm["points"]) {
      history.points.push_back({point["result"], point["commit"],
                                point["time"].get<std::string>().substr(0, 10), point["record"],
                                point["n"], point["value"], point["low"], point["high"],
                                point["changed"], point["accepted"]});
    }
    set.histories.push_back(std::move(history));
  }
  return set;
}

/// Those that can be held against the newest: its metric, its machine (or the one asked for).
std::size_t keep_comparable(const HistoryOptions& options, std::vector<LedgerResult>& results) {
  const std::string metric = text_at(results.back().verdict, "/metric");
  const std::string machine = options.machine.empty() ? results.back().machine : options.machine;
  return std::erase_if(results, [&](const LedgerResult& one) {
    return text_at(one.verdict, "/metric") != metric || !one.machine.starts_with(machine);
  });
}

std::string number(const json& value) {
  return value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : std::string("-");
}

void print_arm(const json& arm, const std::string& unit) {
  fmt::print("\n{}\n", printable(arm["arm"].get<std::string>()));
  std::vector<std::vector<std::string>> rows{
      {"RESULT", "COMMIT", "N", unit, "TO THE LEVEL BEFORE", "ADJUSTED P", ""}};
  for (const json& one : arm["points"]) {
    const std::string commit = one["commit"].get<std::string>();
    rows.push_back({one["result"].get<std::string>(), commit.empty() ? "?" : commit.substr(0, 12),
                    one["n"].dump(), number(one["value"]),
                    one["ratio"].is_null()
                        ? "-"
                        : fmt::format("{}x ({} to {})", number(one["ratio"]),
                                      number(one["interval"][0]), number(one["interval"][1])),
                    number(one["p_adjusted"]),
                    one["changed"] == true    ? "CHANGED"
                    : one["accepted"] == true ? "accepted"
                                              : ""});
  }
  print_table(rows);
  for (const json& change : arm["changes"]) {
    fmt::print("  {}\n", printable(change.get<std::string>()));
  }
}

std::vector<std::string> plot_files(const HistoryOptions& options, const plots::Drawn& drawn) {
  std::vector<std::string> files;
  for (const plots::Drawing& figure : drawn.figures) {
    files.push_back(fmt::format("{}/{}.svg", options.plots, figure.name));
  }
  return files;
}

Result<ExitStatus> history(const HistoryOptions& options) {
  auto results = results_of(options);
  if (!results) return fail(results.error());
  const std::size_t left_out = keep_comparable(options, *results);
  if (results->empty()) {
    return fail(ErrorKind::bad_input,
                fmt::format("no result is of the machine '{}'", options.machine));
  }
  const auto plan = judging_plan(results->back().plan.value("experiment", json::object()));
  if (!plan) return fail(plan.error());
  std::vector<HistoryPoint> points;
  for (const LedgerResult& one : *results) points.push_back(point_of(one));
  ASSAY_TRY(mark_accepted(options, *results, points));
  const json arms = history_of(points, *plan, options.corridor, options.relative_to);
  plots::Drawn drawn;
  if (!options.plots.empty()) {
    auto made =
        report::write_figures(figures_of(options, results->back(), *plan, arms), options.plots);
    if (!made) return fail(made.error());
    drawn = std::move(*made);
  }
  if (options.json) {
    const json all = {{"experiment", options.experiment},    {"corridor", options.corridor},
                      {"relative_to", options.relative_to},  {"left_out", left_out},
                      {"plots", plot_files(options, drawn)}, {"arms", arms}};
    print_json(all);
    return ExitStatus::done;
  }
  fmt::print("{}: {} results of machine {:.12}, a change is one out of {:g}x\n",
             printable(options.experiment), points.size(), results->back().machine,
             options.corridor);
  const std::string unit = options.relative_to.empty() ? text_at(results->back().verdict, "/unit")
                                                       : "SHARE OF " + options.relative_to;
  bool any = false;
  for (const json& arm : arms) {
    print_arm(arm, unit);
    any = any || !arm["changes"].empty();
  }
  fmt::print("\n{}\n",
             any ? "Commits between two results were not measured." : "No change was shown.");
  for (const std::string& file : plot_files(options, drawn)) fmt::print("{}\n", file);
  for (const std::string& note : drawn.notes) fmt::print("left out: {}\n", printable(note));
  if (left_out > 0) {
    fmt::print("{} of another machine or metric left out (--machine chooses)\n",
               left_out == 1 ? "1 result is" : fmt::format("{} results are", left_out));
  }
  return ExitStatus::done;
}

}  // namespace

void add_history(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* verb = app.add_subcommand(
      "history", "One experiment over its results and commits, and the first that changed it");
  verb->add_option("experiment", options->experiment, "its name, as the plans have it")->required();
  verb->add_option("ledgers", options->ledgers,
                   "ledgers to look in (default: all below ledgers/ and runs/)");
  verb->add_option("--corridor", options->corridor,
                   "how many times better or worse is no change yet: sessions differ")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  verb->add_option("--relative-to", options->relative_to,
                   "compare shares of this reference (raw-file, null)");
  verb->add_option("--machine", options->machine,
                   "the beginning of a fingerprint (default: the newest result's)");
  verb->add_option("--plots", options->plots,
                   "draw it as well: a picture an arm, into this directory");
  verb->add_flag("--json", options->json, "print it as JSON");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return history(*options); }; });
}

}  // namespace assay::cli
