// The data set against rows that are known, and the layout of every ordered store against answers
// that come from the generator's rows alone.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/trade/table_layout.h"
#include "harness/trade/trade_data.h"
#include "harness/trade/trade_query.h"
#include "workloads/workload.h"

namespace assay {
namespace {

constexpr std::uint64_t kRows = 10'000;
constexpr std::uint64_t kStoredRows = 3000;

std::string shown(const TradeRow& row) {
  std::string text;
  for (std::size_t at = 0; at + 1 < kTradeColumns; ++at) {
    const TableValue& cell = row.cells()[at];
    text += cell.bytes.empty() ? fmt::format("{} ", cell.integer) : fmt::format("{} ", cell.bytes);
  }
  for (const char byte : row.cells().back().bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text + ' ';
}

TEST(TradeData, has_twelve_columns_of_at_least_a_hundred_bytes_and_120_related_tables) {
  const TradeData data = *TradeData::make(kRows, 1);
  EXPECT_EQ(data.tables().size(), 1 + kRelatedTables);
  EXPECT_EQ(data.tables()[kTradeTable].columns.size(), 12U);
  TradeRow row;
  data.fill(kTradeTable, kRows - 1, row);
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < kTradeColumns; ++at)
    bytes += data.tables()[kTradeTable].columns[at].kind == ColumnKind::integer
                 ? 8
                 : row.cells()[at].bytes.size();
  EXPECT_EQ(bytes, kTradeBytes);
  std::set<std::string> names;
  for (const TableDeclaration& table : data.tables()) names.insert(table.name);
  EXPECT_EQ(names.size(), data.tables().size());
}

// Rows and sums from a second implementation, in Python, of what README.md and random.h say.
TEST(TradeData, has_the_rows_and_checksums_that_were_computed_elsewhere) {
  const TradeData data = *TradeData::make(100'000'000, 1);
  TradeRow row;
  data.fill(kTradeTable, 99'999'999, row);
  EXPECT_EQ(shown(row),
            "99999999 9999999932 87 420 0 0 1 8 296163 2086445530 trader-000002 "
            "6c2c1a3b5cf35e860c04c1fd0b18807ec3a65286e65095991d35eecafc66310f ");
  data.fill(kTradeTable, 0, row);
  EXPECT_EQ(shown(row),
            "0 77 442 572 32 1 0 161 367008 376809406 trader-000449 "
            "d176ecad3a6c8fb590a8781569cc6ba81d71a0f82473c2302b53db60a5d09547 ");
  EXPECT_EQ(TradeData::make(1000, 1)->checksum().text(), "1000:1084180733976");
  EXPECT_EQ(TradeData::make(kRows, 1)->checksum().text(), "10000:10701126688302");
}

TEST(TradeData, a_row_depends_on_the_seed_and_its_index_alone) {
  const TradeData small = *TradeData::make(10, 1);
  const TradeData large = *TradeData::make(kTradeRowsMax, 1);
  const TradeData other = *TradeData::make(10, 2);
  TradeRow a;
  TradeRow b;
  TradeRow c;
  small.fill(kTradeTable, 9, a);
  large.fill(kTradeTable, 123'456'789, b);
  large.fill(kTradeTable, 9, b);
  other.fill(kTradeTable, 9, c);
  EXPECT_EQ(shown(a), shown(b));
  EXPECT_NE(shown(a), shown(c));
}

TEST(TradeData, is_skewed_as_declared) {
  const TradeData data = *TradeData::make(kRows, 1);
  std::uint64_t popular = 0;
  std::uint64_t settled = 0;
  TradeRow row;
  for (std::uint64_t index = 0; index < kRows; ++index) {
    data.fill(kTradeTable, index, row);
    popular += row.integer(TradeColumn::instrument_id) < 10 ? 1 : 0;
    settled += row.integer(TradeColumn::status) == 0 ? 1 : 0;
  }
  // The cube root of 10 / 1000 is 0.2154; six standard deviations are 0.025.
  EXPECT_NEAR(static_cast<double>(popular) / kRows, 0.2154, 0.025);
  EXPECT_NEAR(static_cast<double>(settled) / kRows, 0.9, 0.018);
}

TEST(TradeData, refuses_no_rows_and_more_than_its_sums_hold) {
  EXPECT_EQ(TradeData::make(0, 1).error().kind(), ErrorKind::bad_input);
  EXPECT_EQ(TradeData::make(kTradeRowsMax + 1, 1).error().message(),
            "a table of trades has 1 to 1000000000 rows, not 1000000001");
}

TEST(TradeQuery, refuses_more_rows_than_there_are) {
  const TradeData data = *TradeData::make(50, 1);
  EXPECT_EQ(trade_query(data, TableOperation::join, 51).error().message(),
            "join is to touch 51 rows of a table of 50");
}

TEST(TradeQuery, erases_no_row_twice) {
  const TradeData data = *TradeData::make(kRows, 1);
  const TableQuery query = *trade_query(data, TableOperation::delete_rollback);
  std::set<std::int64_t> keys(query.keys.begin(), query.keys.end());
  EXPECT_EQ(keys.size(), 500U);
  for (std::int64_t key = query.first; key <= query.last; ++key) keys.insert(key);
  EXPECT_EQ(keys.size(), 1000U);
  EXPECT_EQ(rows_touched(data, query), 1000U);
}

/// A store of keys and values with the whole data set in the layout.
class LayoutOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    driver_ = *find_driver(GetParam());
    OpenOptions options;
    options.directory = directory_.path();
    options.durability = DurabilityClass::process;
    auto store = driver_->open(options);
    ASSERT_TRUE(store) << store.error().message();
    store_ = std::move(*store);
    session_ = *store_->session();
    tables_ = *table_layout(*session_, driver_->capabilities(), driver_->name());
    ASSERT_TRUE(tables_->create(data_.tables()));
    for (std::size_t table = 0; table < data_.tables().size(); ++table) {
      TradeRows rows(data_, table);
      EXPECT_EQ(*tables_->load(data_.tables()[table].name, rows, 1000), data_.rows(table));
    }
  }
  void TearDown() override {
    tables_.reset();
    session_.reset();
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->close());
    }
  }
  TableChecksum stored(std::size_t table) {
    TableQuery query{TableOperation::checksum, data_.tables()[table].name, 0,
                     static_cast<std::int64_t>(data_.rows(table)) - 1};
    const Result<TableAnswer> answer = tables_->run(query);
    EXPECT_TRUE(answer) << answer.error().message();
    return answer ? TableChecksum{answer->rows, answer->sum} : TableChecksum{};
  }

  TemporaryDirectory directory_;
  TradeData data_ = *TradeData::make(kStoredRows, 1);
  const Driver* driver_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<TableSession> tables_;
};

