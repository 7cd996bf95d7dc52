// assay report: a recorded result for a terminal, as Markdown, HTML or JSON.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/verb.h"
#include "harness/ledger/named_output.h"
#include "harness/report/index.h"
#include "harness/report/json.h"
#include "harness/report/model.h"
#include "harness/report/terminal.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

struct ReportOptions {
  std::string ledger;
  std::string result;
  std::string machine;
  std::string out;
  std::string format = "terminal";
  bool json = false;
  bool all = false;
};

/// One line of JSON: what was written, and what was left out.
void print_written(const std::vector<std::string>& paths, const std::vector<std::string>& notes) {
  const nlohmann::json all = {{"written", paths}, {"left_out", notes}};
  fmt::print("{}\n", all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<ExitStatus> put(const ReportOptions& options, const std::string& text) {
  if (options.out.empty()) {
    fmt::print("{}", text);
    return ExitStatus::done;
  }
  ASSAY_TRY(write_named_output(options.out, text));
  if (options.json) {
    print_written({options.out}, {});
  } else {
    fmt::print("{}\n", options.out);
  }
  return ExitStatus::done;
}

Result<ExitStatus> put_page(const ReportOptions& options, const report::ReportModel& model) {
  const std::string directory = options.out.empty() ? model.result_directory : options.out;
  const Result<report::WrittenReport> written = report::write_report(model, directory);
  if (!written) return fail(written.error());
  std::vector<std::string> paths = written->plots;
  paths.insert(paths.begin(), options.format == "html" ? written->html : written->markdown);
  if (options.json) {
    print_written(paths, written->notes);
    return ExitStatus::done;
  }
  for (const std::string& path : paths) fmt::print("{}\n", path);
  for (const std::string& note : written->notes) fmt::print("left out: {}\n", printable(note));
  return ExitStatus::done;
}

/// One page over every ledger that is meant: a name, or all that are here.
Result<ExitStatus> put_index(const ReportOptions& options) {
  std::vector<std::string> names;
  if (!options.ledger.empty()) names.push_back(options.ledger);
  const auto ledgers = find_ledgers(names);
  if (!ledgers) return fail(ledgers.error());
  if (!options.out.empty()) ASSAY_TRY(check_named_directory(options.out));
  const auto written = report::write_index(*ledgers, options.out.empty() ? "." : options.out);
  if (!written) return fail(written.error());
  if (options.json) {
    print_written({written->html}, written->notes);
    return ExitStatus::done;
  }
  fmt::print("{}\n{} results, {} with a report beside them\n", written->html, written->results,
             written->linked);
  for (const std::string& note : written->notes) fmt::print("left out: {}\n", printable(note));
  return ExitStatus::done;
}

Result<ExitStatus> show(const ReportOptions& options) {
  if (options.all) return put_index(options);
  if (options.ledger.empty()) {
    return fail(Error(ErrorKind::bad_input, "a ledger is missing")
                    .hint("name one, or --all writes a page over all of them"));
  }
  const Result<std::string> path = report::find_ledger(options.ledger);
  if (!path) return fail(path.error());
  const Result<report::ReportModel> model =
      report::load_report(*path, options.result, options.machine);
  if (!model) return fail(model.error());
  const bool as_page = options.format == "markdown" || options.format == "html";
  if (as_page) return put_page(options, *model);
  if (options.json || options.format == "json") return put(options, report::json_report(*model));
  const bool colour = options.out.empty() && wants_colour();
  return put(options, report::terminal_report(*model, colour, terminal_columns()));
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "Show a recorded result");
  verb->add_option("ledger", options->ledger,
                   "a ledger.jsonl, its directory, or the name of an experiment");
  verb->add_flag(
      "--all", options->all,
      "write index.html, one page over the results of all ledgers here (or below LEDGER), "
      "into --out or here");
  verb->add_option("--format", options->format,
                   "terminal, markdown, html or json; markdown and html write report.md, "
                   "report.html and plots/")
      ->check(CLI::IsMember({"terminal", "markdown", "html", "json"}));
  verb->add_flag("--json", options->json,
                 "as --format json; with markdown or html the paths of what was written");
  verb->add_option("--result", options->result, "the result to show (the newest verdict)");
  verb->add_option("--machine", options->machine,
                   "the beginning of a fingerprint, where machines of a merged ledger share a "
                   "result's name");
  verb->add_option("--out", options->out,
                   "file (terminal, json) or directory (markdown, html) to write");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return show(*options); }; });
}

}  // namespace assay::cli
