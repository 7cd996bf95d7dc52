// assay ledger query and export.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/text_table.h"
#include "harness/experiment/google_benchmark_json.h"
#include "harness/ledger/junit.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/query.h"

namespace assay::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kRowsOfATable = 10'000;

std::string dumped(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string text_of(const QueryValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return {};
}

/// Six digits for people; --csv and --json have all of them.
std::string shown(const QueryValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.6g}", *real);
  return std::holds_alternative<std::monostate>(value) ? "-" : text_of(value);
}

json json_of(const QueryValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* real = std::get_if<double>(&value)) {
    return std::isfinite(*real) ? json(*real) : json();
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

/// A field as RFC 4180 wants it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Status write_csv(LedgerQuery& query, OutputSink& out) {
  std::vector<std::string> fields;
  for (const std::string& column : query.columns()) fields.push_back(csv_field(column));
  ASSAY_TRY(out.write(fmt::format("{}\n", fmt::join(fields, ","))));
  return query.run([&](const std::vector<QueryValue>& values) -> Status {
    fields.clear();
    for (const QueryValue& value : values) fields.push_back(csv_field(text_of(value)));
    return out.write(fmt::format("{}\n", fmt::join(fields, ",")));
  });
}

Status write_json(LedgerQuery& query, OutputSink& out) {
  bool first = true;
  ASSAY_TRY(query.run([&](const std::vector<QueryValue>& values) -> Status {
    json row = json::object();
    for (std::size_t i = 0; i < values.size(); ++i) row[query.columns()[i]] = json_of(values[i]);
    const std::string before = first ? "[\n" : ",\n";
    first = false;
    return out.write(before + dumped(row));
  }));
  return out.write(first ? "[]\n" : "\n]\n");
}

Status write_table(LedgerQuery& query) {
  std::vector<std::vector<std::string>> rows{query.columns()};
  std::uint64_t left_out = 0;
  ASSAY_TRY(query.run([&](const std::vector<QueryValue>& values) -> Status {
    if (rows.size() > kRowsOfATable) {
      ++left_out;
      return {};
    }
    rows.emplace_back();
    for (const QueryValue& value : values) rows.back().push_back(shown(value));
    return {};
  }));
  print_table(rows);
  if (left_out > 0) fmt::print("{} more rows; --csv and --json give all\n", left_out);
  return {};
}

void list_tables(bool as_json) {
  json all = json::array();
  for (const QueryTable& table : query_tables()) {
    all.push_back({{"table", table.name}, {"what", table.what}, {"columns", table.columns}});
    if (as_json) continue;
    print_hanging(table.name + ": ", table.what, 4);
    const std::string columns = fmt::format("{}", fmt::join(table.columns, " "));
    fmt::print("  {}\n", hanging_text(columns, 2, 2, std::min(98U, terminal_columns())));
  }
  if (as_json) print_json(all);
}

Result<LedgerQuery> loaded(const std::string& sql, const std::vector<std::string>& names) {
  auto query = LedgerQuery::prepare(sql);
  if (!query) return fail(query.error());
  const auto ledgers = find_ledgers(names);
  if (!ledgers) return fail(ledgers.error());
  for (const std::string& ledger : *ledgers) ASSAY_TRY(query->load(ledger));
  return query;
}

/// 'it''s' of "it's".
std::string sql_text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

/// An answer without anything must not come of a name that nothing has.
Status check_selection(const LedgerOptions& options, const std::vector<std::string>& ledgers) {
  if (options.result.empty() && options.machine.empty()) return {};
  std::set<std::string> names;
  std::set<std::string> machines;  // of the records that --result means
  bool result_known = options.result.empty();
  bool machine_known = options.machine.empty();
  for (const std::string& ledger : ledgers) {
    const auto end = scan_ledger(ledger, [&](LedgerRecord&& record) -> Status {
      const std::string name = result_of(record);
      if (!name.empty()) names.insert(name);
      if (!options.result.empty() && name != options.result) return {};
      result_known = true;
      machine_known = machine_known || record.machine.starts_with(options.machine);
      if (!record.machine.empty()) machines.insert(record.machine.substr(0, 12));
      return {};
    });
    if (!end) return fail(end.error());
  }
  if (result_known && machine_known) return {};
  const std::set<std::string>& known = result_known ? machines : names;
  const std::vector<std::string> valid(known.begin(), known.end());
  const std::string& given = result_known ? options.machine : options.result;
  Error error(ErrorKind::bad_input,
              result_known
                  ? fmt::format("no result{} is of a machine \"{}\"",
                                options.result.empty() ? "" : " \"" + options.result + "\"", given)
                  : fmt::format("there is no result \"{}\"", given));
  if (ledgers.size() == 1) error.at(ledgers.front());
  if (const std::string near = nearest_name(given, valid); !near.empty()) {
    error.hint(fmt::format("did you mean {}?", near));
  } else if (!valid.empty()) {
    error.hint(fmt::format("there are: {}", fmt::join(valid, ", ")));
  }
  return fail(std::move(error));
}

