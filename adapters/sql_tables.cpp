#include "adapters/sql_tables.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

std::string sql_name(std::string_view name) {
  std::string quoted = "\"";
  for (const char one : name) quoted += one == '"' ? std::string("\"\"") : std::string(1, one);
  return quoted + '"';
}

namespace {

const std::string& key_of(const TableDeclaration& table) {
  return table.columns.front().name;
}

Result<ColumnKind> kind_of(const TableDeclaration& table, std::string_view column) {
  const auto found = std::ranges::find(table.columns, column, &TableColumn::name);
  if (found != table.columns.end()) return found->kind;
  return fail(ErrorKind::bad_input,
              fmt::format("table {} has no column \"{}\"", table.name, column));
}

}  // namespace

std::string SqlTableSession::big_sum(const std::string& of) const {
  // PostgreSQL's sum of a bigint is a numeric.
  const char* const cast = dialect_ == SqlDialect::postgresql ? "::bigint" : "";
  return fmt::format("coalesce(sum({}), 0){}", of, cast);
}

std::string SqlTableSession::length(const std::string& column) const {
  const char* const name = dialect_ == SqlDialect::postgresql ? "octet_length" : "length";
  return fmt::format("{}({})", name, column);
}

Result<const TableDeclaration*> SqlTableSession::find(std::string_view table) const {
  const auto found = std::ranges::find(tables_, table, &TableDeclaration::name);
  if (found != tables_.end()) return &*found;
  return fail(ErrorKind::bad_input, fmt::format("there is no table \"{}\"", table));
}

Status SqlTableSession::create(std::span<const TableDeclaration> tables) {
  const bool postgresql = dialect_ == SqlDialect::postgresql;
  for (const TableDeclaration& table : tables) {
    std::string columns;
    for (const TableColumn& column : table.columns) {
      const bool first = &column == &table.columns.front();
      const char* const integer = postgresql ? "bigint" : "INTEGER";
      const char* const bytes = postgresql ? "bytea" : "BLOB";
      columns += fmt::format("{}{} {}{}", first ? "" : ", ", sql_name(column.name),
                             column.kind == ColumnKind::integer ? integer : bytes,
                             first ? " PRIMARY KEY" : " NOT NULL");
    }
    ASSAY_TRY(command(fmt::format("CREATE TABLE {} ({})", sql_name(table.name), columns)));
  }
  tables_.assign(tables.begin(), tables.end());
  return {};
}

Status SqlTableSession::attach(std::span<const TableDeclaration> tables,
                               std::span<const TableIndex> /*indexes*/) {
  tables_.assign(tables.begin(), tables.end());
  return {};
}

Result<std::uint64_t> SqlTableSession::load(std::string_view name, TableRows& rows,
                                            std::uint64_t batch_rows) {
  const Result<const TableDeclaration*> table = find(name);
  if (!table) return std::unexpected(table.error());
  if (batch_rows == 0) return fail(ErrorKind::bad_input, "a batch of no rows loads nothing");
  std::uint64_t all = 0;
  while (true) {
    const Result<std::uint64_t> batch = load_batch(**table, rows, batch_rows);
    if (!batch) return batch;
    all += *batch;
    if (*batch < batch_rows) break;
  }
  ASSAY_TRY(loaded(sql_name(name)));
  return all;
}

Result<TableAnswer> SqlTableSession::run(const TableQuery& query) {
  planned_.clear();
  made_.clear();
  const Result<const TableDeclaration*> found = find(query.table);
  if (!found) return std::unexpected(found.error());
  const TableDeclaration& table = **found;
  for (const std::string& column : query.columns) ASSAY_TRY(kind_of(table, column));
  const std::string range =
      fmt::format(" WHERE {} BETWEEN {} AND {}",
                  sql_name(query.operation == TableOperation::range_lookup ? query.columns.at(0)
                                                                           : key_of(table)),
                  query.first, query.last);
  switch (query.operation) {
    case TableOperation::full_scan:
    case TableOperation::read_columns:
    case TableOperation::point_lookup:
    case TableOperation::range_lookup:
      return rows(table, query, range);
    case TableOperation::checksum:
    case TableOperation::group_having:
    case TableOperation::dictionary:
    case TableOperation::join:
      return aggregate(table, query, range);
    case TableOperation::update_rollback:
    case TableOperation::delete_rollback:
      return undone(table, query, range);
    case TableOperation::create_index:
      return make_index(table, query);
  }
  ASSAY_CHECK(false, "a table operation outside the enumeration");
}

