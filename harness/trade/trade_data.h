// The trade data set: a table of trades and 120 related tables, made from a seed. Row i is a
// function of (seed, i) alone, so no row is ever kept. README.md has columns and distributions.
// A TradeData is immutable and may be used by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/table_store.h"

namespace assay {

/// Version of what a seed stands for: changes with any value of any row.
inline constexpr std::uint32_t kTradeVersion = 1;
inline constexpr std::uint64_t kTradeRowsMax = 1'000'000'000;  ///< sums stay below 2^63
inline constexpr std::size_t kRelatedTables = 120;
inline constexpr std::size_t kTradeTable = 0;  ///< its place among the tables; related ones follow

/// Columns of the table of trades, in their order.
enum class TradeColumn : std::uint8_t {
  trade_id,
  executed_us,
  instrument_id,
  account_id,
  venue_id,
  side,
  status,
  quantity,
  price,
  order_ref,
  trader,
  payload,
};
inline constexpr std::size_t kTradeColumns = 12;
inline constexpr std::uint64_t kTradeBytes = 125;  ///< logical, a row: integers count 8
inline constexpr std::string_view kIndexedColumn = "order_ref";      ///< that create-index is of
inline constexpr std::uint64_t kOrderRefs = std::uint64_t{1} << 31;  ///< order_ref lies below

/// A row of any table of the set. Its cells point into it, so it is neither copied nor moved.
class TradeRow {
 public:
  TradeRow() = default;
  TradeRow(const TradeRow&) = delete;
  TradeRow& operator=(const TradeRow&) = delete;
  [[nodiscard]] std::span<const TableValue> cells() const { return {cells_.data(), count_}; }
  [[nodiscard]] std::int64_t integer(TradeColumn column) const {
    return cells_[static_cast<std::size_t>(column)].integer;
  }

 private:
  friend class TradeData;
  std::array<TableValue, kTradeColumns> cells_{};
  std::size_t count_ = 0;
  std::array<char, 32> text_{};
  std::array<char, 32> noise_{};
};

/// "rows:sum" of a table: how many rows it has, and the sum over them of every integer and of the
/// length of every value of bytes.
struct TableChecksum {
  std::uint64_t rows = 0;
  std::uint64_t sum = 0;
  void add(std::span<const TableValue> cells);
  [[nodiscard]] std::string text() const;
  bool operator==(const TableChecksum&) const = default;
};

class TradeData {
 public:
  /// `rows` trades: error bad_input for none or more than kTradeRowsMax.
  [[nodiscard]] static Result<TradeData> make(std::uint64_t rows, std::uint64_t seed);

  /// The table of trades, then the related ones.
  [[nodiscard]] std::span<const TableDeclaration> tables() const { return tables_; }
  [[nodiscard]] std::uint64_t rows(std::size_t table = kTradeTable) const { return rows_[table]; }
  /// Row `index` of a table; its primary key is `index`.
  void fill(std::size_t table, std::uint64_t index, TradeRow& row) const;
  /// Makes every row of the table once.
  [[nodiscard]] TableChecksum checksum(std::size_t table = kTradeTable) const;
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  TradeData(std::uint64_t rows, std::uint64_t seed);
  void fill_trade(std::uint64_t index, TradeRow& row) const;
  void fill_related(std::size_t table, std::uint64_t index, TradeRow& row) const;

  std::uint64_t seed_;
  std::vector<TableDeclaration> tables_;
  std::vector<std::uint64_t> rows_;
};

/// The rows of one table, to be loaded.
class TradeRows final : public TableRows {
 public:
  TradeRows(const TradeData& data, std::size_t table) : data_(data), table_(table) {}
  bool next(std::vector<TableValue>& row) override;

 private:
  const TradeData& data_;
  std::size_t table_;
  std::uint64_t next_ = 0;
  TradeRow row_;
};

}  // namespace assay
