#include "adapters/sqlite_tables.h"

#include <fmt/format.h>

#include <utility>

#include "adapters/sql_tables.h"

namespace assay {
namespace {

class SqliteTables final : public SqlTableSession {
 public:
  SqliteTables(std::shared_ptr<SqliteConnection> connection, std::mutex* writers,
               std::function<void()> ended)
      : SqlTableSession(SqlDialect::sqlite),
        connection_(std::move(connection)),
        writers_(writers),
        ended_(std::move(ended)) {}
  ~SqliteTables() override {
    connection_.reset();
    ended_();
  }

 protected:
  Status command(const std::string& sql) override {
    const auto hold = turn();
    return connection_->run(sql);
  }
  Status begin() override {
    turn_ = turn();
    Status begun = connection_->run("BEGIN IMMEDIATE");
    if (!begun) turn_ = {};
    return begun;
  }
  Status rollback() override {
    // Some errors have rolled back by themselves.
    const bool open = sqlite3_get_autocommit(connection_->handle()) == 0;
    Status status = open ? connection_->run("ROLLBACK") : Status{};
    turn_ = {};
    return status;
  }
  Result<TableAnswer> hand_over(const std::string& sql, const Kinds& kinds) override {
    Result<SqliteStatement> statement = connection_->prepare(sql);
    if (!statement) return std::unexpected(statement.error());
    TableAnswer answer;
    ASSAY_TRY(each_row(statement->get(), kinds, answer));
    return answer;
  }
  Result<TableAnswer> look_up(const std::string& sql, const Kinds& kinds,
                              std::span<const std::int64_t> keys) override {
    Result<SqliteStatement> statement = connection_->prepare(sql);
    if (!statement) return std::unexpected(statement.error());
    TableAnswer answer;
    for (const std::int64_t key : keys) {
      sqlite3_bind_int64(statement->get(), 1, key);
      ASSAY_TRY(each_row(statement->get(), kinds, answer));
    }
    return answer;
  }
  Result<TableAnswer> numbers(const std::string& sql) override;
  Result<std::uint64_t> change(const std::string& sql) override {
    ASSAY_TRY(connection_->run(sql));
    return static_cast<std::uint64_t>(sqlite3_changes64(connection_->handle()));
  }
  Result<std::uint64_t> erase_keys(const std::string& table, const std::string& key,
                                   std::span<const std::int64_t> keys) override;
  Result<std::uint64_t> load_batch(const TableDeclaration& table, TableRows& rows,
                                   std::uint64_t batch_rows) override;
  Status loaded(const std::string& /*table*/) override { return {}; }
  Result<std::uint64_t> index_rows(const std::string& table, const std::string& index) override {
    const Result<TableAnswer> counted =
        numbers(fmt::format("SELECT count(*), 0 FROM {} INDEXED BY {}", table, index));
    if (!counted) return std::unexpected(counted.error());
    return counted->rows;
  }
  Result<std::string> explain(const std::string& sql) override;

 private:
  [[nodiscard]] std::unique_lock<std::mutex> turn() {
    return writers_ == nullptr || turn_.owns_lock() ? std::unique_lock<std::mutex>()
                                                    : std::unique_lock(*writers_);
  }
  Status each_row(sqlite3_stmt* statement, const Kinds& kinds, TableAnswer& answer);
  Status done(sqlite3_stmt* statement, int code);
  Result<std::uint64_t> insert(sqlite3_stmt* statement, const TableDeclaration& table,
                               TableRows& rows, std::uint64_t batch_rows);

