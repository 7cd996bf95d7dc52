#include "adapters/postgresql/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace assay::postgresql {
namespace {

constexpr std::uint64_t kAtOnceMost = 256;       // entries of a scan in one answer
constexpr std::uint64_t kFetchBytes = 1U << 20;  // of a part of a long scan, about
constexpr std::uint64_t kFetchFirst = 64;        // entries of its first part

void append_number(std::uint32_t number, std::string& into) {
  const std::uint32_t big = __builtin_bswap32(number);
  into.append(reinterpret_cast<const char*>(&big), sizeof big);
}

/// An array in the binary format: one dimension, from 1 on, no NULL.
class Array {
 public:
  explicit Array(Oid element) : element_(element) {}
  void add(std::string_view value) {
    append_number(static_cast<std::uint32_t>(value.size()), values_);
    values_.append(value);
    ++count_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string bytes() const {
    std::string text;
    text.reserve(values_.size() + 20);
    for (const std::uint32_t number : {1U, 0U, static_cast<std::uint32_t>(element_), count_, 1U})
      append_number(number, text);
    return text + values_;
  }

 private:
  Oid element_;
  std::uint32_t count_ = 0;
  std::string values_;
};

/// A u64 key, big-endian, as a bigint: flipping the top bit keeps the unsigned order.
void flip_sign(std::string& key) {
  key[0] = static_cast<char>(static_cast<unsigned char>(key[0]) ^ 0x80U);
}

}  // namespace

KeyValueSession::KeyValueSession(std::unique_ptr<Connection> connection, const EntryLimits& limits,
                                 bool u64, std::atomic<int>& open_sessions)
    : connection_(std::move(connection)),
      limits_(limits),
      u64_(u64),
      open_sessions_(open_sessions) {
  open_sessions_.fetch_add(1);
}

Result<std::unique_ptr<Session>> KeyValueSession::make(std::unique_ptr<Connection> connection,
                                                       const EntryLimits& limits, bool u64,
                                                       std::atomic<int>& open_sessions) {
  std::unique_ptr<KeyValueSession> session(
      new KeyValueSession(std::move(connection), limits, u64, open_sessions));
  ASSAY_TRY(session->prepare());
  return session;
}

Status KeyValueSession::prepare() {
  // A plan is made once and kept. One that was made while the table had a page would read the whole
  // table at every get until statistics are taken again.
  ASSAY_TRY(connection_->command("SET enable_seqscan = off"));
  const Oid key = u64_ ? kInt8 : kBytea;
  const Oid keys = u64_ ? kInt8Array : kByteaArray;
  const std::string put = "ON CONFLICT (k) DO UPDATE SET v = excluded.v";
  struct Statement {
    const char* name;
    std::string sql;
    std::vector<Oid> types;
  };
  const Statement statements[] = {
      {"get", "SELECT v FROM kv WHERE k = $1", {key}},
      {"put", "INSERT INTO kv VALUES ($1, $2) " + put, {key, kBytea}},
      {"erase", "DELETE FROM kv WHERE k = $1", {key}},
      {"put_all", "INSERT INTO kv SELECT * FROM unnest($1, $2) " + put, {keys, kByteaArray}},
      {"erase_all", "DELETE FROM kv WHERE k = ANY($1)", {keys}},
      {"change_all",
       "WITH gone AS (DELETE FROM kv WHERE k = ANY($3)) "
       "INSERT INTO kv SELECT * FROM unnest($1, $2) " +
           put,
       {keys, kByteaArray, keys}},
  };
  for (const Statement& one : statements)
    ASSAY_TRY(connection_->prepare(one.name, one.sql, one.types));
  return {};
}

std::string_view KeyValueSession::key_of(std::string_view key) {
  if (!u64_) return key;
  key_.assign(key);
  flip_sign(key_);
  return key_;
}

Result<bool> KeyValueSession::get(std::string_view key, std::string_view& value) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  const std::array<std::string_view, 1> values{key_of(key)};
  Result<Rows> rows = connection_->execute("get", values);
  if (!rows) return std::unexpected(rows.error());
  if (rows->count() == 0) return false;
  held_.emplace(std::move(*rows));
  value = held_->cell(0, 0);
  return true;
}

// Two writers that lock the same rows in different orders: the server ends one of them, which then
// goes again, as the manual advises.
Status KeyValueSession::change(const char* statement, std::span<const std::string_view> values) {
  while (true) {
    const Result<Rows> done = connection_->execute(statement, values);
    if (done) return {};
    if (!connection_->met_another() || PQtransactionStatus(connection_->handle()) != PQTRANS_IDLE)
      return std::unexpected(done.error());
  }
}

Status KeyValueSession::put(std::string_view key, std::string_view value) {
  if (!limits_.accepts(key, value)) return fail(limits_.refusal(key, value));
  const std::array<std::string_view, 2> values{key_of(key), value};
  return change("put", values);
}

Status KeyValueSession::erase(std::string_view key) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  const std::array<std::string_view, 1> values{key_of(key)};
  return change("erase", values);
}

