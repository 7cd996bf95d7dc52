#include "harness/trial/table_phase.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/clock.h"
#include "harness/provenance/sha256.h"
#include "harness/trade/table_layout.h"
#include "harness/trade/trade_query.h"

namespace assay {
namespace {

/// The rows of one table on their way into the store: counted, summed, and the making of them
/// timed, which is not the store's.
class CountedRows final : public TableRows {
 public:
  CountedRows(const TradeData& data, std::size_t table, const OnFraction& progress)
      : rows_(data, table), total_(data.rows(table)), progress_(progress) {}
  bool next(std::vector<TableValue>& row) override {
    const std::uint64_t before = ticks_now();
    const bool more = rows_.next(row);
    if (more) checksum_.add(row);
    making_ticks_ += ticks_between(before, ticks_now());
    if (more && checksum_.rows % kTellEvery == 0 && progress_)
      progress_(static_cast<double>(checksum_.rows) / static_cast<double>(total_));
    return more;
  }
  [[nodiscard]] const TableChecksum& checksum() const { return checksum_; }
  [[nodiscard]] std::uint64_t making_ticks() const { return making_ticks_; }

 private:
  static constexpr std::uint64_t kTellEvery = 1U << 16;
  TradeRows rows_;
  std::uint64_t total_;
  const OnFraction& progress_;
  TableChecksum checksum_;
  std::uint64_t making_ticks_ = 0;
};

std::uint64_t data_seed(const Workload& workload) {
  const auto load = std::ranges::find(workload.phases, PhaseKind::load_tables, &Phase::kind);
  ASSAY_CHECK(load != workload.phases.end(), "tables that are asked are loaded first");
  return load->data_seed;
}

bool has_index_before(const Workload& workload, std::size_t phase) {
  return std::any_of(
      workload.phases.begin(), workload.phases.begin() + static_cast<std::ptrdiff_t>(phase),
      [](const Phase& past) {
        return past.kind == PhaseKind::table && past.operation == TableOperation::create_index;
      });
}

Error differs(std::string_view what, const TableChecksum& found, const TableChecksum& expected) {
  return Error(ErrorKind::wrong_contents, fmt::format("{} gave {}, the data set has {} (rows:sum)",
                                                      what, found.text(), expected.text()));
}

}  // namespace

TableWork::~TableWork() = default;

Result<std::unique_ptr<TableWork>> TableWork::open(Store& store, const Driver& driver,
                                                   const Workload& workload, std::size_t phase) {
  Result<TradeData> data = TradeData::make(workload.keys.count, data_seed(workload));
  if (!data) return fail(data.error());
  std::unique_ptr<TableWork> work(new TableWork(std::move(*data), workload));
  const Capabilities can = driver.capabilities();
  if (can.tables) {
    TableStore* own = store.tables();
    if (own == nullptr)
      return fail(ErrorKind::internal,
                  fmt::format("{} declares tables of its own and opens none", driver.name()));
    Result<std::unique_ptr<TableSession>> tables = own->table_session();
    if (!tables) return fail(tables.error());
    work->tables_ = std::move(*tables);
  } else {
    Result<std::unique_ptr<Session>> session = store.session();
    if (!session) return fail(session.error());
    work->session_ = std::move(*session);
    Result<std::unique_ptr<TableSession>> tables =
        table_layout(*work->session_, can, driver.name());
    if (!tables) return fail(tables.error());
    work->tables_ = std::move(*tables);
  }
  if (phase < workload.phases.size() && workload.phases[phase].kind == PhaseKind::load_tables)
    return work;
  work->index_ = has_index_before(workload, phase);
  std::vector<TableIndex> indexes;
  if (work->index_)
    indexes.push_back({work->data_.tables()[kTradeTable].name, std::string(kIndexedColumn)});
  ASSAY_TRY(work->tables_->attach(work->data_.tables(), indexes));
  return work;
}

Result<TableChecksum> TableWork::stored(std::size_t table) {
  TableQuery query;
  query.operation = TableOperation::checksum;
  query.table = data_.tables()[table].name;
  query.last = static_cast<std::int64_t>(data_.rows(table)) - 1;
  const Result<TableAnswer> answer = tables_->run(query);
  if (!answer) return fail(answer.error());
  return TableChecksum{answer->rows, answer->sum};
}

Status TableWork::load(const Phase& phase, PhaseMeters& meters, PhaseFigures& figures,
                       nlohmann::json& told, const OnFraction& progress) {
  std::vector<TableChecksum> loaded;
  std::uint64_t ticks = 0;
  std::uint64_t making = 0;
  meters.begin();
  const std::uint64_t start = ticks_now();
  ASSAY_TRY(tables_->create(data_.tables()));
  for (std::size_t table = 0; table < data_.tables().size(); ++table) {
    CountedRows rows(data_, table, progress);
    const Result<std::uint64_t> count =
        tables_->load(data_.tables()[table].name, rows, phase.load_batch);
    if (!count) return fail(count.error());
    if (*count != data_.rows(table))
      return fail(ErrorKind::wrong_contents,
                  fmt::format("table {} was loaded with {} rows instead of {}",
                              data_.tables()[table].name, *count, data_.rows(table)));
    making += rows.making_ticks();
    loaded.push_back(rows.checksum());
    figures.operations += *count;
  }
  ticks = ticks_between(start, ticks_now());
  meters.end();
  for (std::size_t table = 0; table < loaded.size(); ++table) {
    const Result<TableChecksum> found = stored(table);
    if (!found) return fail(found.error());
    if (*found != loaded[table])
      return fail(differs("table " + data_.tables()[table].name, *found, loaded[table]));
  }
  figures.wall_ns = TickScale::get().to_ns(ticks);
  figures.mutations = figures.operations;
  figures.logical_bytes_written = data_.rows() * kTradeBytes;
  const std::uint64_t store_ns = TickScale::get().to_ns(ticks - std::min(making, ticks));
  figures.store.add(figures.operations, store_ns);
  figures.classes[kTableClass] = std::make_unique<Histogram>();
  figures.classes[kTableClass]->record(store_ns);
  told = {{"operation", "load"},
          {"samples_ns", {store_ns}},
          {"rows_touched", data_.rows()},
          {"checksum", loaded[kTradeTable].text()},
          {"data_seed", data_.seed()},
          {"tables", loaded.size()},
          {"making_rows_ns", TickScale::get().to_ns(making)}};
  return {};
}

/// Nanoseconds of one run whose answer was right.
Result<std::uint64_t> TableWork::timed_run(const TableQuery& query, const TableAnswer& expected) {
  const std::uint64_t before = ticks_now();
  const Result<TableAnswer> answer = tables_->run(query);
  const std::uint64_t ticks = ticks_between(before, ticks_now());
  if (!answer) return fail(answer.error());
  if (*answer != expected)
    return fail(differs(to_string(query.operation), {answer->rows, answer->sum},
                        {expected.rows, expected.sum}));
  return TickScale::get().to_ns(ticks);
}

Status TableWork::run(const Phase& phase, const std::string& directory, CacheFigures& cache,
                      PhaseMeters& meters, PhaseFigures& figures, nlohmann::json& told) {
  const Result<TableQuery> query = trade_query(data_, phase.operation, phase.rows);
  if (!query) return fail(query.error());
  const TableAnswer expected = expected_answer(data_, *query);
  ASSAY_TRY(settle_cache(phase, directory, cache));
  for (std::uint64_t excluded = 0; excluded < phase.warm_up.operations; ++excluded) {
    const Result<std::uint64_t> ns = timed_run(*query, expected);
    if (!ns) return fail(ns.error());
    ++figures.warm_up.operations;
    figures.warm_up.wall_ns += *ns;
  }
  std::string path;
  std::vector<std::uint64_t> samples;
  figures.classes[kTableClass] = std::make_unique<Histogram>();
  meters.begin();
  for (std::uint64_t measured = 0; measured < phase.operations; ++measured) {
    const Result<std::uint64_t> ns = timed_run(*query, expected);
    if (!ns) return fail(ns.error());
    samples.push_back(*ns);
    figures.wall_ns += *ns;
    figures.classes[kTableClass]->record(*ns);
    const Result<std::string> taken = tables_->access_path();
    if (!taken) return fail(taken.error());
    if (measured > 0 && *taken != path)
      return fail(ErrorKind::void_experiment,
                  fmt::format("{} was answered in another way than before:\n{}instead of:\n{}",
                              to_string(phase.operation), *taken, path));
    path = *taken;
  }
  meters.end();
  index_ = index_ || phase.operation == TableOperation::create_index;
  figures.operations = phase.operations;
  figures.store.add(figures.operations, figures.wall_ns);
  told = {{"operation", to_string(phase.operation)},
          {"samples_ns", samples},
          {"rows_touched", phase.operation == TableOperation::range_lookup
                               ? expected.rows
                               : rows_touched(data_, *query)},
          {"answer", {{"rows", expected.rows}, {"sum", expected.sum}}},
          {"access_path", path},
          {"access_path_digest", sha256_hex(path)}};
  return {};
}

Result<ModelCheck> TableWork::check() {
  ModelCheck check;
  for (std::size_t table = 0; table < data_.tables().size(); ++table) {
    const Result<TableChecksum> found = stored(table);
    if (!found) return fail(found.error());
    const TableChecksum expected = data_.checksum(table);
    check.entries += found->rows;
    check.expected_entries += expected.rows;
    if (table == kTradeTable) {
      check.digest = found->text();
      check.expected_digest = expected.text();
    }
    if (*found != expected && check.first_difference.empty())
      check.first_difference =
          differs("table " + data_.tables()[table].name, *found, expected).what();
  }
  if (index_) {
    const Result<TableQuery> query = trade_query(data_, TableOperation::range_lookup);
    if (!query) return fail(query.error());
    const Result<std::uint64_t> run = timed_run(*query, expected_answer(data_, *query));
    if (!run && run.error().kind() != ErrorKind::wrong_contents) return fail(run.error());
    if (!run && check.first_difference.empty()) check.first_difference = run.error().what();
  }
  check.ok = check.first_difference.empty();
  return check;
}

}  // namespace assay
