#include "harness/ledger/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/ledger/flatten.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/query_schema.h"

namespace assay {
namespace {

using nlohmann::json;

struct CloseDatabase {
  void operator()(sqlite3* database) const { ::sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

/// What a query was allowed to read: table -> columns.
using Reads = std::map<std::string, std::set<std::string>>;

/// Lets a query read, compute and recurse; what it reads is noted.
int authorize(void* reads, int action, const char* first, const char* second, const char*,
              const char*) {
  if (action == SQLITE_READ) {
    (*static_cast<Reads*>(reads))[first].insert(second);
    return SQLITE_OK;
  }
  if (action == SQLITE_FUNCTION) {
    return second != nullptr && std::string_view(second) == "load_extension" ? SQLITE_DENY
                                                                             : SQLITE_OK;
  }
  return action == SQLITE_SELECT || action == SQLITE_RECURSIVE ? SQLITE_OK : SQLITE_DENY;
}

std::string sql_quoted(std::string_view name) {
  return fmt::format("\"{}\"", name);
}

Status execute(sqlite3* database, const std::string& sql) {
  if (::sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return fail(ErrorKind::internal, fmt::format("SQLite: {}", ::sqlite3_errmsg(database)));
}

Status make_tables(sqlite3* database) {
  for (const TableSource& table : table_sources()) {
    std::vector<std::string> columns;
    for (const ColumnSource& column : table.columns) columns.push_back(sql_quoted(column.name));
    ASSAY_TRY(execute(database, fmt::format("CREATE TABLE {} ({})", sql_quoted(table.name),
                                            fmt::join(columns, ", "))));
  }
  return {};
}

/// "no such column: foo" -> the nearest table or column there is.
std::string nearest_to(const std::string& message) {
  const std::size_t colon = message.rfind(": ");
  if (message.find("no such ") == std::string::npos || colon == std::string::npos) return {};
  std::string given = message.substr(colon + 2);
  if (const std::size_t dot = given.rfind('.'); dot != std::string::npos) {
    given = given.substr(dot + 1);
  }
  std::set<std::string> names;
  const bool table = message.find("no such table") != std::string::npos;
  for (const TableSource& one : table_sources()) {
    if (table) names.emplace(one.name);
    if (table) continue;
    for (const ColumnSource& column : one.columns) names.emplace(column.name);
  }
  return nearest_name(given, names);
}

Error refused(sqlite3* database) {
  const std::string message = ::sqlite3_errmsg(database);
  Error error(ErrorKind::bad_input, fmt::format("SQLite: {}", message));
  if (message.find("not authorized") != std::string::npos) {
    return error.in("a query only reads").hint("write a SELECT");
  }
  const std::string near = nearest_to(message);
  return error.hint(fmt::format("{}`assay ledger query --tables` lists tables and columns",
                                near.empty() ? "" : fmt::format("did you mean {}? ", near)));
}

/// One member of a record, as a JSON value.
struct Row {
  const LedgerRecord& record;
  const std::string& ledger;
  const std::string& result;
  const json* parent = nullptr;
  const json* element = nullptr;
  json key;
};

json of_record(const Row& row, std::string_view what) {
  const LedgerRecord& record = row.record;
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  if (what == "ledger") return row.ledger;
  if (what == "line") return record.line;
  if (what == "result") return or_null(row.result);
  if (what == "machine") return or_null(record.machine);
  if (what == "seq") return record.seq;
  if (what == "time") return record.time;
  if (what == "kind") return record.kind;
  if (what == "schema") return record.schema;
  if (what == "hash") return record.hash;
  if (what == "previous") return record.previous;
  if (what == "origin") return origin_hash(record);
  return record.body.dump(-1, ' ', false, json::error_handler_t::replace);
}

json at_pointer(const json& tree, std::string_view pointer) {
  const json::json_pointer place{std::string(pointer)};
  return tree.contains(place) ? tree.at(place) : json();
}

json value_of(const Row& row, std::string_view source) {
  const std::size_t colon = source.find(':');
  const std::string_view base = source.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = base.empty() ? source : source.substr(colon + 1);
  if (base == "record") return of_record(row, rest);
  if (base == "key") return row.key;
  if (base == "body") return at_pointer(row.record.body, rest);
  if (base == "parent") return at_pointer(*row.parent, rest);
  return at_pointer(*row.element, rest);
}

int bind_value(sqlite3_stmt* statement, int place, const json& value) {
  if (value.is_boolean()) return ::sqlite3_bind_int(statement, place, value.get<bool>() ? 1 : 0);
  if (value.is_number_float()) {
    return ::sqlite3_bind_double(statement, place, value.get<double>());
  }
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return ::sqlite3_bind_double(statement, place, value.get<double>());
  }
  if (value.is_number()) return ::sqlite3_bind_int64(statement, place, value.get<std::int64_t>());
  if (value.is_null() || is_unknown(value)) return ::sqlite3_bind_null(statement, place);
  const std::string text = leaf_text(value);
  return ::sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()),
                             SQLITE_TRANSIENT);
}

/// Fills one table with those of its columns that the query reads.
class TableFiller {
 public:
  static Result<TableFiller> make(sqlite3* database, const TableSource& table,
                                  const std::set<std::string>& wanted) {
    TableFiller filler(database, table);
    std::vector<std::string> names;
    for (const ColumnSource& column : table.columns) {
      if (!wanted.contains(std::string(column.name))) continue;
      filler.columns_.push_back(column);
      names.push_back(sql_quoted(column.name));
    }
    // A query may count rows without reading one of their columns.
    if (names.empty()) {
      filler.columns_.push_back(table.columns[1]);
      names.push_back(sql_quoted(table.columns[1].name));
    }
    const std::string sql = fmt::format(
        "INSERT INTO {} ({}) VALUES ({})", sql_quoted(table.name), fmt::join(names, ","),
        fmt::join(std::vector<std::string>(names.size(), "?"), ","));
    sqlite3_stmt* made = nullptr;
    if (::sqlite3_prepare_v2(database, sql.c_str(), -1, &made, nullptr) != SQLITE_OK) {
      return fail(ErrorKind::internal, fmt::format("SQLite: {}", ::sqlite3_errmsg(database)));
    }
    filler.insert_.reset(made);
    return filler;
  }

