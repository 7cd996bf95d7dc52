#include "harness/trade/table_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr char kRow = 'r';
constexpr char kIndex = 'i';
constexpr std::size_t kNumber = 8;
constexpr std::size_t kPrefix = 3;               ///< table, kind, column of an index (0 of a row)
constexpr std::size_t kIndexBatchRows = 10'000;  ///< entries a commit while an index is made

/// Big-endian, so that the order of keys is the order of numbers.
void append_key_number(std::int64_t number, std::string& out) {
  std::uint64_t bytes = __builtin_bswap64(static_cast<std::uint64_t>(number));
  out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

std::int64_t key_number(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  __builtin_memcpy(&number, bytes.data() + at, sizeof number);
  return static_cast<std::int64_t>(__builtin_bswap64(number));
}

template <class Integer>
void append_plain(Integer number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class Layout final : public TableSession {
 public:
  explicit Layout(Session& session) : session_(session) {}

  Status create(std::span<const TableDeclaration> tables) override {
    tables_.assign(tables.begin(), tables.end());
    return {};
  }
  Status attach(std::span<const TableDeclaration> tables,
                std::span<const TableIndex> indexes) override;
  Result<std::uint64_t> load(std::string_view table, TableRows& rows,
                             std::uint64_t batch_rows) override;
  Result<TableAnswer> run(const TableQuery& query) override;
  Result<std::string> access_path() override {
    std::string text;
    for (const auto& [call, counts] : path_)
      text += fmt::format("{}: {} calls, {} entries\n", call, counts.calls, counts.entries);
    return text;
  }

 private:
  using Cells = std::vector<TableValue>;
  struct Counts {
    std::uint64_t calls = 0;
    std::uint64_t entries = 0;
  };
  struct Table {
    std::size_t number = 0;
    const TableDeclaration* declared = nullptr;
  };
  [[nodiscard]] Result<Table> find(std::string_view name) const;
  [[nodiscard]] static Result<std::size_t> column(const Table& table, std::string_view name);
  [[nodiscard]] static std::string key(const Table& table, char kind, std::size_t column);
  [[nodiscard]] static std::string row_key(const Table& table, std::int64_t id);
  [[nodiscard]] static std::string index_key(const Table& table, std::size_t column,
                                             std::int64_t value, std::int64_t id);
  static void encode(const Table& table, const Cells& cells, std::string& out);
  Status decode(const Table& table, std::string_view key, std::string_view value);
  void note(std::string_view call, const Table& table, std::string_view what,
            std::uint64_t entries);

  template <class Visit>
  Status each_row(const Table& table, std::int64_t first, std::int64_t last, const Visit& visit);
  /// False when there is no such row; else `cells_` are it.
  Result<bool> get_row(const Table& table, std::int64_t id);
  Result<TableAnswer> rows(const Table& table, const TableQuery& query);
  Result<TableAnswer> groups(const Table& table, const TableQuery& query);
  Result<TableAnswer> dictionary(const Table& table, const TableQuery& query);
  Result<TableAnswer> points(const Table& table, const TableQuery& query);
  Result<TableAnswer> range(const Table& table, const TableQuery& query);
  Result<TableAnswer> join(const Table& table, const TableQuery& query);
  Result<TableAnswer> update(const Table& table, const TableQuery& query);
  Result<TableAnswer> erase(const Table& table, const TableQuery& query);
  Result<TableAnswer> make_index(const Table& table, const TableQuery& query);
  Status commit(std::vector<std::pair<std::string, std::string>>& entries);

  Session& session_;
  std::vector<TableDeclaration> tables_;
  std::set<std::pair<std::size_t, std::size_t>> indexes_;  ///< table, column
  std::map<std::string, Counts, std::less<>> path_;
  Cells cells_;  ///< of the row that was decoded last
};

Result<Layout::Table> Layout::find(std::string_view name) const {
  const auto found = std::ranges::find(tables_, name, &TableDeclaration::name);
  if (found == tables_.end())
    return fail(ErrorKind::bad_input, fmt::format("there is no table \"{}\"", name));
  return Table{static_cast<std::size_t>(found - tables_.begin()), &*found};
}

Status Layout::attach(std::span<const TableDeclaration> tables,
                      std::span<const TableIndex> indexes) {
  tables_.assign(tables.begin(), tables.end());
  indexes_.clear();
  for (const TableIndex& index : indexes) {
    const Result<Table> table = find(index.table);
    if (!table) return fail(table.error());
    const Result<std::size_t> of = column(*table, index.column);
    if (!of) return fail(of.error());
    indexes_.emplace(table->number, *of);
  }
  return {};
}

Result<std::size_t> Layout::column(const Table& table, std::string_view name) {
  const auto& columns = table.declared->columns;
  const auto found = std::ranges::find(columns, name, &TableColumn::name);
  if (found == columns.end())
    return fail(ErrorKind::bad_input,
                fmt::format("table {} has no column \"{}\"", table.declared->name, name));
  return static_cast<std::size_t>(found - columns.begin());
}

std::string Layout::key(const Table& table, char kind, std::size_t column) {
  return {static_cast<char>(table.number), kind, static_cast<char>(column)};
}

std::string Layout::row_key(const Table& table, std::int64_t id) {
  std::string bytes = key(table, kRow, 0);
  append_key_number(id, bytes);
  return bytes;
}

std::string Layout::index_key(const Table& table, std::size_t column, std::int64_t value,
                              std::int64_t id) {
  std::string bytes = key(table, kIndex, column);
  append_key_number(value, bytes);
  append_key_number(id, bytes);
  return bytes;
}

void Layout::encode(const Table& table, const Cells& cells, std::string& out) {
  out.clear();
  for (std::size_t at = 1; at < cells.size(); ++at) {
    if (table.declared->columns[at].kind == ColumnKind::integer) {
      append_plain(cells[at].integer, out);
    } else {
      append_plain(static_cast<std::uint32_t>(cells[at].bytes.size()), out);
      out.append(cells[at].bytes);
    }
  }
}

Status Layout::decode(const Table& table, std::string_view key, std::string_view value) {
  const auto damaged = [&] {
    return fail(ErrorKind::wrong_contents,
                fmt::format("a row of table {} is not as it was written: its key has {} bytes, its "
                            "value {}",
                            table.declared->name, key.size(), value.size()));
  };
  const auto& columns = table.declared->columns;
  if (key.size() != kPrefix + kNumber) return damaged();
  cells_.assign(columns.size(), {});
  cells_[0].integer = key_number(key, kPrefix);
  std::size_t at = 0;
  for (std::size_t cell = 1; cell < columns.size(); ++cell) {
    const bool integer = columns[cell].kind == ColumnKind::integer;
    const std::size_t width = integer ? sizeof(std::int64_t) : sizeof(std::uint32_t);
    if (value.size() - at < width) return damaged();
    std::uint32_t bytes = 0;
    if (integer) {
      __builtin_memcpy(&cells_[cell].integer, value.data() + at, width);
    } else {
      __builtin_memcpy(&bytes, value.data() + at, width);
    }
    at += width;
    if (value.size() - at < bytes) return damaged();
    cells_[cell].bytes = value.substr(at, bytes);
    at += bytes;
  }
  return at == value.size() ? Status() : damaged();
}

void Layout::note(std::string_view call, const Table& table, std::string_view what,
                  std::uint64_t entries) {
  Counts& counts = path_[fmt::format("{} {} {}", call, table.declared->name, what)];
  ++counts.calls;
  counts.entries += entries;
}

Status Layout::commit(std::vector<std::pair<std::string, std::string>>& entries) {
  if (entries.empty()) return {};
  std::vector<Mutation> mutations;
  for (const auto& [key, value] : entries) mutations.push_back({Mutation::Kind::put, key, value});
  ASSAY_TRY(session_.apply(mutations));
  entries.clear();
  return {};
}

Result<std::uint64_t> Layout::load(std::string_view name, TableRows& rows,
                                   std::uint64_t batch_rows) {
  const Result<Table> table = find(name);
  if (!table) return fail(table.error());
  if (batch_rows == 0) return fail(ErrorKind::bad_input, "a batch of no rows loads nothing");
  std::vector<std::pair<std::string, std::string>> entries;
  std::uint64_t loaded = 0;
  Cells cells;
  while (rows.next(cells)) {
    ASSAY_CHECK(cells.size() == table->declared->columns.size(), "a row with a cell a column");
    std::string value;
    encode(*table, cells, value);
    entries.emplace_back(row_key(*table, cells[0].integer), std::move(value));
    ++loaded;
    if (entries.size() == batch_rows) ASSAY_TRY(commit(entries));
  }
  ASSAY_TRY(commit(entries));
  return loaded;
}

/// Hands the entries of a scan to a callback that may fail, which ends the scan.
template <class Visit>
class Visitor final : public ScanSink {
 public:
  explicit Visitor(const Visit& visit) : visit_(visit) {}
  bool entry(std::string_view key, std::string_view value) override {
    status_ = visit_(key, value);
    return status_.has_value();
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const Visit& visit_;
  Status status_;
};

template <class Visit>
Result<std::uint64_t> scan(Session& session, std::string_view first, std::string_view last,
                           const Visit& visit) {
  Visitor<Visit> visitor(visit);
  ScanRange range;
  range.first = first;
  range.last = last;
  range.from_start = range.to_end = false;
  const Result<std::uint64_t> visited = session.scan(range, visitor);
  if (!visitor.status()) return fail(visitor.status().error());
  return visited;
}

template <class Visit>
Status Layout::each_row(const Table& table, std::int64_t first, std::int64_t last,
                        const Visit& visit) {
  const auto row = [&](std::string_view key, std::string_view value) -> Status {
    ASSAY_TRY(decode(table, key, value));
    visit();
    return {};
  };
  const Result<std::uint64_t> visited =
      scan(session_, row_key(table, first), row_key(table, last), row);
  if (!visited) return fail(visited.error());
  note("scan", table, "rows", *visited);
  return {};
}

Result<bool> Layout::get_row(const Table& table, std::int64_t id) {
  const std::string key = row_key(table, id);
  std::string_view value;
  const Result<bool> found = session_.get(key, value);
  if (!found) return fail(found.error());
  note("get", table, "row", *found ? 1 : 0);
  if (*found) ASSAY_TRY(decode(table, key, value));
  return *found;
}

std::uint64_t sum_of(const TableValue& cell) {
  return static_cast<std::uint64_t>(cell.integer) + cell.bytes.size();
}

std::uint64_t sum_of(const std::vector<TableValue>& cells) {
  std::uint64_t sum = 0;
  for (const TableValue& cell : cells) sum += sum_of(cell);
  return sum;
}

Result<TableAnswer> Layout::rows(const Table& table, const TableQuery& query) {
  std::vector<std::size_t> places;
  for (const std::string& name : query.columns) {
    const Result<std::size_t> place = column(table, name);
    if (!place) return fail(place.error());
    places.push_back(*place);
  }
  TableAnswer answer;
  ASSAY_TRY(each_row(table, query.first, query.last, [&] {
    ++answer.rows;
    if (places.empty()) answer.sum += sum_of(cells_);
    for (const std::size_t place : places) answer.sum += sum_of(cells_[place]);
  }));
  return answer;
}

Result<TableAnswer> Layout::groups(const Table& table, const TableQuery& query) {
  const Result<std::size_t> by = column(table, query.columns.at(0));
  const Result<std::size_t> of = column(table, query.columns.at(1));
  if (!by) return fail(by.error());
  if (!of) return fail(of.error());
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> groups;
  ASSAY_TRY(each_row(table, query.first, query.last, [&] {
    auto& [count, sum] = groups[cells_[*by].integer];
    ++count;
    sum += cells_[*of].integer;
  }));
  TableAnswer answer;
  for (const auto& [value, group] : groups) {
    if (group.first < query.at_least) continue;
    ++answer.rows;
    answer.sum += static_cast<std::uint64_t>(value + group.first + group.second);
  }
  return answer;
}

Result<TableAnswer> Layout::dictionary(const Table& table, const TableQuery& query) {
  const Result<std::size_t> of = column(table, query.columns.at(0));
  if (!of) return fail(of.error());
  std::map<std::string, std::uint64_t, std::less<>> counts;
  ASSAY_TRY(each_row(table, query.first, query.last, [&] {
    const auto found = counts.find(cells_[*of].bytes);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(cells_[*of].bytes, 1);
    }
  }));
  TableAnswer answer{counts.size(), 0};
  for (const auto& [text, count] : counts) answer.sum += text.size() * count;
  return answer;
}

Result<TableAnswer> Layout::points(const Table& table, const TableQuery& query) {
  TableAnswer answer;
  for (const std::int64_t id : query.keys) {
    const Result<bool> found = get_row(table, id);
    if (!found) return fail(found.error());
    if (!*found) continue;
    ++answer.rows;
    answer.sum += sum_of(cells_);
  }
  return answer;
}

Result<TableAnswer> Layout::range(const Table& table, const TableQuery& query) {
  const Result<std::size_t> of = column(table, query.columns.at(0));
  if (!of) return fail(of.error());
  if (!indexes_.contains({table.number, *of}))
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("{}.{} has no index", table.declared->name, query.columns[0]))
                    .hint("make it first: create-index"));
  std::vector<std::int64_t> ids;
  const auto entry = [&](std::string_view key, std::string_view) -> Status {
    ids.push_back(key_number(key, kPrefix + kNumber));
    return {};
  };
  const std::string last = index_key(table, *of, query.last, -1);  // -1: the largest in key order
  const Result<std::uint64_t> visited =
      scan(session_, index_key(table, *of, query.first, 0), last, entry);
  if (!visited) return fail(visited.error());
  note("scan", table, "index of " + query.columns[0], *visited);
  TableAnswer answer;
  for (const std::int64_t id : ids) {
    const Result<bool> found = get_row(table, id);
    if (!found) return fail(found.error());
    if (!*found)
      return fail(ErrorKind::wrong_contents,
                  fmt::format("the index of {}.{} names row {}, which there is not",
                              table.declared->name, query.columns[0], id));
    ++answer.rows;
    answer.sum += sum_of(cells_);
  }
  return answer;
}

