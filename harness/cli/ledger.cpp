// assay ledger verify|list|show|diff|merge|query|export: what ledgers hold, and whether they can be
// trusted. Only merge and export --out write, and never over a ledger.
#include "harness/cli/verb.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/ledger_verb.h"

namespace assay::cli {
namespace {

constexpr const char* kLedgers =
    "ledgers: files, folders with ledgers below them, or names of experiments (default: all below "
    "ledgers/ and runs/)";
constexpr const char* kRecord =
    "LEDGER:LINE, LEDGER:HASH, a beginning of a hash (6 digits or more) or the name of a result";

using Options = std::shared_ptr<LedgerOptions>;

CLI::App* add_verify(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand(
      "verify", "Find changed, removed, inserted or moved records and raw files; status 10 if any");
  verb->add_option("ledgers", options->ledgers, kLedgers);
  verb->add_option(
          "--head", options->heads,
          "a head that was kept elsewhere: fails unless it is a record here, which shows a "
          "cut tail or a ledger that was written anew; may be repeated")
      ->expected(1)
      ->take_all();
  verb->add_option("--raw", options->raw,
                   "raw records: all must be there and fit; those present must fit; none is read")
      ->check(CLI::IsMember({"all", "present", "none"}))
      ->capture_default_str();
  return verb;
}

CLI::App* add_list(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand("list", "The results: when, where, what was found");
  verb->add_option("ledgers", options->ledgers, kLedgers);
  verb->add_flag("--brief", options->brief, "one line a result, without its sentences");
  return verb;
}

CLI::App* add_show(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand("show", "One record, every value of it");
  verb->add_option("record", options->records, kRecord)->required()->expected(1);
  verb->add_option("--ledger", options->ledgers, kLedgers)->expected(1)->take_all();
  return verb;
}

CLI::App* add_diff(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand(
      "diff", "What two results differ in: plan, binary, settings, environment, verdict");
  verb->add_option("results", options->records,
                   std::string("two of: a ledger (its newest result), ") + kRecord)
      ->required()
      ->expected(2);
  verb->add_option("--ledger", options->ledgers, kLedgers)->expected(1)->take_all();
  verb->add_flag("--all", options->all,
                 "also what is read anew at every run (free memory, load, boot)");
  return verb;
}

CLI::App* add_merge(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand(
      "merge", "Make one new ledger of several, each record with its old hash and machine");
  verb->add_option("ledgers", options->ledgers, "two ledgers or more: files or names")->required();
  verb->add_option("--out", options->out, "the new ledger; never written over one")->required();
  return verb;
}

CLI::App* add_query(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand("query", "Ask in SQL (SQLite); ledgers are only read");
  verb->add_option("sql", options->sql, "a SELECT over the tables that --tables lists");
  verb->add_option("ledgers", options->ledgers, kLedgers);
  verb->add_flag("--tables", options->tables, "list tables and columns");
  verb->add_flag("--csv", options->csv, "print CSV");
  return verb;
}

CLI::App* add_export(CLI::App& ledger, const Options& options) {
  CLI::App* verb = ledger.add_subcommand("export", "Hand results to other tools");
  verb->add_option("ledgers", options->ledgers, kLedgers);
  verb->add_option("--format", options->format,
                   "csv (a table of `query`), json (records), google-benchmark (one result) or "
                   "junit (comparisons as test cases)")
      ->required()
      ->check(CLI::IsMember({"csv", "json", "google-benchmark", "junit"}));
  verb->add_option("--table", options->table, "for csv: the table (rows)");
  verb->add_option("--result", options->result,
                   "only this result (google-benchmark: default the newest)");
  verb->add_option("--machine", options->machine,
                   "only results of this machine, a beginning of its fingerprint");
  verb->add_option("--out", options->out, "file to write (default: standard output)");
  return verb;
}

/// The message for a subverb that is missing or misspelt.
Result<ExitStatus> no_subverb(const CLI::App& ledger, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::App* one : ledger.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  const std::string near = nearest_name(given, names);
  return fail(Error(ErrorKind::bad_input,
                    given.empty() ? std::string("`assay ledger` takes a verb of its own")
                                  : fmt::format("there is no verb '{}' of `assay ledger`", given))
                  .hint(near.empty() ? fmt::format("valid: {}", fmt::join(names, ", "))
                                     : fmt::format("did you mean '{}'?", near)));
}

}  // namespace

void add_ledger(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<LedgerOptions>();
  CLI::App* const ledger = app.add_subcommand("ledger", "Verify, list, compare and query ledgers");
  ledger->require_subcommand(0, 1);
  ledger->allow_extras();  // of a word that is no subverb, CLI11 would not say which it is
  ledger->callback([ledger, &invocation] {
    if (!ledger->get_subcommands().empty()) return;
    const auto words = ledger->remaining();
    invocation.action = [given = words.empty() ? std::string() : words.front(), ledger] {
      return no_subverb(*ledger, given);
    };
  });
  const auto choose = [&](CLI::App* verb, auto run) {
    verb->allow_extras(false);  // which it has from `ledger`, and would take any flag in silence
    if (verb->get_name() != "export") {
      verb->add_flag("--json", options->json, "print JSON");
    }
    verb->callback([&invocation, options, run] {
      invocation.action = [options, run] { return run(*options); };
    });
  };
  choose(add_verify(*ledger, options), ledger_verify);
  choose(add_list(*ledger, options), ledger_list);
  choose(add_show(*ledger, options), ledger_show);
  choose(add_diff(*ledger, options), ledger_diff);
  choose(add_merge(*ledger, options), ledger_merge);
  choose(add_query(*ledger, options), ledger_query);
  choose(add_export(*ledger, options), ledger_export);
}

}  // namespace assay::cli