  Status take(const LedgerRecord& record, const std::string& ledger, const std::string& result) {
    if (!table_->kind.empty() && table_->kind != record.kind) return {};
    Row row{record, ledger, result, &record.body, &record.body, {}};
    if (table_->outer.empty()) return insert(row);
    const json::json_pointer place{std::string(table_->outer)};
    if (!record.body.contains(place)) return {};
    const json& outer = record.body.at(place);
    if (table_->inner == "flatten") {
      for (const auto& [key, leaf] : flatten(outer)) {
        row.key = key;
        row.element = &leaf;
        ASSAY_TRY(insert(row));
      }
      return {};
    }
    if (!outer.is_array()) return {};
    for (const json& element : outer) {
      row.parent = row.element = &element;
      ASSAY_TRY(table_->inner.empty() ? insert(row) : take_inner(row));
    }
    return {};
  }

 private:
  TableFiller(sqlite3* database, const TableSource& table) : database_(database), table_(&table) {}

  Status take_inner(Row& row) {
    const json::json_pointer place{std::string(table_->inner)};
    if (!row.parent->contains(place)) return {};
    const json& inner = row.parent->at(place);
    if (!inner.is_structured()) return {};
    std::int64_t number = 0;
    for (const auto& [key, value] : inner.items()) {
      row.key = inner.is_array() ? json(number++) : json(key);
      row.element = &value;
      ASSAY_TRY(insert(row));
    }
    return {};
  }

  Status insert(const Row& row) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      bind_value(insert_.get(), static_cast<int>(i) + 1, value_of(row, columns_[i].source));
    }
    const int done = ::sqlite3_step(insert_.get());
    ::sqlite3_reset(insert_.get());
    if (done == SQLITE_DONE) return {};
    return fail(
        Error(ErrorKind::environment, fmt::format("SQLite: {}", ::sqlite3_errmsg(database_)))
            .hint("free memory or space for temporary files"));
  }

  sqlite3* database_;
  const TableSource* table_;
  std::vector<ColumnSource> columns_;
  Statement insert_;
};