Result<TableAnswer> Layout::join(const Table& table, const TableQuery& query) {
  const Result<Table> parent = find(query.parent);
  if (!parent) return fail(parent.error());
  const Result<std::size_t> by = column(table, query.columns.at(0));
  const Result<std::size_t> of = column(table, query.columns.at(1));
  const Result<std::size_t> from = column(*parent, query.parent_column);
  for (const auto* place : {&by, &of, &from})
    if (!*place) return fail(place->error());
  // A scan's views end with it, and no store need allow a get inside: the children come first.
  std::vector<std::pair<std::int64_t, std::int64_t>> children;
  ASSAY_TRY(each_row(table, query.first, query.last,
                     [&] { children.emplace_back(cells_[*by].integer, cells_[*of].integer); }));
  TableAnswer answer;
  for (const auto& [id, value] : children) {
    const Result<bool> found = get_row(*parent, id);
    if (!found) return fail(found.error());
    if (!*found) continue;
    ++answer.rows;
    answer.sum += static_cast<std::uint64_t>(cells_[*from].integer + value);
  }
  return answer;
}

Result<TableAnswer> Layout::update(const Table& table, const TableQuery& query) {
  const Result<std::size_t> of = column(table, query.columns.at(0));
  if (!of) return fail(of.error());
  if (*of == 0 || indexes_.contains({table.number, *of}))
    return fail(ErrorKind::unsupported,
                fmt::format("{}.{} is a key or indexed: the layout updates other columns",
                            table.declared->name, query.columns[0]));
  std::vector<std::pair<std::string, std::string>> entries;
  ASSAY_TRY(each_row(table, query.first, query.last, [&] {
    ++cells_[*of].integer;
    std::string value;
    encode(table, cells_, value);
    entries.emplace_back(row_key(table, cells_[0].integer), std::move(value));
  }));
  std::vector<Mutation> mutations;
  for (const auto& [key, value] : entries) mutations.push_back({Mutation::Kind::put, key, value});
  ASSAY_TRY(session_.rollback(mutations));
  note("rollback", table, "puts", mutations.size());
  return TableAnswer{mutations.size(), 0};
}