Result<TableAnswer> SqlTableSession::rows(const TableDeclaration& table, const TableQuery& query,
                                          const std::string& where) {
  std::string columns;
  Kinds kinds;
  const bool some = query.operation == TableOperation::read_columns;
  for (const TableColumn& column : table.columns) {
    if (some && std::ranges::find(query.columns, column.name) == query.columns.end()) continue;
    columns += (columns.empty() ? "" : ", ") + sql_name(column.name);
    kinds.push_back(column.kind);
  }
  const std::string select = fmt::format("SELECT {} FROM {}", columns, sql_name(table.name));
  if (query.operation != TableOperation::point_lookup) {
    note(select + where);
    return hand_over(select + where, kinds);
  }
  const std::string one = fmt::format("{} WHERE {} = ", select, sql_name(key_of(table)));
  note(one + (query.keys.empty() ? "0" : std::to_string(query.keys.front())));
  return look_up(one + (dialect_ == SqlDialect::postgresql ? "$1" : "?1"), kinds, query.keys);
}

Result<TableAnswer> SqlTableSession::aggregate(const TableDeclaration& table,
                                               const TableQuery& query, const std::string& where) {
  const std::string from = fmt::format(" FROM {}", sql_name(table.name));
  const auto column = [&query](std::size_t at) { return sql_name(query.columns.at(at)); };
  std::string sql;
  if (query.operation == TableOperation::checksum) {
    std::string row;
    for (const TableColumn& one : table.columns) {
      const std::string name = sql_name(one.name);
      row += (row.empty() ? "" : " + ") + (one.kind == ColumnKind::integer ? name : length(name));
    }
    sql = fmt::format("SELECT count(*), {}{}{}", big_sum(row), from, where);
  } else if (query.operation == TableOperation::group_having) {
    sql = fmt::format(
        "SELECT count(*), {} FROM (SELECT {} AS g, count(*) AS n, {} AS s{}{} GROUP BY {} "
        "HAVING count(*) >= {}) AS groups",
        big_sum("g + n + s"), column(0), big_sum(column(1)), from, where, column(0),
        query.at_least);
  } else if (query.operation == TableOperation::dictionary) {
    sql = fmt::format(
        "SELECT count(*), {} FROM (SELECT {} AS g, count(*) AS n{}{} GROUP BY {}) AS words",
        big_sum(length("g") + " * n"), column(0), from, where, column(0));
  } else {
    const Result<const TableDeclaration*> parent = find(query.parent);
    if (!parent) return std::unexpected(parent.error());
    ASSAY_TRY(kind_of(**parent, query.parent_column));
    const std::string key = sql_name(key_of(table));
    sql = fmt::format(
        "SELECT count(*), {} FROM {} AS t JOIN {} AS p ON p.{} = t.{} WHERE t.{} BETWEEN {} AND {}",
        big_sum(fmt::format("p.{} + t.{}", sql_name(query.parent_column), column(1))),
        sql_name(table.name), sql_name(query.parent), sql_name(key_of(**parent)), column(0), key,
        query.first, query.last);
  }
  note(sql);
  return numbers(sql);
}

Result<TableAnswer> SqlTableSession::undone(const TableDeclaration& table, const TableQuery& query,
                                            const std::string& where) {
  const bool update = query.operation == TableOperation::update_rollback;
  const std::string name = sql_name(table.name);
  const std::string sql =
      update ? fmt::format("UPDATE {} SET {} = {} + 1{}", name, sql_name(query.columns.at(0)),
                           sql_name(query.columns.at(0)), where)
             : fmt::format("DELETE FROM {}{}", name, where);
  ASSAY_TRY(begin());
  Result<std::uint64_t> changed = change(sql);
  if (changed && !update && !query.keys.empty()) {
    const Result<std::uint64_t> more = erase_keys(name, sql_name(key_of(table)), query.keys);
    changed = more ? Result<std::uint64_t>(*changed + *more) : more;
  }
  const Status ended = rollback();
  if (!changed) return std::unexpected(changed.error());
  if (!ended) return std::unexpected(ended.error());
  note(sql);
  return TableAnswer{*changed, 0};
}

Result<TableAnswer> SqlTableSession::make_index(const TableDeclaration& table,
                                                const TableQuery& query) {
  const std::string& column = query.columns.at(0);
  const std::string index = sql_name(table.name + "_" + column);
  ASSAY_TRY(command(fmt::format("DROP INDEX IF EXISTS {}", index)));
  const std::string sql =
      fmt::format("CREATE INDEX {} ON {} ({})", index, sql_name(table.name), sql_name(column));
  ASSAY_TRY(command(sql));
  made_.push_back(sql);
  const Result<std::uint64_t> entries = index_rows(sql_name(table.name), index);
  if (!entries) return std::unexpected(entries.error());
  return TableAnswer{*entries, 0};
}

Result<std::string> SqlTableSession::access_path() {
  std::string path;
  for (const std::string& sql : made_) path += sql + "\n";
  for (const std::string& sql : planned_) {
    const Result<std::string> plan = explain(sql);
    if (!plan) return plan;
    path += *plan;
  }
  return path;
}

}  // namespace assay
