// A session over the table `kv`: one connection with its prepared statements.
//
// One thread at a time. Keys of kind u64 are of type bigint, others of type bytea.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/opening.h"
#include "adapters/postgresql/connection.h"
#include "adapters/store.h"

namespace assay::postgresql {

class KeyValueSession final : public Session {
 public:
  /// `open_sessions` counts it as long as it is there.
  [[nodiscard]] static Result<std::unique_ptr<Session>> make(std::unique_ptr<Connection> connection,
                                                             const EntryLimits& limits, bool u64,
                                                             std::atomic<int>& open_sessions);
  ~KeyValueSession() override { open_sessions_.fetch_sub(1); }

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  KeyValueSession(std::unique_ptr<Connection> connection, const EntryLimits& limits, bool u64,
                  std::atomic<int>& open_sessions);
  Status prepare();
  [[nodiscard]] std::string_view key_of(std::string_view key);
  Status change(const char* statement, std::span<const std::string_view> values);
  Status change_all(std::span<const Mutation> mutations);
  Status start_scan(const ScanRange& range, const std::string& order, Result<Rows>& rows);
  Result<std::uint64_t> hand_over(const Rows& rows, ScanSink& sink, bool& go_on);

  std::unique_ptr<Connection> connection_;
  const EntryLimits& limits_;
  const bool u64_;
  std::atomic<int>& open_sessions_;
  std::string key_;           ///< of the statement under way, as the server takes it
  std::optional<Rows> held_;  ///< what the last get's value points into
};

}  // namespace assay::postgresql