Result<TableAnswer> Layout::erase(const Table& table, const TableQuery& query) {
  std::vector<std::string> keys;
  TableAnswer answer;
  const auto take = [&] {
    ++answer.rows;
    keys.push_back(row_key(table, cells_[0].integer));
    for (const auto& [number, column] : indexes_)
      if (number == table.number)
        keys.push_back(index_key(table, column, cells_[column].integer, cells_[0].integer));
  };
  ASSAY_TRY(each_row(table, query.first, query.last, take));
  for (const std::int64_t id : query.keys) {
    const Result<bool> found = get_row(table, id);
    if (!found) return fail(found.error());
    if (*found) take();
  }
  std::vector<Mutation> mutations;
  for (const std::string& key : keys) mutations.push_back({Mutation::Kind::erase, key, {}});
  ASSAY_TRY(session_.rollback(mutations));
  note("rollback", table, "erases", mutations.size());
  return answer;
}

Result<TableAnswer> Layout::make_index(const Table& table, const TableQuery& query) {
  const Result<std::size_t> of = column(table, query.columns.at(0));
  if (!of) return fail(of.error());
  TableAnswer answer;
  // Read by as many rows as are then written: no store need allow a write during a scan.
  for (std::int64_t first = query.first; first <= query.last;
       first += static_cast<std::int64_t>(kIndexBatchRows)) {
    std::vector<std::pair<std::string, std::string>> entries;
    const std::int64_t last =
        std::min(query.last, first + static_cast<std::int64_t>(kIndexBatchRows) - 1);
    ASSAY_TRY(each_row(table, first, last, [&] {
      entries.emplace_back(index_key(table, *of, cells_[*of].integer, cells_[0].integer), "");
    }));
    std::ranges::sort(entries);
    answer.rows += entries.size();
    note("apply", table, "index of " + query.columns[0], entries.size());
    ASSAY_TRY(commit(entries));
  }
  indexes_.emplace(table.number, *of);
  return answer;
}

