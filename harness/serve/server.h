// The core of `assay serve`: one open store behind a Unix socket, for any number of clients.
//
// Every connection has a thread and a session of the store. An acknowledgement is sent after the
// store's own, so what it says of durability holds for the client too. Calls of the store itself
// (session, sync, checkpoint, settle) are made one at a time. A malformed frame is answered with an
// error and ends its own connection only. Only the user the server runs as is let in.
//
// run() is called once, by one thread; telemetry() by any. When run() has returned no session is
// open and the socket's file is gone: the store may be closed.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "adapters/result.h"
#include "adapters/store.h"
#include "harness/serve/telemetry.h"

namespace assay {

class Server {
 public:
  static constexpr std::size_t kConnectionsMax = 512;

  /// Listens at `socket` (a path, or an abstract @name). A socket's file that a killed server left
  /// is replaced. Errors: `bad_input` in use, too long, no such folder, some other file there.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(Store& store,
                                                              const std::string& socket);
  virtual ~Server() = default;

  /// Serves until `stop` is set or a client sends shutdown; then what has arrived is answered.
  /// True: it was a client.
  virtual Result<bool> run(const std::atomic<bool>& stop) = 0;
  /// Of all connections, those that ended included.
  virtual void add_telemetry(Telemetry& into) const = 0;
};

}  // namespace assay
