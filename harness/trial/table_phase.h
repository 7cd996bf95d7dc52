// The tables of a workload in one process: they are loaded, asked, and checked. Over the store's
// own TableStore where it declares one, else in the layout of harness/trade over a Session.
//
// Every answer is held against the generator's (trade_query.h) before its time counts: a difference
// is an error of kind wrong_contents, which disqualifies the arm. One thread; must be gone before
// the store is closed.
#pragma once

#include <memory>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "adapters/table_store.h"
#include "harness/trade/trade_data.h"
#include "harness/trial/cache_policy.h"
#include "harness/trial/phase_figures.h"
#include "harness/trial/phase_meters.h"
#include "harness/trial/run_phase.h"
#include "workloads/model.h"
#include "workloads/workload.h"

namespace assay {

class TableWork {
 public:
  /// Opens a session. `phase`: the process's first one that needs the tables; the indexes that
  /// phases before it have made are there. Everything must outlive the work.
  [[nodiscard]] static Result<std::unique_ptr<TableWork>> open(Store& store, const Driver& driver,
                                                               const Workload& workload,
                                                               std::size_t phase);
  ~TableWork();

  /// Makes and loads every table; then, untimed, reads each again and compares its rows and their
  /// checksum. The sample is the time of the load without that of making the rows.
  [[nodiscard]] Status load(const Phase& phase, PhaseMeters& meters, PhaseFigures& figures,
                            nlohmann::json& told, const OnFraction& progress);
  /// One case: the excluded runs, then phase.operations timed ones, a sample each.
  [[nodiscard]] Status run(const Phase& phase, const std::string& directory, CacheFigures& cache,
                           PhaseMeters& meters, PhaseFigures& figures, nlohmann::json& told);
  /// Rows and checksum of every table against the generator's, and an index that phases have made
  /// against its rows.
  [[nodiscard]] Result<ModelCheck> check();

 private:
  TableWork(TradeData data, const Workload& workload)
      : data_(std::move(data)), workload_(workload) {}
  [[nodiscard]] Result<TableChecksum> stored(std::size_t table);
  [[nodiscard]] Result<std::uint64_t> timed_run(const TableQuery& query,
                                                const TableAnswer& expected);

  TradeData data_;
  const Workload& workload_;
  bool index_ = false;                ///< there is one of order_ref
  std::unique_ptr<Session> session_;  ///< of the layout; outlives the tables
  std::unique_ptr<TableSession> tables_;
};

}  // namespace assay
