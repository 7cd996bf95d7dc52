// assay plot: the figures again, from the ledger and those raw records that are there.
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/print_json.h"
#include "harness/cli/verb.h"
#include "harness/report/model.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

struct PlotOptions {
  std::string ledger;
  std::string result;
  std::string machine;
  std::string out;
  bool json = false;
};

void print_figures(const std::string& folder, const plots::Drawn& drawn) {
  nlohmann::json figures = nlohmann::json::array();
  for (const plots::Drawing& figure : drawn.figures) {
    const std::string path = folder + "/" + figure.name;
    figures.push_back({{"name", figure.name},
                       {"title", figure.title},
                       {"svg", path + ".svg"},
                       {"png", path + ".png"},
                       {"source", path + ".gp"},
                       {"data", path + ".dat"}});
  }
  const nlohmann::json all = {
      {"directory", folder}, {"figures", figures}, {"left_out", drawn.notes}};
  print_json(all);
}

Result<ExitStatus> plot(const PlotOptions& options) {
  const Result<std::string> path = report::find_ledger(options.ledger);
  if (!path) return fail(path.error());
  const Result<report::ReportModel> model =
      report::load_report(*path, options.result, options.machine);
  if (!model) return fail(model.error());
  const std::string out = options.out.empty()
                              ? (std::filesystem::path(model->result_directory) / "plots").string()
                              : options.out;
  const Result<plots::Drawn> drawn = report::write_plots(*model, out);
  if (!drawn) return fail(drawn.error());
  if (options.json) {
    print_figures(out, *drawn);
    return ExitStatus::done;
  }
  for (const plots::Drawing& figure : drawn->figures) {
    fmt::print("{}/{}.svg  {}\n", out, figure.name, printable(figure.title));
  }
  for (const std::string& note : drawn->notes) fmt::print("left out: {}\n", printable(note));
  return ExitStatus::done;
}

}  // namespace

void add_plot(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App* verb = app.add_subcommand("plot",
                                      "Draw the figures again: latency curves and time series "
                                      "from the raw records, all others from the ledger");
  verb->add_option("ledger", options->ledger,
                   "a ledger.jsonl, its directory, or the name of an experiment")
      ->required();
  verb->add_option("--result", options->result, "the result to draw (the newest verdict)");
  verb->add_option("--machine", options->machine,
                   "the beginning of a fingerprint, where machines of a merged ledger share a "
                   "result's name");
  verb->add_option("--out", options->out, "directory for the figures (plots/ of the result)");
  verb->add_flag("--json", options->json, "print the figures and their files as JSON");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return plot(*options); }; });
}

}  // namespace assay::cli