QueryValue value_in(sqlite3_stmt* statement, int column) {
  switch (::sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{::sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return ::sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate();
    default: {
      const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement, column));
      const void* bytes = ::sqlite3_column_blob(statement, column);
      return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
    }
  }
}

}  // namespace

struct LedgerQuery::State {
  Database database;
  Statement select;
  Reads reads;
  std::vector<std::string> columns;
};

LedgerQuery::LedgerQuery(std::unique_ptr<State> state) : state_(std::move(state)) {}
LedgerQuery::LedgerQuery(LedgerQuery&&) noexcept = default;
LedgerQuery& LedgerQuery::operator=(LedgerQuery&&) noexcept = default;
LedgerQuery::~LedgerQuery() = default;

const std::vector<std::string>& LedgerQuery::columns() const {
  return state_->columns;
}

Result<LedgerQuery> LedgerQuery::prepare(const std::string& sql) {
  auto state = std::make_unique<State>();
  sqlite3* database = nullptr;
  const int opened = ::sqlite3_open("", &database);  // private and temporary
  state->database.reset(database);
  if (opened != SQLITE_OK) {
    return fail(ErrorKind::environment, fmt::format("SQLite: {}", ::sqlite3_errstr(opened)));
  }
  ASSAY_TRY(make_tables(database));
  ::sqlite3_set_authorizer(database, authorize, &state->reads);
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int prepared = ::sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                            &statement, &rest);
  state->select.reset(statement);
  if (prepared != SQLITE_OK) return fail(refused(database));
  if (statement == nullptr || ::sqlite3_column_count(statement) == 0) {
    return fail(Error(ErrorKind::bad_input,
                      statement == nullptr ? "this is no query" : "a query only reads")
                    .hint("write a SELECT"));
  }
  const std::string behind = rest == nullptr ? "" : rest;
  if (behind.find_first_not_of(" \t\r\n;") != std::string::npos) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("one query at a time, and \"{:.40}\" follows it", behind)));
  }
  ::sqlite3_set_authorizer(database, nullptr, nullptr);
  for (int i = 0; i < ::sqlite3_column_count(statement); ++i) {
    state->columns.emplace_back(::sqlite3_column_name(statement, i));
  }
  return LedgerQuery(std::move(state));
}

Status LedgerQuery::load(const std::string& path) {
  std::vector<TableFiller> fillers;
  for (const TableSource& table : table_sources()) {
    const auto wanted = state_->reads.find(std::string(table.name));
    if (wanted == state_->reads.end()) continue;
    auto filler = TableFiller::make(state_->database.get(), table, wanted->second);
    if (!filler) return fail(filler.error());
    fillers.push_back(std::move(*filler));
  }
  if (fillers.empty()) return {};
  ASSAY_TRY(execute(state_->database.get(), "BEGIN"));
  const auto end = scan_ledger(path, [&](LedgerRecord&& record) -> Status {
    const std::string result = result_of(record);
    for (TableFiller& filler : fillers) ASSAY_TRY(filler.take(record, path, result));
    return {};
  });
  if (!end) return fail(end.error());
  return execute(state_->database.get(), "COMMIT");
}

Status LedgerQuery::run(const std::function<Status(const std::vector<QueryValue>&)>& row) {
  sqlite3_stmt* select = state_->select.get();
  const auto columns = static_cast<int>(state_->columns.size());
  for (;;) {
    const int step = ::sqlite3_step(select);
    if (step == SQLITE_DONE) return {};
    if (step != SQLITE_ROW) {
      return fail(ErrorKind::bad_input,
                  fmt::format("SQLite: {}", ::sqlite3_errmsg(state_->database.get())));
    }
    std::vector<QueryValue> values;
    for (int i = 0; i < columns; ++i) values.push_back(value_in(select, i));
    ASSAY_TRY(row(values));
  }
}

const std::vector<QueryTable>& query_tables() {
  static const std::vector<QueryTable> kAll = [] {
    std::vector<QueryTable> all;
    for (const TableSource& table : table_sources()) {
      QueryTable one{std::string(table.name), std::string(table.what), {}};
      for (const ColumnSource& column : table.columns) one.columns.emplace_back(column.name);
      all.push_back(std::move(one));
    }
    return all;
  }();
  return kAll;
}

}  // namespace assay
