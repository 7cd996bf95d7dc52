// Tables, for stores that answer table operations in a query language of their own.
//
// A store that has one says so in its Capabilities (`tables`) and hands out a TableStore with
// Store::tables(). Every other store gets the declared layout of harness/trade over its Session.
// Both must give the same answers: rows and sums are defined here for every operation, so that
// answers are compared before times are. What an operation's name leaves open (which rows, which
// columns) its TableQuery says.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"

namespace assay {

enum class ColumnKind : std::uint8_t { integer, bytes };

struct TableColumn {
  std::string name;
  ColumnKind kind = ColumnKind::integer;
};

/// The first column is an integer and the primary key; every column has a value in every row.
struct TableDeclaration {
  std::string name;
  std::vector<TableColumn> columns;
};

/// An index that was made with create_index.
struct TableIndex {
  std::string table;
  std::string column;
};

/// One cell: the member that its column's kind names. Integers are not negative and below 2^62.
struct TableValue {
  std::int64_t integer = 0;
  std::string_view bytes = {};
};

/// Rows to load, in the order of the primary key.
class TableRows {
 public:
  virtual ~TableRows() = default;
  /// One value a column; false at the end. The views are valid until the next call.
  virtual bool next(std::vector<TableValue>& row) = 0;
};

/// The sum of a row: its integers and the lengths of its bytes.
enum class TableOperation : std::uint8_t {
  full_scan,        ///< rows of [first, last], whole, handed to the caller; sum of the rows' sums
  read_columns,     ///< the same of `columns` alone
  checksum,         ///< as full_scan, but only count and sum need to leave the store
  group_having,     ///< of [first, last], by columns[0]: count and sum of columns[1]; groups of at
                    ///< least `at_least` rows: sum of their value, count and sum
  dictionary,       ///< of [first, last]: distinct bytes of columns[0]; sum of length x count
  point_lookup,     ///< the whole row of each of `keys`, one by one; sum of the rows' sums
  range_lookup,     ///< whole rows with columns[0] in [first, last], by its index; sum of sums
  join,             ///< rows of [first, last], each with the row of `parent` whose key is its
                    ///< columns[0]; sum of the parent's `parent_column` and the row's columns[1]
  update_rollback,  ///< columns[0] + 1 in rows of [first, last], rolled back; sum 0
  delete_rollback,  ///< rows of [first, last] and of each of `keys`, rolled back; sum 0
  create_index,     ///< on columns[0], of all rows, as durable as a commit; sum 0
};

/// [first, last] is of the primary key (range_lookup: of columns[0]), both inclusive.
struct TableQuery {
  TableOperation operation = TableOperation::full_scan;
  std::string table;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::vector<std::int64_t> keys = {};
  std::vector<std::string> columns = {};
  std::string parent = {};
  std::string parent_column = {};
  std::int64_t at_least = 0;
};

struct TableAnswer {
  std::uint64_t rows = 0;  ///< of the answer; changed or indexed ones where it has none
  std::uint64_t sum = 0;
  bool operator==(const TableAnswer&) const = default;
};

/// One thread's handle. Operations that change nothing in the end leave nothing behind.
class TableSession {
 public:
  virtual ~TableSession() = default;
  /// Makes the tables, empty.
  virtual Status create(std::span<const TableDeclaration> tables) = 0;
  /// Tables and indexes that an earlier handle made, in this process or another one, and that are
  /// there; called instead of create(). The default leaves it to the store to know them.
  virtual Status attach(std::span<const TableDeclaration> tables,
                        std::span<const TableIndex> indexes);
  /// Loads a table that was made, `batch_rows` rows a commit, each as durable as the class that the
  /// store was opened with. Returns the rows loaded.
  virtual Result<std::uint64_t> load(std::string_view table, TableRows& rows,
                                     std::uint64_t batch_rows) = 0;
  virtual Result<TableAnswer> run(const TableQuery& query) = 0;
  /// How the last run() was answered, one step a line, without anything that differs between two
  /// runs over the same data: the plan of each statement, or the calls of the store.
  virtual Result<std::string> access_path() = 0;
};

inline Status TableSession::attach(std::span<const TableDeclaration> /*tables*/,
                                   std::span<const TableIndex> /*indexes*/) {
  return {};
}

/// What Store::tables() hands out; lives as long as its store. Its sessions must be gone before the
/// store is closed.
class TableStore {
 public:
  virtual ~TableStore() = default;
  virtual Result<std::unique_ptr<TableSession>> table_session() = 0;
};

}  // namespace assay
