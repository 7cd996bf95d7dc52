// assay ledger list, show and diff.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/ledger/difference.h"
#include "harness/ledger/flatten.h"

namespace assay::cli {
namespace {

using nlohmann::json;

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string verdict_counts(const LedgerResult& one) {
  std::vector<std::string> parts;
  for (const char* verdict : {"superior", "inferior", "equivalent", "inconclusive", "void"}) {
    const auto found = one.verdicts.find(verdict);
    if (found != one.verdicts.end()) parts.push_back(fmt::format("{} {}", found->second, verdict));
  }
  for (const auto& [verdict, times] : one.verdicts) {  // of a newer assay
    const bool told = std::any_of(parts.begin(), parts.end(), [&name = verdict](const auto& part) {
      return part.ends_with(" " + name);
    });
    if (!told) parts.push_back(fmt::format("{} {}", times, or_dash(verdict)));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

json to_json(const LedgerResult& one, const std::string& ledger) {
  return {{"ledger", ledger},
          {"result", one.result},
          {"machine", one.machine},
          {"experiment", one.experiment},
          {"status", one.status},
          {"question", one.question},
          {"began", one.began},
          {"ended", one.ended.empty() ? json() : json(one.ended)},
          {"outcome", one.outcome},
          {"trials", one.trials},
          {"void_trials", one.void_trials},
          {"verdicts", one.verdicts},
          {"sentences", one.sentences},
          {"plan_line", one.plan_line},
          {"verdict_line", one.verdict_line == 0 ? json() : json(one.verdict_line)},
          {"verdict_hash", one.verdict_hash.empty() ? json() : json(one.verdict_hash)}};
}

std::vector<std::string> table_row(const LedgerResult& one) {
  return {one.result,
          or_dash(one.experiment),
          short_time(one.began),
          or_dash(one.machine.substr(0, 12)),
          or_dash(one.status),
          or_dash(one.outcome),
          std::to_string(one.trials) +
              (one.void_trials > 0 ? fmt::format(" ({} void)", one.void_trials) : ""),
          verdict_counts(one)};
}

void print_sentences(const LedgerResult& one) {
  for (const std::string& sentence : one.sentences) print_hanging("  ", sentence, 4);
}

void print_results(const LedgerResults& all, bool brief) {
  const std::string head = fmt::format(
      "{}: {} records{}, head {}{}", printable(all.path), all.end.records,
      all.merged_from > 0 ? fmt::format(", merged from {} ledgers", all.merged_from) : "",
      all.end.head, all.end.torn.empty() ? "" : "; its last line is unfinished");
  print_hanging("", head, 2);
  if (all.results.empty()) {
    fmt::print("no results\n");
    return;
  }
  std::vector<std::vector<std::string>> rows{{"RESULT", "EXPERIMENT", "BEGAN (UTC)", "MACHINE",
                                              "STATUS", "OUTCOME", "TRIALS", "VERDICTS"}};
  for (const LedgerResult& one : all.results) rows.push_back(table_row(one));
  print_table(rows);
  if (brief) return;
  for (const LedgerResult& one : all.results) {
    if (one.sentences.empty()) continue;
    fmt::print("{} ({})\n", printable(one.result), or_dash(one.status));
    print_sentences(one);
  }
}

json record_json(const NamedRecord& named) {
  const LedgerRecord& record = named.record;
  return {{"ledger", named.ledger},
          {"line", record.line},
          {"seq", record.seq},
          {"time", record.time},
          {"kind", record.kind},
          {"schema", record.schema},
          {"hash", record.hash},
          {"previous", record.previous},
          {"machine", record.machine.empty() ? json() : json(record.machine)},
          {"source", record.source},
          {"body", record.body}};
}

void print_record(const NamedRecord& named) {
  const LedgerRecord& record = named.record;
  fmt::print("{}:{}: {}, {}\n", printable(named.ledger), record.line, printable(record.kind),
             printable(record.time));
  fmt::print("  hash     {}\n  previous {}\n", record.hash, record.previous);
  if (!record.source.is_null()) fmt::print("  first    {}\n", origin_hash(record));
  if (!record.machine.empty()) fmt::print("  machine  {}\n", printable(record.machine));
  if (record.schema != kLedgerSchema) {
    fmt::print("  schema   {}, shown as {}\n", record.schema, kLedgerSchema);
  }
  fmt::print("\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [path, leaf] : flatten(record.body)) rows.push_back({path, leaf_text(leaf)});
  print_table(rows, Heading::none);
}

std::string title(const LedgerResult& one) {
  return fmt::format("{}, {}, {}, machine {:.12}, {}", one.result, or_dash(one.experiment),
                     short_time(one.began), or_dash(one.machine), or_dash(one.outcome));
}

void print_differences(const std::vector<Difference>& all, bool readings) {
  std::size_t hidden = 0;
  for (const char* section : {"plan", "binary", "settings", "environment", "verdict"}) {
    std::vector<std::vector<std::string>> rows{{section, "A", "B"}};
    for (const Difference& one : all) {
      if (one.section != section) continue;
      if (one.reading && !readings) {
        ++hidden;
      } else {
        rows.push_back({one.what, one.a, one.b});
      }
    }
    fmt::print("\n");
    if (rows.size() == 1) {
      fmt::print("{}: the same\n", section);
    } else {
      print_table(rows);
    }
  }
  if (hidden > 0) {
    fmt::print("\n{} that {} read anew at every run {} left out (--all shows them)\n",
               hidden == 1 ? "1 value" : fmt::format("{} values", hidden),
               hidden == 1 ? "is" : "are", hidden == 1 ? "is" : "are");
  }
}

}  // namespace

Result<ExitStatus> ledger_list(const LedgerOptions& options) {
  const auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers) return fail(ledgers.error());
  json list = json::array();
  bool first = true;
  for (const std::string& ledger : *ledgers) {
    const auto results = read_results(ledger);
    if (!results) return fail(results.error());
    if (options.json) {
      for (const LedgerResult& one : results->results) list.push_back(to_json(one, ledger));
      continue;
    }
    if (!first) fmt::print("\n");
    first = false;
    print_results(*results, options.brief);
  }
  if (options.json) print_json(list);
  return ExitStatus::done;
}

Result<ExitStatus> ledger_show(const LedgerOptions& options) {
  // A record that tells its ledger needs no other.
  auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers && !options.ledgers.empty()) return fail(ledgers.error());
  const auto named =
      find_record(options.records.front(), ledgers ? *ledgers : std::vector<std::string>());
  if (!named) return fail(named.error());
  if (options.json) {
    print_json(record_json(*named));
  } else {
    print_record(*named);
  }
  return ExitStatus::done;
}

Result<ExitStatus> ledger_diff(const LedgerOptions& options) {
  auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers && !options.ledgers.empty()) return fail(ledgers.error());
  const auto among = ledgers ? *ledgers : std::vector<std::string>();
  const auto a = find_result(options.records[0], among);
  if (!a) return fail(a.error());
  const auto b = find_result(options.records[1], among);
  if (!b) return fail(b.error());
  const auto all = differences(*a, *b);
  if (options.json) {
    json list = json::array();
    for (const Difference& one : all) {
      list.push_back({{"section", one.section},
                      {"what", one.what},
                      {"a", one.a},
                      {"b", one.b},
                      {"reading", one.reading}});
    }
    print_json({{"a", to_json(*a, "")}, {"b", to_json(*b, "")}, {"differences", list}});
    return ExitStatus::done;
  }
  fmt::print("A: {}\nB: {}\n", printable(title(*a)), printable(title(*b)));
  print_differences(all, options.all);
  return ExitStatus::done;
}

}  // namespace assay::cli
