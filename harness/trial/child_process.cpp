#include "harness/trial/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>

#include "harness/trial/left_running.h"

namespace assay {
namespace {

namespace bp = boost::process;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  // Close-on-exec: another child started meanwhile must not hold this one's pipe open.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

/// The last line that is not blank of what was added to a log since `offset`.
std::string last_line_since(const std::string& path, off_t offset) {
  std::ifstream file(path);
  file.seekg(0, std::ios::end);
  constexpr off_t kTail = 4096;
  const off_t end = file.tellg();
  file.seekg(std::max(offset, end - kTail));
  std::string line;
  std::string last;
  while (std::getline(file, line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return last;
}

class PosixChild final : public ChildProcess {
 public:
  PosixChild(bp::child child, Fd to_child, Fd from_child, std::string log_path, off_t log_offset)
      : child_(std::move(child)),
        pid_(child_.id()),
        death_(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))),  // none before Linux 5.3
        to_child_(std::move(to_child)),
        from_child_(std::move(from_child)),
        log_path_(std::move(log_path)),
        log_offset_(log_offset) {}

  ~PosixChild() override {
    if (!reaped_) end_now(0, SIGKILL);
  }

  Event next(std::string& line, int timeout_ms) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Event::line;
      }
      if (ended_) return Event::ended;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      if (left.count() < 0) return Event::nothing;
      std::array<pollfd, 2> waiting{{{from_child_.get(), POLLIN, 0}, {death_.get(), POLLIN, 0}}};
      const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
      if (ready == 0) return Event::nothing;
      // Once more: it may have written and died between the two looks of that poll.
      if (ready > 0 && waiting[0].revents == 0 && ::poll(waiting.data(), 1, 0) == 0) {
        ended_ = true;
        continue;
      }
      if (ready < 0) {
        if (errno == EINTR) return Event::nothing;  // let the caller look at its stop flag
        return Event::ended;
      }
      std::array<char, 4096> chunk{};
      const ssize_t got = ::read(from_child_.get(), chunk.data(), chunk.size());
      if (got <= 0)
        ended_ = got == 0 || errno != EINTR;
      else
        buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  bool send(const std::string& line) override {
    const std::string text = line + "\n";
    // The write may meet a closed pipe: the signal is held back for this call.
    sigset_t broken_pipe;
    sigset_t before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    const ssize_t sent = ::write(to_child_.get(), text.data(), text.size());
    if (sent < 0 && errno == EPIPE) {
      const timespec now{};
      ::sigtimedwait(&broken_pipe, nullptr, &now);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return sent == static_cast<ssize_t>(text.size());
  }

  void end_now(int grace_ms, int signal) override {
    if (reaped_) return;
    std::error_code ignored;
    if (grace_ms > 0) {
      // Polled: the library's wait_for() starts a process of its own to measure the time.
      ::kill(-pid_, signal);
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(grace_ms);
      while (child_.running(ignored) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(-pid_, SIGKILL);
    child_.wait(ignored);
    note_end();
  }

  std::string wait() override {
    std::error_code code;
    if (!reaped_) {
      child_.wait(code);
      note_end();
    }
    const int status = child_.native_exit_code();
    crashed_ =
        WIFSIGNALED(status) ? is_own_fault(WTERMSIG(status)) : !is_own_exit(WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    std::string how = WIFSIGNALED(status)
                          ? fmt::format("killed by signal {} ({})", WTERMSIG(status),
                                        ::strsignal(WTERMSIG(status)))
                          : fmt::format("exit status {}", WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == ChildExit::not_started)
      how = "the parent died before the child began";
    const std::string last = last_log_line();
    if (!last.empty()) how += fmt::format("; last line of its log: {}", last);
    return how;
  }

  [[nodiscard]] std::string last_log_line() const override {
    return log_path_.empty() ? std::string() : printable(last_line_since(log_path_, log_offset_));
  }

  [[nodiscard]] bool crashed() const override { return crashed_; }
  [[nodiscard]] std::uint32_t left_running() const override { return left_running_; }
  [[nodiscard]] pid_t pid() const override { return pid_; }

 private:
  void note_end() {
    reaped_ = true;
    left_running_ = LiveChildren::remove(pid_);
  }

  static bool is_own_fault(int signal) {
    return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
           signal == SIGILL;
  }

  static bool is_own_exit(int status) {
    return status == ChildExit::not_started || status == ChildExit::no_request ||
           status == ChildExit::outcome_unwritten;
  }

  bool crashed_ = false;
  std::uint32_t left_running_ = 0;
  bp::child child_;
  pid_t pid_;
  Fd death_;
  Fd to_child_;
  Fd from_child_;
  std::string log_path_;
  off_t log_offset_;
  std::string buffer_;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::string& binary,
                                                          const std::vector<std::string>& arguments,
                                                          const std::string& log_path) {
  Result<Pipe> in = make_pipe();
  if (!in) return fail(in.error());
  Result<Pipe> out = make_pipe();
  if (!out) return fail(out.error());
  const Fd log(::open(log_path.empty() ? "/dev/null" : log_path.c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0)
    return fail(system_error("cannot open the log of a trial", errno).at(log_path));
  const off_t log_offset = ::lseek(log.get(), 0, SEEK_END);
  const pid_t parent = ::getpid();
  const auto in_child = [parent](auto&) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    adopt_in_child();
    sigset_t none;  // a mask of the parent's thread must not keep SIGTERM from the child
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::getppid() != parent) ::_exit(ChildExit::not_started);  // it died before the line above
  };
  std::error_code code;
  bp::child child;
  LiveChildren::add([&] {
    child = bp::child(
        bp::exe = binary, bp::args = arguments, bp::posix::fd.bind(STDIN_FILENO, in->read.get()),
        bp::posix::fd.bind(STDOUT_FILENO, out->write.get()),
        bp::posix::fd.bind(STDERR_FILENO, log.get()), bp::extend::on_exec_setup = in_child, code);
    return code ? 0 : child.id();
  });
  if (code)
    return fail(Error(ErrorKind::environment, "cannot start a child process: " + code.message())
                    .at(binary));
  // The child does the same; whoever comes first, the group exists when start() returns.
  ::setpgid(child.id(), child.id());
  return std::make_unique<PosixChild>(std::move(child), std::move(in->write), std::move(out->read),
                                      log_path, log_offset);
}

}  // namespace assay
