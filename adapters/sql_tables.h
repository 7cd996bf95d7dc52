// The operations of table_store.h in SQL, for every store that speaks it.
//
// The statements are the same but for the dialect; a store's own session says how it runs one. So
// no operation can mean one thing here and another there. What leaves the store as an answer
// (full-scan, read-columns, point-lookup, range-lookup) is summed here, the rest by the store.
// One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/table_store.h"

namespace assay {

enum class SqlDialect : std::uint8_t { sqlite, postgresql };

/// A name as both dialects take any.
[[nodiscard]] std::string sql_name(std::string_view name);
/// Adds a row's sum to an answer, cell by cell.
inline void add_cell(const TableValue& cell, TableAnswer& answer) {
  answer.sum += static_cast<std::uint64_t>(cell.integer) + cell.bytes.size();
}

class SqlTableSession : public TableSession {
 public:
  explicit SqlTableSession(SqlDialect dialect) : dialect_(dialect) {}

  Status create(std::span<const TableDeclaration> tables) final;
  Status attach(std::span<const TableDeclaration> tables,
                std::span<const TableIndex> indexes) final;
  Result<std::uint64_t> load(std::string_view table, TableRows& rows,
                             std::uint64_t batch_rows) final;
  Result<TableAnswer> run(const TableQuery& query) final;
  Result<std::string> access_path() final;

 protected:
  using Kinds = std::vector<ColumnKind>;
  /// A statement that gives nothing, committed unless a transaction is open.
  virtual Status command(const std::string& sql) = 0;
  /// Begins a transaction that writes; rollback() ends it, whatever happened in it.
  virtual Status begin() = 0;
  virtual Status rollback() = 0;
  /// Every row of `sql`, handed to this process: how many, and the sum of their cells.
  virtual Result<TableAnswer> hand_over(const std::string& sql, const Kinds& kinds) = 0;
  /// The same of the row for each of `keys`, one statement each: its only parameter.
  virtual Result<TableAnswer> look_up(const std::string& sql, const Kinds& kinds,
                                      std::span<const std::int64_t> keys) = 0;
  /// The two numbers of the only row of `sql`.
  virtual Result<TableAnswer> numbers(const std::string& sql) = 0;
  /// Rows that `sql` changed.
  virtual Result<std::uint64_t> change(const std::string& sql) = 0;
  /// The same of the rows of `table` with `keys`.
  virtual Result<std::uint64_t> erase_keys(const std::string& table, const std::string& key,
                                           std::span<const std::int64_t> keys) = 0;
  /// Loads the next rows, `batch_rows` at most, in one commit; how many there were.
  virtual Result<std::uint64_t> load_batch(const TableDeclaration& table, TableRows& rows,
                                           std::uint64_t batch_rows) = 0;
  /// What a store does when a table is loaded, so that its plans know it.
  virtual Status loaded(const std::string& table) = 0;
  /// Entries of an index that was just made.
  virtual Result<std::uint64_t> index_rows(const std::string& table, const std::string& index) = 0;
  /// The plan of `sql`, one step a line.
  virtual Result<std::string> explain(const std::string& sql) = 0;

  /// Notes a statement whose plan belongs to the access path.
  void note(std::string sql) { planned_.push_back(std::move(sql)); }

 private:
  [[nodiscard]] Result<const TableDeclaration*> find(std::string_view table) const;
  Result<TableAnswer> rows(const TableDeclaration& table, const TableQuery& query,
                           const std::string& where);
  Result<TableAnswer> aggregate(const TableDeclaration& table, const TableQuery& query,
                                const std::string& where);
  Result<TableAnswer> undone(const TableDeclaration& table, const TableQuery& query,
                             const std::string& where);
  Result<TableAnswer> make_index(const TableDeclaration& table, const TableQuery& query);
  [[nodiscard]] std::string big_sum(const std::string& of) const;
  [[nodiscard]] std::string length(const std::string& column) const;

  const SqlDialect dialect_;
  std::vector<TableDeclaration> tables_;
  std::vector<std::string> planned_;  ///< of the last run()
  std::vector<std::string> made_;     ///< of the last run(): statements that have no plan
};

}  // namespace assay
