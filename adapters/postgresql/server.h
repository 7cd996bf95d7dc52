// A PostgreSQL server of our own: its cluster lies in a store's directory, it listens on a socket
// in there only, and it ends with this process.
//
// It refuses to run as root, so root starts it as the user "postgres" (or "nobody"), who owns the
// cluster. The server is given its directory as an open handle, and reached through one: so neither
// the rights on the folders above nor the 107 bytes of a socket's path matter.
// Invariant: however this process ends, the server gets SIGQUIT, which makes it give up at once as
// after a crash; so does every process of it.
// Threads: any, but start() and stop() are not called at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay::postgresql {

/// The cluster below a store's directory.
inline constexpr const char* kCluster = "postgresql";

/// The folder with the programs `initdb` and `postgres`: `wanted`, or with "auto" the newest of
/// Debian's. Error `environment` that names the package.
[[nodiscard]] Result<std::string> find_programs(const std::string& wanted);
/// What the server says of itself: "15.18"; "none" where it is not installed.
[[nodiscard]] const std::string& server_version();

/// Makes a cluster below `directory`, not synced; whatever a making that was cut short left there
/// is removed. It has its name only when it is whole.
[[nodiscard]] Status make_cluster(const std::string& programs, const std::string& directory);

class Server {
 public:
  /// Starts the server over the cluster of `directory`, with `options` ("name=value"), and waits
  /// until it takes connections: until it has recovered. One that is about to end there is waited
  /// for. Error with the last words of its log.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(
      const std::string& programs, const std::string& directory,
      const std::vector<std::string>& options);
  /// Gives up at once when stop() was not called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Ends every connection, writes everything, and ends.
  Status stop();
  /// The folder of its socket, for Connection::open.
  [[nodiscard]] const std::string& socket_folder() const { return socket_folder_; }
  /// A handle of the cluster's directory, valid as long as this.
  [[nodiscard]] int directory_handle() const;

 private:
  struct Guard;
  Server();
  std::unique_ptr<Guard> guard_;
  std::string directory_;
  std::string socket_folder_;
};

}  // namespace assay::postgresql