  std::shared_ptr<SqliteConnection> connection_;
  std::mutex* const writers_;
  std::unique_lock<std::mutex> turn_;  ///< of the transaction under way
  const std::function<void()> ended_;
  std::vector<TableValue> cells_;
};

/// `code` is what the last step of the statement gave.
Status SqliteTables::done(sqlite3_stmt* statement, int code) {
  if (sqlite3_reset(statement) == SQLITE_OK && code == SQLITE_DONE) return {};
  return fail(connection_->error(sqlite3_sql(statement)));
}

Status SqliteTables::each_row(sqlite3_stmt* statement, const Kinds& kinds, TableAnswer& answer) {
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    ++answer.rows;
    for (std::size_t at = 0; at < kinds.size(); ++at) {
      const int column = static_cast<int>(at);
      TableValue cell;
      if (kinds[at] == ColumnKind::integer) {
        cell.integer = sqlite3_column_int64(statement, column);
      } else {
        const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
        cell.bytes = {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
      }
      add_cell(cell, answer);
    }
  }
  return done(statement, code);
}

Result<TableAnswer> SqliteTables::numbers(const std::string& sql) {
  Result<SqliteStatement> statement = connection_->prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  if (sqlite3_step(statement->get()) != SQLITE_ROW) return fail(connection_->error(sql));
  return TableAnswer{static_cast<std::uint64_t>(sqlite3_column_int64(statement->get(), 0)),
                     static_cast<std::uint64_t>(sqlite3_column_int64(statement->get(), 1))};
}

Result<std::uint64_t> SqliteTables::erase_keys(const std::string& table, const std::string& key,
                                               std::span<const std::int64_t> keys) {
  const std::string sql = fmt::format("DELETE FROM {} WHERE {} = ?1", table, key);
  Result<SqliteStatement> statement = connection_->prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  std::uint64_t erased = 0;
  for (const std::int64_t one : keys) {
    sqlite3_bind_int64(statement->get(), 1, one);
    ASSAY_TRY(done(statement->get(), sqlite3_step(statement->get())));
    erased += static_cast<std::uint64_t>(sqlite3_changes64(connection_->handle()));
  }
  note(sql);
  return erased;
}

Result<std::uint64_t> SqliteTables::insert(sqlite3_stmt* statement, const TableDeclaration& table,
                                           TableRows& rows, std::uint64_t batch_rows) {
  std::uint64_t count = 0;
  while (count < batch_rows && rows.next(cells_)) {
    for (std::size_t at = 0; at < cells_.size(); ++at) {
      const int column = static_cast<int>(at) + 1;
      const std::string_view bytes = cells_[at].bytes;
      if (table.columns[at].kind == ColumnKind::integer) {
        sqlite3_bind_int64(statement, column, cells_[at].integer);
      } else {
        sqlite3_bind_blob64(statement, column, bytes.empty() ? "" : bytes.data(), bytes.size(),
                            SQLITE_STATIC);
      }
    }
    ASSAY_TRY(done(statement, sqlite3_step(statement)));
    ++count;
  }
  return count;
}

Result<std::uint64_t> SqliteTables::load_batch(const TableDeclaration& table, TableRows& rows,
                                               std::uint64_t batch_rows) {
  std::string places;
  for (std::size_t at = 1; at <= table.columns.size(); ++at)
    places += fmt::format("{}?{}", at == 1 ? "" : ",", at);
  Result<SqliteStatement> statement =
      connection_->prepare(fmt::format("INSERT INTO {} VALUES ({})", sql_name(table.name), places));
  if (!statement) return std::unexpected(statement.error());
  ASSAY_TRY(begin());
  Result<std::uint64_t> count = insert(statement->get(), table, rows, batch_rows);
  const Status committed = count ? connection_->run("COMMIT") : Status{};
  const Status ended = rollback();  // nothing is left to roll back after a commit
  if (!committed) return std::unexpected(committed.error());
  if (count && !ended) return std::unexpected(ended.error());
  return count;
}

Result<std::string> SqliteTables::explain(const std::string& sql) {
  Result<SqliteStatement> statement = connection_->prepare("EXPLAIN QUERY PLAN " + sql);
  if (!statement) return std::unexpected(statement.error());
  std::string plan;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement->get())) == SQLITE_ROW) {
    constexpr int kDetail = 3;
    const auto* const text = sqlite3_column_text(statement->get(), kDetail);
    plan += std::string(reinterpret_cast<const char*>(text)) + "\n";
  }
  ASSAY_TRY(done(statement->get(), code));
  return plan;
}

}  // namespace

std::unique_ptr<TableSession> sqlite_tables(std::shared_ptr<SqliteConnection> connection,
                                            std::mutex* writers, std::function<void()> ended) {
  return std::make_unique<SqliteTables>(std::move(connection), writers, std::move(ended));
}

}  // namespace assay
