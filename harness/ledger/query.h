// SQL over ledgers: their records as tables of an SQLite database that lives for one query.
//
// prepare() checks the query against empty tables and learns which columns it reads; load() fills
// only those, so that bodies of records take memory only where a query asks for them. The database
// is private and temporary: SQLite keeps it in memory and spills what is more than its cache.
// A query only reads; everything but SELECT is refused, as is whatever reaches outside (ATTACH,
// PRAGMA, extensions). A figure that is {"unknown": why} in the record is NULL.
// One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "adapters/result.h"

namespace assay {

using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string>;

struct QueryTable {
  std::string name;
  std::string what;
  std::vector<std::string> columns;
};
/// Every table that a query may name.
[[nodiscard]] const std::vector<QueryTable>& query_tables();

class LedgerQuery {
 public:
  /// Errors: bad_input with SQLite's text for what it refuses.
  [[nodiscard]] static Result<LedgerQuery> prepare(const std::string& sql);
  LedgerQuery(LedgerQuery&&) noexcept;
  LedgerQuery& operator=(LedgerQuery&&) noexcept;
  ~LedgerQuery();

  /// Adds a ledger; several may be queried together (the column `ledger` is the path).
  [[nodiscard]] Status load(const std::string& path);
  [[nodiscard]] const std::vector<std::string>& columns() const;
  /// The rows in the order of the query. May be called once.
  [[nodiscard]] Status run(const std::function<Status(const std::vector<QueryValue>&)>& row);

 private:
  struct State;
  explicit LedgerQuery(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay
