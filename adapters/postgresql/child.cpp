#include "adapters/postgresql/child.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace assay::postgresql {
namespace {

constexpr int kLeastHandle = 10;
constexpr int kExecFailed = 127;

// Between fork and exec of a process with threads: system calls alone.
[[noreturn]] void become(const Child& child, const Account& who, char* const* words,
                         char* const* environment, pid_t parent) {
  ::setpgid(0, 0);  // Ctrl-C is for us: we stop it
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(child.log, STDOUT_FILENO) < 0 ||
      ::dup2(child.log, STDERR_FILENO) < 0 || ::dup2(child.directory, 3) < 0 ||
      ::close_range(4, ~0U, 0) != 0) {
    ::_exit(kExecFailed);
  }
  if (who.change &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(who.group, who.group, who.group) != 0 ||
       ::setresuid(who.user, who.user, who.user) != 0)) {
    ::_exit(kExecFailed);
  }
  ::umask(077);
  // After the change of user, which clears it. A parent that is gone already sends nothing.
  if (::prctl(PR_SET_PDEATHSIG, child.death_signal) != 0 || ::getppid() != parent ||
      ::chdir("/") != 0) {
    ::_exit(kExecFailed);
  }
  ::execve(words[0], words, environment);
  ::_exit(kExecFailed);
}

}  // namespace

Account account() {
  if (::geteuid() != 0) return {::geteuid(), ::getegid(), false};
  for (const char* name : {"postgres", "nobody"}) {
    std::array<char, 4096> text{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwnam_r(name, &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
      return {entry.pw_uid, entry.pw_gid, true};
  }
  constexpr uid_t kNobody = 65534;
  return {kNobody, kNobody, true};
}

Result<pid_t> start_child(const Child& child) {
  ASSAY_CHECK(child.directory >= kLeastHandle && child.log >= kLeastHandle,
              "a handle that a child's own would replace");
  std::vector<std::string> copies = child.words;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  std::array<std::string, 2> variables{"PATH=/usr/bin:/bin", "LC_ALL=C"};
  const std::array<char*, 3> environment{variables[0].data(), variables[1].data(), nullptr};
  const Account who = account();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start PostgreSQL", errno).at(child.words[0]));
  if (pid == 0) become(child, who, words.data(), environment.data(), parent);
  return pid;
}

int wait_child(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return kExecFailed;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Handle::Handle(int value) : value_(value) {
  if (value_ < 0 || value_ >= kLeastHandle) return;
  value_ = ::fcntl(value, F_DUPFD_CLOEXEC, kLeastHandle);
  ::close(value);
}

Handle::~Handle() {
  if (value_ >= 0) ::close(value_);
}

Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

Result<Handle> open_handle(const std::string& path, int flags, const char* what) {
  Handle handle(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (handle.get() < 0) return fail(system_error(what, errno).at(path));
  return handle;
}

}  // namespace assay::postgresql