// One statement: the last change of a key is the one that a batch leaves. In the order of the keys,
// so that batches do not lock rows crosswise.
Status KeyValueSession::change_all(std::span<const Mutation> mutations) {
  std::vector<const Mutation*> ordered;
  ordered.reserve(mutations.size());
  for (const Mutation& one : mutations) {
    const std::string_view value = one.kind == Mutation::Kind::put ? one.value : std::string_view();
    if (!limits_.accepts(one.key, value)) return fail(limits_.refusal(one.key, value));
    ordered.push_back(&one);
  }
  std::ranges::stable_sort(ordered, {}, [](const Mutation* one) { return one->key; });
  Array keys(u64_ ? kInt8 : kBytea);
  Array put_values(kBytea);
  Array gone(u64_ ? kInt8 : kBytea);
  for (std::size_t at = 0; at < ordered.size(); ++at) {
    const Mutation& one = *ordered[at];
    if (at + 1 < ordered.size() && ordered[at + 1]->key == one.key) continue;
    if (one.kind == Mutation::Kind::erase) {
      gone.add(key_of(one.key));
    } else {
      keys.add(key_of(one.key));
      put_values.add(one.value);
    }
  }
  const std::array<std::string, 3> bytes{keys.bytes(), put_values.bytes(), gone.bytes()};
  const std::array<std::string_view, 3> values{bytes[0], bytes[1], bytes[2]};
  if (keys.empty()) return change("erase_all", std::span(values).subspan(2));
  if (gone.empty()) return change("put_all", std::span(values).first(2));
  return change("change_all", values);
}

Status KeyValueSession::apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return {};
  return change_all(mutations);
}

Status KeyValueSession::rollback(std::span<const Mutation> mutations) {
  while (true) {
    ASSAY_TRY(connection_->command("BEGIN"));
    const Status made = mutations.empty() ? Status{} : change_all(mutations);
    const bool again = !made && connection_->met_another();
    const Status undone = connection_->command("ROLLBACK");
    if (again && undone) continue;
    if (!made) return made;
    return undone;
  }
}

/// The whole answer of a short scan; of a long one, the cursor `c` in a transaction of its own.
Status KeyValueSession::start_scan(const ScanRange& range, const std::string& order,
                                   Result<Rows>& rows) {
  const bool cursor = range.limit == 0 || range.limit > kAtOnceMost;
  std::string sql = cursor ? "DECLARE c BINARY NO SCROLL CURSOR FOR " : "";
  sql += "SELECT k, v FROM kv";
  std::array<Oid, 2> types{};
  std::array<std::string, 2> keys;
  std::array<std::string_view, 2> values;
  std::size_t count = 0;
  const auto bound = [&](std::string_view key, const char* comparison) {
    sql += fmt::format(" {} k {} ${}", count == 0 ? "WHERE" : "AND", comparison, count + 1);
    keys[count] = key;
    if (u64_) flip_sign(keys[count]);
    values[count] = keys[count];
    types[count] = u64_ ? kInt8 : kBytea;
    ++count;
  };
  if (!range.from_start) bound(range.first, ">=");
  if (!range.to_end) bound(range.last, "<=");
  sql += order;
  if (range.limit != 0) sql += fmt::format(" LIMIT {}", range.limit);
  if (cursor) ASSAY_TRY(connection_->command("BEGIN READ ONLY"));
  rows = connection_->ask(sql, std::span(types).first(count), std::span(values).first(count));
  if (rows) return {};
  if (cursor) static_cast<void>(connection_->command("ROLLBACK"));
  return std::unexpected(rows.error());
}

Result<std::uint64_t> KeyValueSession::hand_over(const Rows& rows, ScanSink& sink, bool& go_on) {
  std::string number;
  int row = 0;
  while (go_on && row < rows.count()) {
    std::string_view key = rows.cell(row, 0);
    if (u64_) {
      number.assign(key);
      flip_sign(number);
      key = number;
    }
    go_on = sink.entry(key, rows.cell(row, 1));
    ++row;
  }
  return static_cast<std::uint64_t>(row);
}

Result<std::uint64_t> KeyValueSession::scan(const ScanRange& range, ScanSink& sink) {
  if (!range.from_start && !limits_.accepts(range.first))
    return fail(limits_.refusal(range.first, {}));
  if (!range.to_end && !limits_.accepts(range.last)) return fail(limits_.refusal(range.last, {}));
  Result<Rows> rows = fail(ErrorKind::internal, "no scan yet");
  ASSAY_TRY(start_scan(range, range.backward ? " ORDER BY k DESC" : " ORDER BY k", rows));
  bool go_on = true;
  if (range.limit != 0 && range.limit <= kAtOnceMost) return hand_over(*rows, sink, go_on);
  std::uint64_t visited = 0;
  std::uint64_t wanted = kFetchFirst;
  Status status;
  while (go_on) {
    rows = connection_->run(fmt::format("FETCH {} FROM c", wanted));
    if (!rows) {
      status = std::unexpected(rows.error());
      break;
    }
    const auto got = static_cast<std::uint64_t>(rows->count());
    std::uint64_t bytes = 1;
    for (int row = 0; row < rows->count(); ++row) bytes += rows->cell(row, 1).size() + 64;
    visited += *hand_over(*rows, sink, go_on);
    if (got < wanted) break;
    wanted = std::clamp<std::uint64_t>(kFetchBytes * got / bytes, 1, 4096);
  }
  const Status ended = connection_->command(status ? "COMMIT" : "ROLLBACK");
  ASSAY_TRY(status);
  ASSAY_TRY(ended);
  return visited;
}

}  // namespace assay::postgresql
