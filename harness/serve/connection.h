// One client's connection: its requests, in order, each answered before the next is read.
// serve() is called by the connection's own thread; end_input() and telemetry() by any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "adapters/served/channel.h"
#include "adapters/served/protocol.h"
#include "adapters/store.h"
#include "harness/serve/telemetry.h"

namespace assay {

/// What the connections of a server share.
struct Served {
  Store& store;
  std::mutex lock;                     ///< of the store itself; sessions need none
  std::atomic<bool> shut_down{false};  ///< a client asked for it
};

class Connection {
 public:
  /// Takes over the socket. `everyone` gives the telemetry of all connections, as JSON.
  class Everyone {
   public:
    virtual ~Everyone() = default;
    [[nodiscard]] virtual std::string telemetry_text() const = 0;
  };
  Connection(int socket, Served& served, const Everyone& everyone);

  /// Until the client is gone, has sent nonsense, or end_input() was called.
  void serve();
  /// What has arrived is still answered; nothing more is read.
  void end_input();
  /// The client sees the end of the connection; the socket itself lives as long as this object.
  void end_output();
  [[nodiscard]] const Telemetry& telemetry() const { return telemetry_; }

 private:
  struct Handled {
    Status outcome;
    bool go_on = true;  ///< false: this connection cannot go on
  };
  class ScanRelay;

  Handled handle(const served::Request& request);
  Handled handle_in_session(const served::Request& request);
  Handled handle_scan(const ScanRange& range);
  Status make_session();
  [[nodiscard]] bool greet();
  Status handle_store(served::Op op);
  [[nodiscard]] bool refuse(const Error& error);

  served::Channel channel_;
  Served& served_;
  const Everyone& everyone_;
  std::unique_ptr<Session> session_;  ///< made and destroyed under the store's lock
  std::string answer_;
  Telemetry telemetry_;
};

}  // namespace assay
