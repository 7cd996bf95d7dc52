#include "harness/serve/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "adapters/served/channel.h"
#include "harness/serve/connection.h"

namespace assay {
namespace {

constexpr int kBacklog = 128;
constexpr int kLookMs = 50;         ///< between two looks at the flags
constexpr int kSendPatienceS = 10;  ///< a client that reads nothing must not keep the server

std::unexpected<Error> refused(const std::string& socket, const char* what, const char* hint) {
  return fail(Error(ErrorKind::bad_input, what).at(socket).hint(hint));
}

/// Takes away the file of a socket that nobody listens at.
Status clear_left_socket(const std::string& socket) {
  struct stat info{};
  if (::lstat(socket.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return refused(socket, "cannot listen: there is a file, and it is no socket",
                   "give --socket another path");
  }
  int code = 0;
  const Result<int> other = served::open_socket(socket, served::Use::connect, code);
  if (other) {
    ::close(*other);
    return refused(socket, "cannot listen: another process listens at this socket",
                   "stop it, or give --socket another path");
  }
  if (code != ECONNREFUSED) return std::unexpected(other.error());
  if (::unlink(socket.c_str()) != 0 && errno != ENOENT) {
    return fail(
        system_error("cannot remove the socket of a server that is gone", errno).at(socket));
  }
  return {};
}

Result<int> listen_at(const std::string& socket) {
  int code = 0;
  Result<int> opened = served::open_socket(socket, served::Use::listen, code);
  if (!opened && code == EADDRINUSE && !socket.starts_with('@')) {
    ASSAY_TRY(clear_left_socket(socket));
    opened = served::open_socket(socket, served::Use::listen, code);
  }
  if (!opened && code == EADDRINUSE) {
    return refused(socket, "cannot listen: another process listens at this socket",
                   "stop it, or give --socket another path");
  }
  if (!opened && code == ENOENT) {
    return refused(socket, "cannot listen: the socket's folder does not exist", "make it first");
  }
  if (!opened) return opened;
  if (::listen(*opened, kBacklog) != 0) {
    const int reason = errno;
    ::close(*opened);
    return fail(system_error("cannot listen", reason).at(socket));
  }
  return opened;
}

bool same_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

class SocketServer final : public Server, public Connection::Everyone {
 public:
  SocketServer(Store& store, std::string socket, int listening)
      : served_{.store = store, .lock = {}}, socket_(std::move(socket)), listening_(listening) {}
  ~SocketServer() override { stop_listening(); }

  Result<bool> run(const std::atomic<bool>& stop) override;
  void add_telemetry(Telemetry& into) const override;

 private:
  struct Guest {
    Guest(int socket, Served& served, const Connection::Everyone& everyone)
        : connection(socket, served, everyone) {}
    Connection connection;
    std::atomic<bool> done{false};
    std::thread thread;
  };

  [[nodiscard]] std::string telemetry_text() const override;
  Status accept_one();
  void part_with(bool all);
  void stop_listening();

  Served served_;
  const std::string socket_;
  int listening_;
  mutable std::mutex lock_;  ///< of the two below; taken before any lock of a Telemetry
  std::list<Guest> guests_;
  Telemetry gone_;
};

void SocketServer::stop_listening() {
  if (listening_ < 0) return;
  // The file first: whoever finds it can connect.
  if (!socket_.starts_with('@')) ::unlink(socket_.c_str());
  ::close(listening_);
  listening_ = -1;
}

void SocketServer::add_telemetry(Telemetry& into) const {
  const std::scoped_lock hold(lock_);
  into.add(gone_);
  for (const Guest& guest : guests_) into.add(guest.connection.telemetry());
}

std::string SocketServer::telemetry_text() const {
  Telemetry all;
  add_telemetry(all);
  return all.json().dump();
}

Status SocketServer::accept_one() {
  const int socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) {
    const bool passes = errno == EINTR || errno == ECONNABORTED || errno == EAGAIN;
    // Out of handles: those who are connected go on, and the caller waits before the next try.
    if (passes || errno == EMFILE || errno == ENFILE) return {};
    return fail(system_error("cannot accept a connection", errno).at(socket_));
  }
  const timeval patience{.tv_sec = kSendPatienceS, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const std::scoped_lock hold(lock_);
  const bool full = guests_.size() >= kConnectionsMax;
  if (full || !same_user(socket)) {
    served::Channel channel(socket);
    std::string answer;
    served::encode_error(
        Error(ErrorKind::environment, full ? "the server has as many connections as it takes"
                                           : "the server runs as another user"),
        answer);
    (void)channel.send(answer);
    return {};
  }
  Guest& guest = guests_.emplace_back(socket, served_, *this);
  try {
    guest.thread = std::thread([&guest] {
      guest.connection.serve();
      guest.connection.end_output();
      guest.done.store(true);
    });
  } catch (const std::system_error&) {  // no more threads: this client is sent away
    guests_.pop_back();
  }
  return {};
}

/// Joins those that are done, or all of them.
void SocketServer::part_with(bool all) {
  std::list<Guest> leaving;
  {
    const std::scoped_lock hold(lock_);
    for (auto at = guests_.begin(); at != guests_.end();) {
      const auto next = std::next(at);
      if (at->done.load()) {
        gone_.add(at->connection.telemetry());
        leaving.splice(leaving.end(), guests_, at);
      } else if (all) {
        at->connection.end_input();
      }
      at = next;
    }
  }
  for (Guest& guest : leaving) guest.thread.join();
}

Result<bool> SocketServer::run(const std::atomic<bool>& stop) {
  Status outcome;
  while (outcome && !stop.load() && !served_.shut_down.load()) {
    pollfd ready{.fd = listening_, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, kLookMs);
    if (count > 0) outcome = accept_one();
    part_with(false);
  }
  stop_listening();
  for (bool left = true; left;) {
    part_with(true);
    const std::scoped_lock hold(lock_);
    left = !guests_.empty();
    if (left) ::poll(nullptr, 0, 1);
  }
  ASSAY_TRY(outcome);
  return served_.shut_down.load();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Store& store, const std::string& socket) {
  const Result<int> listening = listen_at(socket);
  if (!listening) return std::unexpected(listening.error());
  return std::make_unique<SocketServer>(store, socket, *listening);
}

}  // namespace assay
