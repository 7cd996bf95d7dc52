// assay report: a recorded result for a terminal, as Markdown, HTML or JSON.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/cli/verb.h"
#include "harness/ledger/durable_file.h"
#include "harness/report/json.h"
#include "harness/report/model.h"
#include "harness/report/terminal.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

struct ReportOptions {
  std::string ledger;
  std::string result;
  std::string out;
  std::string format = "terminal";
};

/// Width of the terminal; without one, COLUMNS or 100.
unsigned terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  return given > 0 ? static_cast<unsigned>(given) : 100;
}

Result<ExitStatus> put(const ReportOptions& options, const std::string& text) {
  if (options.out.empty()) {
    fmt::print("{}", text);
    return ExitStatus::done;
  }
  ASSAY_TRY(write_file_durably(options.out, text));
  fmt::print("{}\n", options.out);
  return ExitStatus::done;
}

Result<ExitStatus> put_page(const ReportOptions& options, const report::ReportModel& model) {
  const std::string directory = options.out.empty() ? model.result_directory : options.out;
  const Result<report::WrittenReport> written = report::write_report(model, directory);
  if (!written) return fail(written.error());
  fmt::print("{}\n", options.format == "html" ? written->html : written->markdown);
  for (const std::string& path : written->plots) fmt::print("{}\n", path);
  for (const std::string& note : written->notes) fmt::print("left out: {}\n", note);
  return ExitStatus::done;
}

Result<ExitStatus> show(const ReportOptions& options) {
  const Result<std::string> path = report::find_ledger(options.ledger);
  if (!path) return fail(path.error());
  const Result<report::ReportModel> model = report::load_report(*path, options.result);
  if (!model) return fail(model.error());
  if (options.format == "json") return put(options, report::json_report(*model));
  if (options.format != "terminal") return put_page(options, *model);
  const bool colour =
      options.out.empty() && ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return put(options, report::terminal_report(*model, colour, terminal_columns()));
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "Show a recorded result");
  verb->add_option("ledger", options->ledger,
                   "a ledger.jsonl, its directory, or the name of an experiment")
      ->required();
  verb->add_option("--format", options->format,
                   "terminal, markdown, html or json; markdown and html write report.md, "
                   "report.html and plots/")
      ->check(CLI::IsMember({"terminal", "markdown", "html", "json"}));
  verb->add_option("--result", options->result, "the result to show (the newest verdict)");
  verb->add_option("--out", options->out,
                   "file (terminal, json) or directory (markdown, html) to write");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return show(*options); }; });
}

}  // namespace assay::cli
