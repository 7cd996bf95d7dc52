#include "adapters/served/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "adapters/served/protocol.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace assay::served {

Result<std::unique_ptr<Daemon>> Daemon::start(const std::string& program,
                                              std::vector<std::string> arguments) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(system_error("cannot make a channel to a server", errno));
  }
  std::vector<char*> words;
  arguments.insert(arguments.begin(), program);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code != 0) {
    ::close(ends[0]);
    return fail(system_error("cannot start the server of a store", code).at(program));
  }
  std::unique_ptr<Daemon> daemon(new Daemon(pid, ends[0]));
  ASSAY_TRY(daemon->report());
  return daemon;
}

Daemon::~Daemon() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

int Daemon::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
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
