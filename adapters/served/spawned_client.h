// A session whose every command is a process of its own (`assay_client`, client_main.cpp), as a
// shell script has it: started, connected, asked, ended. What such a command costs beside one of a
// lasting connection is the price of that.
#pragma once

#include <string>

#include "adapters/store.h"

namespace assay::served {

class SpawnedClient final : public Session {
 public:
  /// `program` is started with `socket` as its only argument.
  SpawnedClient(std::string program, std::string socket)
      : program_(std::move(program)), socket_(std::move(socket)) {}

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  /// Starts a process, calls `command` with a Client that speaks through it, waits for its end.
  template <class Command>
  [[nodiscard]] auto run(Command&& command) -> decltype(command(std::declval<Session&>()));

  const std::string program_;
  const std::string socket_;
  std::string value_;
};

}  // namespace assay::served
