// A client's side of a connection to `assay serve`.
//
// One connection is one session of the store behind the server; one thread at a time. An error that
// the server sent is handed on as it is; a connection that broke is an error of kind `child`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "adapters/served/channel.h"
#include "adapters/served/protocol.h"
#include "adapters/store.h"

namespace assay::served {

class Client final : public Session {
 public:
  /// Connects to the server at `socket` (a path, or @name).
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(const std::string& socket);

  /// The same over a connected `socket`, which becomes the client's; `peer` is for messages.
  [[nodiscard]] static Result<std::unique_ptr<Client>> over(int socket, const std::string& peer);

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

  /// A request without a payload (sync, checkpoint, settle, stats, counters, settings, shutdown);
  /// the payload of its answer, valid until the next call.
  Result<std::string_view> ask(Op op);

 private:
  explicit Client(int socket) : channel_(socket) {}
  /// Sends `frame_`; the body of the answer, unless it is an error.
  Result<std::string_view> exchange();
  Result<std::string_view> answer();
  Status change(Status encoded);

  Channel channel_;
  std::string frame_;
};

}  // namespace assay::served
