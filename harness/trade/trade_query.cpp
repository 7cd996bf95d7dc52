#include "harness/trade/trade_query.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/random.h"
#include "workloads/workload.h"

namespace assay {
namespace {

/// Rows that an operation touches where none are given; 0: all of the table.
std::uint64_t declared_rows(TableOperation operation) {
  switch (operation) {
    case TableOperation::point_lookup:
    case TableOperation::range_lookup:
      return 100;
    case TableOperation::join:
      return 10'000;
    case TableOperation::update_rollback:
    case TableOperation::delete_rollback:
      return 1000;
    default:
      return 0;
  }
}

constexpr std::uint64_t kKeysPurpose = 0x6b657973;

/// `count` different keys below `rows`, outside of [first, last], in pseudo-random order. At most
/// half of the keys lie within, so few draws are rejected.
std::vector<std::int64_t> random_keys(const TradeData& data, std::uint64_t count,
                                      const TableQuery& query) {
  const RangeBijection places(data.rows(), derive_seed(data.seed(), kKeysPurpose));
  std::vector<std::int64_t> keys;
  for (std::uint64_t at = 0; keys.size() < count && at < data.rows(); ++at) {
    const auto key = static_cast<std::int64_t>(places.forward(at));
    if (key < query.first || key > query.last) keys.push_back(key);
  }
  return keys;
}

/// The primary keys [middle, middle + rows): in the middle of the table, where there is room.
void touch_middle(const TradeData& data, std::uint64_t rows, TableQuery& query) {
  const std::uint64_t first = std::min(data.rows() / 2, data.rows() - rows);
  query.first = static_cast<std::int64_t>(first);
  query.last = static_cast<std::int64_t>(first + rows) - 1;
}

/// order_ref is uniform below 2^31: about `rows` rows lie in a share rows/all of it.
void touch_order_refs(const TradeData& data, std::uint64_t rows, TableQuery& query) {
  const auto width = static_cast<std::uint64_t>(static_cast<Wide>(kOrderRefs) * rows / data.rows());
  const std::uint64_t first = std::min(kOrderRefs / 2, kOrderRefs - width);
  query.first = static_cast<std::int64_t>(first);
  query.last = static_cast<std::int64_t>(first + width) - 1;
}

template <class Visit>
void each_trade(const TradeData& data, std::int64_t first, std::int64_t last, const Visit& visit) {
  TradeRow row;
  for (std::int64_t at = first; at <= last; ++at) {
    data.fill(kTradeTable, static_cast<std::uint64_t>(at), row);
    visit(row);
  }
}

std::size_t place_of(const TableDeclaration& table, std::string_view column) {
  const auto found = std::ranges::find(table.columns, column, &TableColumn::name);
  ASSAY_CHECK(found != table.columns.end(), "a query of a column that the table does not have");
  return static_cast<std::size_t>(found - table.columns.begin());
}

const TableValue& cell_of(const TradeData& data, const TradeRow& row, std::string_view column) {
  return row.cells()[place_of(data.tables()[kTradeTable], column)];
}

std::uint64_t sum_of(const TradeRow& row) {
  TableChecksum one;
  one.add(row.cells());
  return one.sum;
}

TableAnswer expected_groups(const TradeData& data, const TableQuery& query) {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> groups;
  each_trade(data, query.first, query.last, [&](const TradeRow& row) {
    auto& [count, sum] = groups[cell_of(data, row, query.columns[0]).integer];
    ++count;
    sum += cell_of(data, row, query.columns[1]).integer;
  });
  TableAnswer answer;
  for (const auto& [value, group] : groups) {
    if (group.first < query.at_least) continue;
    ++answer.rows;
    answer.sum += static_cast<std::uint64_t>(value + group.first + group.second);
  }
  return answer;
}

TableAnswer expected_dictionary(const TradeData& data, const TableQuery& query) {
  std::map<std::string, std::uint64_t, std::less<>> counts;
  each_trade(data, query.first, query.last, [&](const TradeRow& row) {
    ++counts[std::string(cell_of(data, row, query.columns[0]).bytes)];
  });
  TableAnswer answer{counts.size(), 0};
  for (const auto& [text, count] : counts) answer.sum += text.size() * count;
  return answer;
}

TableAnswer expected_join(const TradeData& data, const TableQuery& query) {
  const auto parent = std::ranges::find(data.tables(), query.parent, &TableDeclaration::name);
  ASSAY_CHECK(parent != data.tables().end(), "a join with a table that there is not");
  const auto table = static_cast<std::size_t>(parent - data.tables().begin());
  const std::size_t column = place_of(*parent, query.parent_column);
  TableAnswer answer;
  TradeRow found;
  each_trade(data, query.first, query.last, [&](const TradeRow& row) {
    const std::int64_t id = cell_of(data, row, query.columns[0]).integer;
    data.fill(table, static_cast<std::uint64_t>(id), found);
    ++answer.rows;
    answer.sum += static_cast<std::uint64_t>(found.cells()[column].integer +
                                             cell_of(data, row, query.columns[1]).integer);
  });
  return answer;
}

/// Rows of [first, last]: the sum of `query.columns`, or of the whole row where none are named.
TableAnswer expected_rows(const TradeData& data, const TableQuery& query) {
  TableAnswer answer;
  each_trade(data, query.first, query.last, [&](const TradeRow& row) {
    ++answer.rows;
    if (query.columns.empty()) answer.sum += sum_of(row);
    for (const std::string& column : query.columns) {
      const TableValue& cell = cell_of(data, row, column);
      answer.sum += static_cast<std::uint64_t>(cell.integer) + cell.bytes.size();
    }
  });
  return answer;
}

TableAnswer expected_range(const TradeData& data, const TableQuery& query) {
  TableAnswer answer;
  each_trade(data, 0, static_cast<std::int64_t>(data.rows()) - 1, [&](const TradeRow& row) {
    const std::int64_t value = cell_of(data, row, query.columns[0]).integer;
    if (value < query.first || value > query.last) return;
    ++answer.rows;
    answer.sum += sum_of(row);
  });
  return answer;
}

TableAnswer expected_points(const TradeData& data, const TableQuery& query) {
  TableAnswer answer;
  for (const std::int64_t key : query.keys)
    each_trade(data, key, key, [&](const TradeRow& row) {
      ++answer.rows;
      answer.sum += sum_of(row);
    });
  return answer;
}

std::uint64_t span_of(const TableQuery& query) {
  return static_cast<std::uint64_t>(query.last - query.first + 1);
}

}  // namespace

Result<TableQuery> trade_query(const TradeData& data, TableOperation operation,
                               std::uint64_t rows) {
  if (rows > data.rows())
    return fail(ErrorKind::bad_input, fmt::format("{} is to touch {} rows of a table of {}",
                                                  to_string(operation), rows, data.rows()));
  if (operation == TableOperation::create_index && rows != 0 && rows != data.rows())
    return fail(ErrorKind::bad_input, "create-index touches every row of the table");
  const std::uint64_t declared = declared_rows(operation);
  const std::uint64_t most = declared == 0 ? data.rows() : std::min(declared, data.rows());
  const std::uint64_t touched = rows != 0 ? rows : most;
  TableQuery query;
  query.operation = operation;
  query.table = data.tables()[kTradeTable].name;
  query.last = static_cast<std::int64_t>(touched) - 1;  // [0, touched)
  switch (operation) {
    case TableOperation::full_scan:
    case TableOperation::checksum:
      break;
    case TableOperation::read_columns:
      query.columns = {"instrument_id", "quantity", "price"};
      break;
    case TableOperation::group_having:
      query.columns = {"account_id", "quantity"};
      // Accounts with at least twice the mean number of trades.
      query.at_least = static_cast<std::int64_t>(std::max<std::uint64_t>(2, touched / 5000));
      break;
    case TableOperation::dictionary:
      query.columns = {"trader"};
      break;
    case TableOperation::point_lookup:
      query.last = -1;
      query.keys = random_keys(data, touched, query);
      break;
    case TableOperation::range_lookup:
      query.columns = {std::string(kIndexedColumn)};
      touch_order_refs(data, touched, query);
      break;
    case TableOperation::join:
      touch_middle(data, touched, query);
      query.columns = {"instrument_id", "quantity"};
      query.parent = "instrument";
      query.parent_column = "group_id";
      break;
    case TableOperation::update_rollback:
      touch_middle(data, touched, query);
      query.columns = {"quantity"};
      break;
    case TableOperation::delete_rollback:
      touch_middle(data, (touched + 1) / 2, query);
      query.keys = random_keys(data, touched / 2, query);
      break;
    case TableOperation::create_index:
      query.columns = {std::string(kIndexedColumn)};
      break;
  }
  return query;
}

std::uint64_t rows_touched(const TradeData& data, const TableQuery& query) {
  if (query.operation == TableOperation::range_lookup) return expected_range(data, query).rows;
  return span_of(query) + query.keys.size();
}

TableAnswer expected_answer(const TradeData& data, const TableQuery& query) {
  switch (query.operation) {
    case TableOperation::full_scan:
    case TableOperation::read_columns:
    case TableOperation::checksum:
      return expected_rows(data, query);
    case TableOperation::group_having:
      return expected_groups(data, query);
    case TableOperation::dictionary:
      return expected_dictionary(data, query);
    case TableOperation::point_lookup:
      return expected_points(data, query);
    case TableOperation::range_lookup:
      return expected_range(data, query);
    case TableOperation::join:
      return expected_join(data, query);
    case TableOperation::update_rollback:
    case TableOperation::delete_rollback:
    case TableOperation::create_index:
      return {span_of(query) + query.keys.size(), 0};
  }
  return {};
}

}  // namespace assay
