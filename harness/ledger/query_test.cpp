#include "harness/ledger/query.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_lines_test.h"

namespace assay {
namespace {

using namespace ledger_lines;

class Query : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = LedgerWriter::open(path_);
    nlohmann::json plan = plan_body("r", "m1");
    plan["provenance"]["cpu"] = {{"model", {{"unknown", "no such file"}}}, {"cores", 2}};
    ASSERT_TRUE(writer->append("plan", plan));
    for (std::uint64_t round = 0; round < 3; ++round) {
      nlohmann::json trial = trial_body("r", "a", round, "x", "x");
      trial["phases"] = {
          {{"name", "run"}, {"classes", {{"get", {{"count", 10}, {"p50_ns", 100 + round}}}}}}};
      ASSERT_TRUE(writer->append("trial", trial));
    }
    ASSERT_TRUE(writer->append("verdict", verdict_body("r", 3)));
  }

  /// Rows as "1|a|1.5;2|b|-".
  [[nodiscard]] std::string ask(const std::string& sql) const {
    auto query = LedgerQuery::prepare(sql);
    if (!query) return query.error().message();
    EXPECT_TRUE(query->load(path_));
    std::string all;
    const Status done = query->run([&](const std::vector<QueryValue>& values) -> Status {
      std::string row;
      for (const QueryValue& value : values) {
        if (!row.empty()) row += '|';
        if (const auto* number = std::get_if<std::int64_t>(&value)) row += std::to_string(*number);
        if (const auto* real = std::get_if<double>(&value)) row += fmt::format("{}", *real);
        if (const auto* text = std::get_if<std::string>(&value)) row += *text;
        if (std::holds_alternative<std::monostate>(value)) row += '-';
      }
      all += (all.empty() ? "" : ";") + row;
      return {};
    });
    return done ? all : done.error().message();
  }

  const TemporaryDirectory own_;
  const std::string path_ = own_.file("ledger.jsonl");
};

TEST_F(Query, reads_every_table) {
  EXPECT_EQ(ask("SELECT count(*) FROM records"), "5");
  EXPECT_EQ(ask("SELECT line, kind, machine FROM records WHERE kind = 'plan'"), "1|plan|m1");
  EXPECT_EQ(ask("SELECT arm, round, status FROM trials WHERE round > 0"), "a|1|ok;a|2|ok");
  EXPECT_EQ(ask("SELECT phase, class, sum(count), max(p50_ns) FROM latencies"), "run|get|30|102");
  EXPECT_EQ(ask("SELECT arm, position, value FROM row_values WHERE arm = 'b' LIMIT 2"),
            "b|0|1.5;b|1|1.5");
  EXPECT_EQ(ask("SELECT cpu, cores FROM plans"), "-|2");
  EXPECT_EQ(ask("SELECT value FROM provenance WHERE path = 'cpu.cores'"), "2");
  EXPECT_EQ(ask("SELECT json_extract(body, '$.outcome') FROM records WHERE kind = 'verdict'"),
            "judged");
  for (const QueryTable& table : query_tables()) {
    EXPECT_EQ(ask("SELECT count(*) >= 0 FROM \"" + table.name + "\""), "1") << table.name;
    EXPECT_EQ(ask("SELECT * FROM " + table.name + " LIMIT 1").find("SQLite:"), std::string::npos);
  }
}

TEST_F(Query, joins_ledgers_that_are_loaded_together) {
  auto query = LedgerQuery::prepare("SELECT count(DISTINCT ledger), count(*) FROM trials");
  ASSERT_TRUE(query->load(path_));
  const std::string other = own_.file("other.jsonl");
  auto writer = LedgerWriter::open(other);
  ASSERT_TRUE(writer->append("trial", trial_body("s", "a", 0, "x", "x")));
  ASSERT_TRUE(query->load(other));
  std::vector<QueryValue> row;
  ASSERT_TRUE(query->run([&](const std::vector<QueryValue>& values) -> Status {
    row = values;
    return {};
  }));
  EXPECT_EQ(std::get<std::int64_t>(row[0]), 2);
  EXPECT_EQ(std::get<std::int64_t>(row[1]), 4);
}

TEST_F(Query, only_reads) {
  for (const std::string sql :
       {"DELETE FROM trials", "INSERT INTO trials (arm) VALUES ('x')", "DROP TABLE trials",
        "ATTACH 'other.db' AS o", "PRAGMA user_version = 1", "CREATE TABLE t (x)",
        "SELECT load_extension('x')", "VACUUM INTO 'copy.db'"}) {
    const auto query = LedgerQuery::prepare(sql);
    ASSERT_FALSE(query) << sql;
    EXPECT_EQ(query.error().kind(), ErrorKind::bad_input);
    EXPECT_NE(query.error().message().find("only reads"), std::string::npos)
        << query.error().message();
  }
}

TEST_F(Query, tells_what_sqlite_says_and_the_nearest_name) {
  EXPECT_EQ(ask("SELECT arm FROM trails"),
            "SQLite: no such table: trails (did you mean trials? `assay ledger query --tables` "
            "lists tables and columns)");
  EXPECT_NE(ask("SELECT atempt FROM trials").find("no such column: atempt (did you mean attempt?"),
            std::string::npos);
  EXPECT_NE(ask("SELEC").find("syntax error"), std::string::npos);
  EXPECT_NE(ask("").find("no query"), std::string::npos);
  EXPECT_NE(ask("SELECT 1; SELECT 2").find("one query at a time"), std::string::npos);
  EXPECT_EQ(ask("SELECT 1;  "), "1");
  EXPECT_NE(ask("SELECT json('{') FROM trials").find("malformed JSON"), std::string::npos);
}

}  // namespace
}  // namespace assay
