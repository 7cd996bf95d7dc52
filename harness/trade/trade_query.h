// The operations of R3 on the trade data set: which rows each touches, and the answer that every
// store must give, computed from the generator alone.
#pragma once

#include <cstdint>

#include "adapters/table_store.h"
#include "harness/trade/trade_data.h"

namespace assay {

/// The operation over `rows` rows of `data`; 0: as many as README.md declares for it, or all there
/// are where that is fewer. Error bad_input when more are asked for than there are. The same data
/// and `rows` give the same query, whatever the store.
[[nodiscard]] Result<TableQuery> trade_query(const TradeData& data, TableOperation operation,
                                             std::uint64_t rows = 0);

/// Rows of the table of trades that the query reads, changes or indexes, by its definition.
/// Walks the rows of the data set for range-lookup.
[[nodiscard]] std::uint64_t rows_touched(const TradeData& data, const TableQuery& query);

/// The answer by the definitions of table_store.h, from the generator's rows.
[[nodiscard]] TableAnswer expected_answer(const TradeData& data, const TableQuery& query);

}  // namespace assay