Result<TableAnswer> Layout::run(const TableQuery& query) {
  path_.clear();
  const Result<Table> table = find(query.table);
  if (!table) return fail(table.error());
  switch (query.operation) {
    case TableOperation::full_scan:
    case TableOperation::read_columns:
    case TableOperation::checksum:
      return rows(*table, query);
    case TableOperation::group_having:
      return groups(*table, query);
    case TableOperation::dictionary:
      return dictionary(*table, query);
    case TableOperation::point_lookup:
      return points(*table, query);
    case TableOperation::range_lookup:
      return range(*table, query);
    case TableOperation::join:
      return join(*table, query);
    case TableOperation::update_rollback:
      return update(*table, query);
    case TableOperation::delete_rollback:
      return erase(*table, query);
    case TableOperation::create_index:
      return make_index(*table, query);
  }
  return fail(ErrorKind::internal, "a table operation without a name");
}

}  // namespace

Result<std::unique_ptr<TableSession>> table_layout(Session& session, const Capabilities& can,
                                                   std::string_view store) {
  for (const auto& [able, what] : {std::pair{can.ordered, "scan a range of keys"},
                                   std::pair{can.atomic_batches, "commit a batch as one"},
                                   std::pair{can.rollback, "roll back"}})
    if (!able)
      return fail(Error(ErrorKind::unsupported,
                        fmt::format("{} cannot hold the tables: it cannot {}", store, what))
                      .hint("leave the store out"));
  return std::make_unique<Layout>(session);
}

}  // namespace assay
