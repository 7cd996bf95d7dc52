#include "adapters/served/daemon.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <utility>

#include "adapters/served/child.h"
#include "adapters/served/protocol.h"

namespace assay::served {

Result<std::unique_ptr<Daemon>> Daemon::start(const std::string& program,
                                              std::vector<std::string> arguments) {
  const Result<Child> child = start_child(program, std::move(arguments), ChildEnd::output);
  if (!child) return std::unexpected(child.error());
  std::unique_ptr<Daemon> daemon(new Daemon(child->pid, child->socket));
  ASSAY_TRY(daemon->report());
  return daemon;
}

Daemon::~Daemon() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

int Daemon::reap() {
  const int status = reap_child(pid_);
  pid_ = -1;
  return status;
}

Status Daemon::report() {
  std::string_view body;
  const Result<bool> got = channel_.receive(body);
  if (got && *got) {
    const auto answer = static_cast<Answer>(static_cast<std::uint8_t>(body.front()));
    if (answer == Answer::done) return {};
    return fail(decode_error(body.substr(1)));
  }
  const int status = reap();
  return fail(
      Error(ErrorKind::child,
            WIFSIGNALED(status)
                ? fmt::format("the server of a store was killed by signal {}", WTERMSIG(status))
                : fmt::format("the server of a store ended with status {} and no word",
                              WEXITSTATUS(status)))
          .hint("the setting \"command\" names the assay command"));
}

Status Daemon::wait() {
  if (pid_ < 0) return fail(ErrorKind::child, "the server of a store is gone");
  const Status said = report();
  if (pid_ >= 0) reap();
  return said;
}

}  // namespace assay::served