Status export_csv(const LedgerOptions& options, OutputSink& out) {
  const std::string wanted = options.table.empty() ? "rows" : options.table;
  std::vector<std::string> names;
  bool known = false;
  for (const QueryTable& table : query_tables()) {
    names.push_back(table.name);
    known = known || table.name == wanted;
  }
  if (!known) {
    const std::string near = nearest_name(wanted, names);
    return fail(Error(ErrorKind::bad_input, fmt::format("there is no table \"{}\"", wanted))
                    .hint(near.empty() ? fmt::format("valid: {}", fmt::join(names, ", "))
                                       : fmt::format("did you mean {}?", near)));
  }
  std::string sql = fmt::format("SELECT * FROM \"{}\"", wanted);
  std::vector<std::string> conditions;
  if (!options.result.empty()) conditions.push_back("result = " + sql_text(options.result));
  if (!options.machine.empty()) {
    conditions.push_back(fmt::format("substr(machine, 1, {}) = {}", options.machine.size(),
                                     sql_text(options.machine)));
  }
  if (!conditions.empty()) sql += fmt::format(" WHERE {}", fmt::join(conditions, " AND "));
  auto query = loaded(sql, options.ledgers);
  return query ? write_csv(*query, out) : fail(query.error());
}

json exported(const LedgerRecord& record, const std::string& ledger) {
  return {{"ledger", ledger},
          {"line", record.line},
          {"seq", record.seq},
          {"time", record.time},
          {"kind", record.kind},
          {"schema", kLedgerSchema},
          {"hash", record.hash},
          {"previous", record.previous},
          {"origin", origin_hash(record)},
          {"machine", record.machine.empty() ? json() : json(record.machine)},
          {"source", record.source},
          {"body", record.body}};
}

Status export_json(const LedgerOptions& options, const std::vector<std::string>& ledgers,
                   OutputSink& out) {
  bool first = true;
  for (const std::string& ledger : ledgers) {
    const auto end = scan_ledger(ledger, [&](LedgerRecord&& record) -> Status {
      if (!options.result.empty() && result_of(record) != options.result) return {};
      if (!record.machine.starts_with(options.machine)) return {};
      const std::string before = first ? "[\n" : ",\n";
      first = false;
      return out.write(before + dumped(exported(record, ledger)));
    });
    if (!end) return fail(end.error());
  }
  return out.write(first ? "[]\n" : "\n]\n");
}

Status export_google_benchmark(const LedgerOptions& options,
                               const std::vector<std::string>& ledgers, OutputSink& out) {
  if (ledgers.size() != 1) {
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("this format holds one result, and {} ledgers are meant", ledgers.size()))
            .hint("name one ledger"));
  }
  const auto results = read_results(ledgers.front());
  if (!results) return fail(results.error());
  const auto chosen = choose_result(*results, options.result, options.machine);
  if (!chosen) return fail(chosen.error());
  const LedgerResult& one = **chosen;
  if (one.verdict.is_null()) {
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("result \"{}\" has no verdict: its run is not complete", one.result))
            .at(ledgers.front()));
  }
  const json provenance =
      one.plan.is_object() ? one.plan.value("provenance", json::object()) : json::object();
  return out.write(dumped(google_benchmark_json(one.verdict, provenance), 2) + "\n");
}

Status export_junit(const LedgerOptions& options, const std::vector<std::string>& ledgers,
                    OutputSink& out) {
  std::vector<LedgerResults> all;
  for (const std::string& ledger : ledgers) {
    auto results = read_results(ledger);
    if (!results) return fail(results.error());
    if (!options.result.empty() && ledgers.size() == 1) {
      const auto chosen = choose_result(*results, options.result, options.machine);
      if (!chosen) return fail(chosen.error());
    }
    std::erase_if(results->results, [&](const LedgerResult& one) {
      return (!options.result.empty() && one.result != options.result) ||
             !one.machine.starts_with(options.machine);
    });
    all.push_back(std::move(*results));
  }
  return out.write(junit_xml(all));
}

}  // namespace

Result<ExitStatus> ledger_query(const LedgerOptions& options) {
  if (options.tables) {
    if (!options.sql.empty() || options.csv) {
      return fail(ErrorKind::bad_input, fmt::format("--tables lists the tables and takes no {}",
                                                    options.csv ? "--csv" : "query"));
    }
    list_tables(options.json);
    return ExitStatus::done;
  }
  if (options.csv && options.json) {
    return fail(ErrorKind::bad_input, "--csv and --json exclude each other");
  }
  if (options.sql.empty()) {
    return fail(Error(ErrorKind::bad_input, "a query is missing")
                    .hint("such as \"SELECT arm, geometric_mean FROM rows\"; --tables lists what "
                          "there is"));
  }
  auto query = loaded(options.sql, options.ledgers);
  if (!query) return fail(query.error());
  if (!options.csv && !options.json) {
    ASSAY_TRY(write_table(*query));
    return ExitStatus::done;
  }
  const auto out = open_output("");
  ASSAY_TRY(options.csv ? write_csv(*query, **out) : write_json(*query, **out));
  return ExitStatus::done;
}

Result<ExitStatus> ledger_export(const LedgerOptions& options) {
  if (!options.table.empty() && options.format != "csv") {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("--table has no meaning for the format {}", options.format))
                    .hint("it names the table of --format csv"));
  }
  const auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers) return fail(ledgers.error());
  ASSAY_TRY(check_selection(options, *ledgers));
  auto out = open_output(options.out);
  if (!out) return fail(out.error());
  if (options.format == "csv") {
    ASSAY_TRY(export_csv(options, **out));
  } else if (options.format == "json") {
    ASSAY_TRY(export_json(options, *ledgers, **out));
  } else if (options.format == "junit") {
    ASSAY_TRY(export_junit(options, *ledgers, **out));
  } else {
    ASSAY_TRY(export_google_benchmark(options, *ledgers, **out));
  }
  ASSAY_TRY((*out)->finish());
  if (!options.out.empty()) fmt::print("{}\n", options.out);
  return ExitStatus::done;
}

}  // namespace assay::cli
