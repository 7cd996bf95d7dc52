#include "harness/qualify/kill/forked.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "harness/trial/child_process.h"

namespace assay::qualify {
namespace {

/// Kills and reaps every child that is left, and theirs, until there is none.
std::uint32_t end_orphans() {
  std::uint32_t ended = 0;
  for (int round = 0; round < 1000; ++round) {
    std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
    pid_t child = 0;
    bool any = false;
    while (children >> child) {
      any = true;
      ::kill(child, SIGKILL);
      if (::waitpid(child, nullptr, 0) == child) ++ended;
    }
    if (!any) break;
  }
  return ended;
}

void become_a_fork(pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(ChildExit::not_started);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // what a store prints is not for whom the server talks to
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
}

}  // namespace

Result<SharedText> SharedText::make(std::size_t capacity) {
  const std::size_t bytes = capacity + sizeof(std::atomic<std::uint64_t>);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error(fmt::format("cannot share {} bytes", bytes), errno));
  return SharedText(memory, bytes);
}

SharedText::SharedText(SharedText&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}

SharedText::~SharedText() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

void SharedText::clear() {
  static_cast<std::atomic<std::uint64_t>*>(memory_)->store(0);
}

void SharedText::set(const std::string& text) {
  auto* const size = static_cast<std::atomic<std::uint64_t>*>(memory_);
  const std::size_t bytes = std::min(text.size(), bytes_ - sizeof *size);
  std::memcpy(static_cast<char*>(memory_) + sizeof *size, text.data(), bytes);
  size->store(bytes);
}

std::string SharedText::get() const {
  const auto* const size = static_cast<const std::atomic<std::uint64_t>*>(memory_);
  return {static_cast<const char*>(memory_) + sizeof *size, size->load()};
}

std::string ForkEnd::text() const {
  if (timed_out) return "it did not end in time and was killed";
  if (exit_status >= 0) return fmt::format("exit status {}", exit_status);
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

Status adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(system_error("cannot adopt processes that a store leaves behind", errno));
  return {};
}

Result<Forked> Forked::start(const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot fork", errno));
  if (pid == 0) {
    become_a_fork(parent);
    int status = 1;
    try {
      status = body();
    } catch (const std::exception& error) {
      // As anywhere else, an exception that a store lets out is its crash.
      fmt::print(stderr, "assay: the store let an exception out: {}\n", error.what());
      std::abort();
    }
    ::_exit(status);
  }
  ::setpgid(pid, pid);
  return Forked(pid);
}

Forked::Forked(Forked&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

Forked::~Forked() {
  if (pid_ == 0) return;
  kill();
  (void)wait(std::chrono::milliseconds(0));
}

void Forked::kill() const {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

ForkEnd Forked::wait(std::chrono::milliseconds timeout) {
  ForkEnd end;
  if (pid_ == 0) return end;
  const int waiting = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (waiting >= 0) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd poll{waiting, POLLIN, 0};
      const int ready = ::poll(&poll, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
      if (ready > 0) break;
      if (ready == 0) {
        end.timed_out = true;
        kill();
        break;
      }
    }
    ::close(waiting);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);  // the rest of its group
  pid_ = 0;
  end.left_behind = end_orphans();
  if (WIFEXITED(status)) {
    end.exit_status = WEXITSTATUS(status);
  } else {
    end.signal = WTERMSIG(status);
    end.killed = end.signal == SIGKILL;
  }
  return end;
}

}  // namespace assay::qualify
