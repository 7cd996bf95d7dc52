#include "adapters/postgresql/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "adapters/sql_tables.h"

namespace assay::postgresql {
namespace {

// A copy in the binary format: a signature, flags, the length of an extension; rows, each the
// number of its columns and then length and bytes of every cell; -1 for a number at the end.
constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0", 11);
constexpr std::size_t kHeaderBytes = kSignature.size() + 8;
constexpr std::size_t kSendBytes = std::size_t{64} << 10;

template <class Number>
void append(Number number, std::string& into) {
  for (int shift = static_cast<int>(sizeof number) * 8 - 8; shift >= 0; shift -= 8)
    into += static_cast<char>(static_cast<std::make_unsigned_t<Number>>(number) >> shift);
}

template <class Number>
bool take(std::string_view& bytes, Number& number) {
  if (bytes.size() < sizeof number) return false;
  std::make_unsigned_t<Number> all = 0;
  for (std::size_t at = 0; at < sizeof number; ++at)
    all = static_cast<std::make_unsigned_t<Number>>((static_cast<std::uint64_t>(all) << 8) |
                                                    static_cast<unsigned char>(bytes[at]));
  number = static_cast<Number>(all);
  bytes.remove_prefix(sizeof number);
  return true;
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class PostgresqlTables final : public SqlTableSession {
 public:
  PostgresqlTables(std::unique_ptr<Connection> connection, std::atomic<int>& open_sessions)
      : SqlTableSession(SqlDialect::postgresql),
        connection_(std::move(connection)),
        open_sessions_(open_sessions) {
    open_sessions_.fetch_add(1);
  }
  ~PostgresqlTables() override {
    connection_.reset();
    open_sessions_.fetch_sub(1);
  }

 protected:
  Status command(const std::string& sql) override { return connection_->command(sql); }
  Status begin() override { return command("BEGIN"); }
  Status rollback() override { return command("ROLLBACK"); }
  Result<TableAnswer> hand_over(const std::string& sql, const Kinds& kinds) override;
  Result<TableAnswer> look_up(const std::string& sql, const Kinds& kinds,
                              std::span<const std::int64_t> keys) override;
  Result<TableAnswer> numbers(const std::string& sql) override {
    const Result<Rows> rows = connection_->run(sql);
    if (!rows) return std::unexpected(rows.error());
    return TableAnswer{number_of(rows->cell(0, 0)), number_of(rows->cell(0, 1))};
  }
  Result<std::uint64_t> change(const std::string& sql) override {
    const Result<Rows> rows = connection_->run(sql);
    if (!rows) return std::unexpected(rows.error());
    return rows->changed();
  }
  Result<std::uint64_t> erase_keys(const std::string& table, const std::string& key,
                                   std::span<const std::int64_t> keys) override {
    const std::string sql = fmt::format("DELETE FROM {} WHERE {} = ANY('{{{}}}'::bigint[])", table,
                                        key, fmt::join(keys, ","));
    note(sql);
    return change(sql);
  }
  Result<std::uint64_t> load_batch(const TableDeclaration& table, TableRows& rows,
                                   std::uint64_t batch_rows) override;
  // The manual on populating a database: plans are bad until the statistics are taken.
  Status loaded(const std::string& table) override { return command("ANALYZE " + table); }
  // Exact up to 2^24, and for what a float of 24 bits holds beyond.
  Result<std::uint64_t> index_rows(const std::string& /*table*/,
                                   const std::string& index) override {
    const Result<std::string> text = connection_->text(
        fmt::format("SELECT reltuples::bigint FROM pg_class WHERE oid = '{}'::regclass", index));
    if (!text) return std::unexpected(text.error());
    return number_of(*text);
  }
  Result<std::string> explain(const std::string& sql) override;

 private:
  Status add_rows(std::string_view bytes, const Kinds& kinds, TableAnswer& answer);
  Result<std::uint64_t> send_rows(const TableDeclaration& table, TableRows& rows,
                                  std::uint64_t batch_rows);
  Status send(std::string& bytes);
  Status end_copy();

  std::unique_ptr<Connection> connection_;
  std::atomic<int>& open_sessions_;
  std::vector<TableValue> cells_;
};

/// `bytes` are whole rows of a copy.
Status PostgresqlTables::add_rows(std::string_view bytes, const Kinds& kinds, TableAnswer& answer) {
  const Error broken(ErrorKind::store, "PostgreSQL: a copy with a row that is cut off");
  std::int16_t columns = 0;
  while (take(bytes, columns) && columns >= 0) {
    if (static_cast<std::size_t>(columns) != kinds.size()) return fail(broken);
    ++answer.rows;
    for (const ColumnKind kind : kinds) {
      std::int32_t length = 0;
      if (!take(bytes, length) || length < 0 || bytes.size() < static_cast<std::size_t>(length))
        return fail(broken);
      TableValue cell;
      cell.bytes = bytes.substr(0, static_cast<std::size_t>(length));
      bytes.remove_prefix(static_cast<std::size_t>(length));
      if (kind == ColumnKind::integer) {
        cell.integer = from_binary_int8(cell.bytes);
        cell.bytes = {};
      }
      add_cell(cell, answer);
    }
  }
  return {};
}

Result<TableAnswer> PostgresqlTables::hand_over(const std::string& sql, const Kinds& kinds) {
  const std::unique_ptr<PGresult, ClearResult> begun(PQexec(
      connection_->handle(), fmt::format("COPY ({}) TO STDOUT (FORMAT binary)", sql).c_str()));
  if (PQresultStatus(begun.get()) != PGRES_COPY_OUT)
    return fail(connection_->error(sql, begun.get()));
  TableAnswer answer;
  Status status;
  bool header = true;
  while (true) {
    char* data = nullptr;
    const int size = PQgetCopyData(connection_->handle(), &data, 0);
    if (size < 0) break;
    std::string_view bytes(data, static_cast<std::size_t>(size));
    if (std::exchange(header, false)) bytes.remove_prefix(std::min(kHeaderBytes, bytes.size()));
    if (status) status = add_rows(bytes, kinds, answer);
    PQfreemem(data);
  }
  const Status ended = end_copy();
  if (!ended) return std::unexpected(ended.error());
  if (!status) return std::unexpected(status.error());
  return answer;
}

/// Takes the end of a copy off the connection, with its error.
Status PostgresqlTables::end_copy() {
  Status status;
  while (PGresult* const result = PQgetResult(connection_->handle())) {
    const std::unique_ptr<PGresult, ClearResult> held(result);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
      status = fail(connection_->error("copy", result));
  }
  return status;
}

Result<TableAnswer> PostgresqlTables::look_up(const std::string& sql, const Kinds& kinds,
                                              std::span<const std::int64_t> keys) {
  constexpr std::array<Oid, 1> kTypes{kInt8};
  ASSAY_TRY(connection_->prepare("", sql, kTypes));
  TableAnswer answer;
  for (const std::int64_t key : keys) {
    const std::string bytes = binary_int8(key);
    const std::array<std::string_view, 1> values{bytes};
    const Result<Rows> rows = connection_->execute("", values);
    if (!rows) return std::unexpected(rows.error());
    for (int row = 0; row < rows->count(); ++row) {
      ++answer.rows;
      for (std::size_t at = 0; at < kinds.size(); ++at) {
        TableValue cell;
        const std::string_view found = rows->cell(row, static_cast<int>(at));
        (kinds[at] == ColumnKind::integer) ? void(cell.integer = from_binary_int8(found))
                                           : void(cell.bytes = found);
        add_cell(cell, answer);
      }
    }
  }
  return answer;
}

Status PostgresqlTables::send(std::string& bytes) {
  if (PQputCopyData(connection_->handle(), bytes.data(), static_cast<int>(bytes.size())) != 1)
    return fail(connection_->error("copy", nullptr));
  bytes.clear();
  return {};
}

Result<std::uint64_t> PostgresqlTables::send_rows(const TableDeclaration& table, TableRows& rows,
                                                  std::uint64_t batch_rows) {
  std::string bytes(kSignature);
  append(std::int64_t{0}, bytes);  // no flags, no extension
  std::uint64_t count = 0;
  while (count < batch_rows && rows.next(cells_)) {
    append(static_cast<std::int16_t>(cells_.size()), bytes);
    for (std::size_t at = 0; at < cells_.size(); ++at) {
      if (table.columns[at].kind == ColumnKind::integer) {
        append(std::int32_t{8}, bytes);
        append(cells_[at].integer, bytes);
      } else {
        append(static_cast<std::int32_t>(cells_[at].bytes.size()), bytes);
        bytes += cells_[at].bytes;
      }
    }
    ++count;
    if (bytes.size() >= kSendBytes) ASSAY_TRY(send(bytes));
  }
  append(std::int16_t{-1}, bytes);
  ASSAY_TRY(send(bytes));
  return count;
}

Result<std::uint64_t> PostgresqlTables::load_batch(const TableDeclaration& table, TableRows& rows,
                                                   std::uint64_t batch_rows) {
  const std::string sql = fmt::format("COPY {} FROM STDIN (FORMAT binary)", sql_name(table.name));
  const std::unique_ptr<PGresult, ClearResult> begun(PQexec(connection_->handle(), sql.c_str()));
  if (PQresultStatus(begun.get()) != PGRES_COPY_IN)
    return fail(connection_->error(sql, begun.get()));
  Result<std::uint64_t> count = send_rows(table, rows, batch_rows);
  PQputCopyEnd(connection_->handle(), count ? nullptr : "not all rows could be sent");
  const Status ended = end_copy();
  if (!ended) return std::unexpected(ended.error());
  return count;
}

// The keys of a list are left out of its plan: there may be thousands.
Result<std::string> PostgresqlTables::explain(const std::string& sql) {
  const Result<Rows> rows = connection_->run("EXPLAIN (COSTS OFF) " + sql);
  if (!rows) return std::unexpected(rows.error());
  std::string plan;
  for (int row = 0; row < rows->count(); ++row) {
    std::string line(rows->cell(row, 0));
    const std::size_t begin = line.find("'{");
    const std::size_t end = begin == std::string::npos ? begin : line.find("}'", begin);
    if (end != std::string::npos) line.replace(begin + 2, end - begin - 2, "...");
    plan += line + "\n";
  }
  return plan;
}

}  // namespace

std::unique_ptr<TableSession> table_session(std::unique_ptr<Connection> connection,
                                            std::atomic<int>& open_sessions) {
  return std::make_unique<PostgresqlTables>(std::move(connection), open_sessions);
}

}  // namespace assay::postgresql
