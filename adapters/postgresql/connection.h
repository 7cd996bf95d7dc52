// One libpq connection, its results, and PostgreSQL's errors as ours.
//
// A connection belongs to one thread at a time. Parameters and results of execute() are binary.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay::postgresql {

constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt8Array = 1016;
constexpr Oid kByteaArray = 1001;

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};

/// Rows that a statement gave.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result) {}
  [[nodiscard]] int count() const { return PQntuples(result_.get()); }
  /// Valid as long as these rows are.
  [[nodiscard]] std::string_view cell(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  /// Rows that the statement changed; 0 where it says nothing of them.
  [[nodiscard]] std::uint64_t changed() const;

 private:
  std::unique_ptr<PGresult, ClearResult> result_;
};

/// An integer as the binary format has it: 8 bytes, big-endian.
[[nodiscard]] std::string binary_int8(std::int64_t value);
[[nodiscard]] std::int64_t from_binary_int8(std::string_view bytes);

class Connection {
 public:
  /// Connects to the server whose socket lies in `folder`, as the owner of the cluster.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::string& folder);
  ~Connection() { PQfinish(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `sql` without parameters; the cells are text.
  [[nodiscard]] Result<Rows> run(const std::string& sql);
  /// The same where no rows are wanted.
  [[nodiscard]] Status command(const std::string& sql);
  /// The first column of the first row of `sql`; empty when there is no row.
  [[nodiscard]] Result<std::string> text(const std::string& sql);
  /// `sql` with binary parameters, planned for them.
  [[nodiscard]] Result<Rows> ask(const std::string& sql, std::span<const Oid> types,
                                 std::span<const std::string_view> values);
  [[nodiscard]] Status prepare(const char* name, const std::string& sql,
                               std::span<const Oid> types);
  [[nodiscard]] Result<Rows> execute(const char* name, std::span<const std::string_view> values);
  /// True when the last statement failed because it met another transaction (a deadlock, most of
  /// all) and nothing is wrong with it: it may be tried again.
  [[nodiscard]] bool met_another() const { return met_another_; }
  [[nodiscard]] PGconn* handle() { return handle_; }
  /// The error of `result`, or of the connection where that is null, with `what` before it.
  [[nodiscard]] Error error(std::string_view what, const PGresult* result);

 private:
  explicit Connection(PGconn* handle) : handle_(handle) {}
  Result<Rows> take(std::string_view what, PGresult* result);

  PGconn* handle_;
  bool met_another_ = false;
};

}  // namespace assay::postgresql
