#include "adapters/postgresql/connection.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

namespace assay::postgresql {
namespace {

// Everything that libpq would otherwise take from the environment of the user.
constexpr std::array<const char*, 7> kNames{"port",       "user",    "dbname", "options",
                                            "gssencmode", "sslmode", "host"};

/// The message without its end of line.
std::string trimmed(const char* text) {
  std::string_view view(text == nullptr ? "" : text);
  while (!view.empty() && (view.back() == '\n' || view.back() == ' ')) view.remove_suffix(1);
  return std::string(view);
}

}  // namespace

std::uint64_t Rows::changed() const {
  const std::string_view text = PQcmdTuples(result_.get());
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string binary_int8(std::int64_t value) {
  const std::uint64_t big = __builtin_bswap64(std::bit_cast<std::uint64_t>(value));
  std::string bytes(sizeof big, '\0');
  std::memcpy(bytes.data(), &big, sizeof big);
  return bytes;
}

std::int64_t from_binary_int8(std::string_view bytes) {
  std::uint64_t big = 0;
  ASSAY_CHECK(bytes.size() == sizeof big, "the server sent an integer of another width");
  std::memcpy(&big, bytes.data(), sizeof big);
  return std::bit_cast<std::int64_t>(__builtin_bswap64(big));
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& folder) {
  std::array<const char*, kNames.size() + 1> names{};
  std::ranges::copy(kNames, names.begin());
  const std::array<const char*, kNames.size() + 1> values{
      "5432", "assay", "postgres", "", "disable", "disable", folder.c_str(), nullptr};
  PGconn* const handle = PQconnectdbParams(names.data(), values.data(), 0);
  if (handle == nullptr)
    return fail(ErrorKind::environment, "PostgreSQL: no memory for a connection");
  std::unique_ptr<Connection> connection(new Connection(handle));
  if (PQstatus(handle) != CONNECTION_OK) return fail(connection->error("cannot connect", nullptr));
  // Notices ("relation exists already") go nowhere.
  PQsetNoticeProcessor(handle, [](void*, const char*) {}, nullptr);
  return connection;
}

Error Connection::error(std::string_view what, const PGresult* result) {
  const char* const state =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view code = state == nullptr ? "" : state;
  const char* const primary =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  met_another_ = code == "40P01" || code == "40001";
  // Class 53: no disk space, memory or connections left.
  Error error(code.starts_with("53") ? ErrorKind::environment : ErrorKind::store,
              fmt::format("PostgreSQL: {}: {}", what,
                          trimmed(primary != nullptr ? primary : PQerrorMessage(handle_))));
  if (code == "53100") error.hint("free some space on the file system");
  return error;
}

Result<Rows> Connection::take(std::string_view what, PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return Rows(result);
  const Rows held(result);
  return fail(error(what, result));
}

Result<Rows> Connection::run(const std::string& sql) {
  return take(sql, PQexec(handle_, sql.c_str()));
}

Status Connection::command(const std::string& sql) {
  ASSAY_TRY(run(sql));
  return {};
}

Result<std::string> Connection::text(const std::string& sql) {
  const Result<Rows> rows = run(sql);
  if (!rows) return std::unexpected(rows.error());
  return rows->count() == 0 ? std::string() : std::string(rows->cell(0, 0));
}

namespace {
/// `values` as libpq takes them. A null pointer would be NULL, and an empty value is not that.
struct Parameters {
  explicit Parameters(std::span<const std::string_view> values) {
    ASSAY_CHECK(values.size() <= kMost, "a statement with more parameters than any has");
    for (std::size_t at = 0; at < values.size(); ++at) {
      data[at] = values[at].empty() ? "" : values[at].data();
      lengths[at] = static_cast<int>(values[at].size());
      formats[at] = 1;
    }
  }
  static constexpr std::size_t kMost = 16;
  std::array<const char*, kMost> data{};
  std::array<int, kMost> lengths{};
  std::array<int, kMost> formats{};
};
}  // namespace

Result<Rows> Connection::ask(const std::string& sql, std::span<const Oid> types,
                             std::span<const std::string_view> values) {
  const Parameters given(values);
  return take(sql, PQexecParams(handle_, sql.c_str(), static_cast<int>(values.size()), types.data(),
                                given.data.data(), given.lengths.data(), given.formats.data(), 1));
}

Status Connection::prepare(const char* name, const std::string& sql, std::span<const Oid> types) {
  ASSAY_TRY(take(
      sql, PQprepare(handle_, name, sql.c_str(), static_cast<int>(types.size()), types.data())));
  return {};
}

Result<Rows> Connection::execute(const char* name, std::span<const std::string_view> values) {
  const Parameters given(values);
  return take(name,
              PQexecPrepared(handle_, name, static_cast<int>(values.size()), given.data.data(),
                             given.lengths.data(), given.formats.data(), 1));
}

}  // namespace assay::postgresql