TEST_P(LayoutOf, gives_every_answer_that_the_generator_gives_and_changes_nothing) {
  for (std::size_t table = 0; table < data_.tables().size(); ++table)
    EXPECT_EQ(stored(table), data_.checksum(table)) << data_.tables()[table].name;
  const TableQuery range = *trade_query(data_, TableOperation::range_lookup);
  const Result<TableAnswer> early = tables_->run(range);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().message(), "trade.order_ref has no index (make it first: create-index)");
  // The index first: the others need it, or have to keep it.
  std::map<std::string, std::string> paths;
  for (int round = 0; round < 2; ++round) {
    for (int at = static_cast<int>(TableOperation::create_index); at >= 0; --at) {
      const auto operation = static_cast<TableOperation>(at);
      const TableQuery query = *trade_query(data_, operation);
      const Result<TableAnswer> answer = tables_->run(query);
      ASSERT_TRUE(answer) << to_string(operation) << ": " << answer.error().message();
      EXPECT_EQ(*answer, expected_answer(data_, query)) << to_string(operation);
      EXPECT_GT(answer->rows, 0U) << to_string(operation);
      const std::string path = *tables_->access_path();
      EXPECT_EQ(paths.emplace(to_string(operation), path).first->second, path);
    }
  }
  EXPECT_EQ(paths["delete-rollback"],
            "get trade row: 500 calls, 500 entries\n"
            "rollback trade erases: 1 calls, 2000 entries\n"
            "scan trade rows: 1 calls, 500 entries\n");
  EXPECT_EQ(stored(kTradeTable), data_.checksum());
  // Another handle knows of tables and index what it is told.
  tables_ = *table_layout(*session_, driver_->capabilities(), driver_->name());
  EXPECT_FALSE(tables_->run(range));
  const std::vector<TableIndex> indexes = {{"trade", "order_ref"}};
  ASSERT_TRUE(tables_->attach(data_.tables(), indexes));
  EXPECT_EQ(*tables_->run(range), expected_answer(data_, range));
  EXPECT_EQ(*tables_->access_path(), paths["range-lookup"]);
}

INSTANTIATE_TEST_SUITE_P(Stores, LayoutOf, ::testing::Values("sqlite", "lmdb", "lode", "rocksdb"));

TEST(TableLayout, refuses_a_store_that_cannot_scan) {
  const Driver* driver = *find_driver("raw-file");
  TemporaryDirectory directory;
  OpenOptions options;
  options.directory = directory.path();
  const auto store = driver->open(options);
  ASSERT_TRUE(store) << store.error().message();
  const auto session = *(*store)->session();
  const auto tables = table_layout(*session, driver->capabilities(), driver->name());
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().message(),
            "raw-file cannot hold the tables: it cannot scan a range of keys (leave the store "
            "out)");
}

}  // namespace
}  // namespace assay
