// A life of a store some of whose calls fail: goes on after every error, and reads what is there.
//
// It opens, makes transactions with a checkpoint and a sync of the whole store now and then, reads
// everything while the fault may still be there, says that the disk works again, makes a few more
// transactions, reads everything again, says that power is lost, and closes. A transaction whose
// error the store reported stays begun in the receipts: it may be there or not.
// Runs in a fork of its own, with one thread of ours for each writer of the history.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify::error {

struct LifeOrder {
  const Driver* driver = nullptr;
  OpenOptions options;
  const History* history = nullptr;
  std::uint64_t first = 1;               ///< number of the first transaction
  std::uint64_t transactions = 14;       ///< of all writers, while the fault may come
  std::uint64_t transactions_after = 4;  ///< when the disk works again
  std::vector<std::uint64_t> crashes;    ///< as Acknowledgements has them
};

struct LifeReport {
  bool opened = false;
  std::uint64_t failed = 0;         ///< operations that the store reported as failed
  std::vector<std::string> errors;  ///< the first of them: "transaction 3: ..."
  std::uint64_t unread = 0;         ///< of the two readings of everything, refused with an error
  Judgement worst;                  ///< of those that were not refused
  std::string wrong;                ///< a key that did not hold what its commit had just written
};
[[nodiscard]] nlohmann::json to_json(const LifeReport& report);
[[nodiscard]] Result<LifeReport> life_report_from_json(const nlohmann::json& json);

[[nodiscard]] LifeReport live_with_errors(const LifeOrder& order, SharedReceipts& receipts);

}  // namespace assay::qualify::error
