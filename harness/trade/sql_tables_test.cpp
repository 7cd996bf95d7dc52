// Stores that answer the operations in their own SQL give the answers of the generator, leave
// nothing behind, and answer the same way each time.
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "adapters/registry.h"
#include "adapters/table_store.h"
#include "adapters/temporary_directory.h"
#include "harness/trade/trade_data.h"
#include "harness/trade/trade_query.h"
#include "workloads/workload.h"

namespace assay {
namespace {

constexpr std::uint64_t kRows = 10'000;

class SqlTablesOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Result<const Driver*> driver = find_driver(GetParam());
    if (!driver || (*driver)->version() == "none")
      GTEST_SKIP() << GetParam() << " is not installed";
    EXPECT_TRUE((*driver)->capabilities().tables);
    OpenOptions options;
    options.directory = directory_.path();
    options.durability = DurabilityClass::process;
    auto store = (*driver)->open(options);
    ASSERT_TRUE(store) << store.error().message();
    store_ = std::move(*store);
    renew();
    ASSERT_TRUE(tables_->create(data_.tables()));
    for (std::size_t table = 0; table < data_.tables().size(); ++table) {
      TradeRows rows(data_, table);
      const auto loaded = tables_->load(data_.tables()[table].name, rows, 3000);
      ASSERT_TRUE(loaded) << loaded.error().message();
      ASSERT_EQ(*loaded, data_.rows(table));
    }
  }
  void TearDown() override {
    tables_.reset();
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->close());
    }
  }
  void renew() {
    auto tables = store_->tables()->table_session();
    ASSERT_TRUE(tables) << tables.error().message();
    tables_ = std::move(*tables);
  }
  void expect_answer(const TableQuery& query) {
    const Result<TableAnswer> answer = tables_->run(query);
    ASSERT_TRUE(answer) << to_string(query.operation) << ": " << answer.error().message();
    EXPECT_EQ(*answer, expected_answer(data_, query)) << to_string(query.operation);
    EXPECT_GT(answer->rows, 0U) << to_string(query.operation);
    const Result<std::string> path = tables_->access_path();
    ASSERT_TRUE(path) << path.error().message();
    EXPECT_FALSE(path->empty()) << to_string(query.operation);
    EXPECT_EQ(paths_.emplace(to_string(query.operation), *path).first->second, *path);
  }

  TemporaryDirectory directory_;
  TradeData data_ = *TradeData::make(kRows, 1);
  std::unique_ptr<Store> store_;
  std::unique_ptr<TableSession> tables_;
  std::map<std::string, std::string, std::less<>> paths_;
};

TEST_P(SqlTablesOf, give_every_answer_that_the_generator_gives_and_change_nothing) {
  for (int round = 0; round < 2; ++round) {
    for (int at = static_cast<int>(TableOperation::create_index); at >= 0; --at)
      expect_answer(*trade_query(data_, static_cast<TableOperation>(at)));
  }
  EXPECT_NE(paths_["range-lookup"].find("trade_order_ref"), std::string::npos)
      << "the range is not looked up by the index: " << paths_["range-lookup"];
  // Another handle finds tables and index.
  tables_.reset();
  renew();
  ASSERT_TRUE(tables_->attach(data_.tables(), {}));
  expect_answer(*trade_query(data_, TableOperation::range_lookup));
  expect_answer(*trade_query(data_, TableOperation::checksum));
  // What there is not is refused.
  TableQuery query = *trade_query(data_, TableOperation::read_columns);
  query.columns.push_back("prise");
  EXPECT_EQ(tables_->run(query).error().message(), "table trade has no column \"prise\"");
  query.table = "trades";
  EXPECT_EQ(tables_->run(query).error().message(), "there is no table \"trades\"");
}

INSTANTIATE_TEST_SUITE_P(Stores, SqlTablesOf, ::testing::Values("sqlite", "postgresql"));

}  // namespace
}  // namespace assay
