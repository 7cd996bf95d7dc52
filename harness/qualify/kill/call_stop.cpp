#include "harness/qualify/kill/call_stop.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/qualify/kill/descriptor_passing.h"

namespace assay::qualify {
namespace {

struct Call {
  int number;
  const char* name;
};

constexpr std::uint64_t kPage = 4096;

/// Calls after which a file, its name or its durability may be another.
constexpr Call kCalls[] = {
    {SYS_write, "write"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_writev, "writev"},
    {SYS_pwritev, "pwritev"},
    {SYS_pwritev2, "pwritev2"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_truncate, "truncate"},
    {SYS_fallocate, "fallocate"},
    {SYS_renameat, "renameat"},
    {SYS_renameat2, "renameat2"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_linkat, "linkat"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_msync, "msync"},
    {SYS_sync_file_range, "sync_file_range"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_sendfile, "sendfile"},
    {SYS_io_uring_enter, "io_uring_enter"},
#ifdef SYS_rename
    {SYS_rename, "rename"},
    {SYS_unlink, "unlink"},
    {SYS_link, "link"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_creat, "creat"},
#endif
};

const char* name_of(int number) {
  for (const Call& call : kCalls)
    if (call.number == number) return call.name;
  return number == SYS_openat ? "openat" : "open";
}

/// Native 64-bit calls only; anything else goes on unseen.
std::vector<sock_filter> filter() {
#if defined(__x86_64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the filter needs this architecture's number"
#endif
  const auto load = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  std::vector<sock_filter> code;
  code.push_back(load(offsetof(seccomp_data, arch)));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  code.push_back(load(offsetof(seccomp_data, nr)));
  for (const Call& call : kCalls) {
    code.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call.number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  // open() and openat() count when they may make or empty a file: their flags decide.
  const auto opens = [&](int number, std::size_t argument) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4));
    code.push_back(load(offsetof(seccomp_data, args) + argument * 8));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  };
  opens(SYS_openat, 2);
#ifdef SYS_open
  opens(SYS_open, 1);
#endif
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return code;
}

int duplicate_of(pid_t pid, std::uint64_t fd) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return -1;
  const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, static_cast<int>(fd), 0));
  ::close(process);
  return copy;
}

/// Does the first part of a write that the kernel could have cut; false when there is no such cut.
bool write_a_part(const Forked& fork, const seccomp_data& call, std::uint64_t random) {
  const bool placed = call.nr == SYS_pwrite64;
  if (!placed && call.nr != SYS_write) return false;
  const std::uint64_t size = call.args[2];
  if (size <= 1 || size > (std::uint64_t{64} << 20)) return false;
  const int fd = duplicate_of(fork.pid(), call.args[0]);
  if (fd < 0) return false;
  struct stat info{};
  const int flags = ::fcntl(fd, F_GETFL);
  bool done = false;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flags >= 0 && (flags & O_DIRECT) == 0) {
    const off_t here = (flags & O_APPEND) != 0 ? info.st_size : ::lseek(fd, 0, SEEK_CUR);
    const std::uint64_t at = placed ? call.args[3] : static_cast<std::uint64_t>(here);
    const std::uint64_t first = (at / kPage + 1) * kPage - at;  // bytes up to the next page
    if (first < size) {
      const std::uint64_t bytes = first + random % ((size - first - 1) / kPage + 1) * kPage;
      std::vector<char> part(bytes);
      const iovec local{part.data(), part.size()};
      const iovec remote{reinterpret_cast<void*>(call.args[1]), part.size()};
      if (::process_vm_readv(fork.pid(), &local, 1, &remote, 1, 0) ==
          static_cast<ssize_t>(part.size())) {
        const ssize_t wrote = placed
                                  ? ::pwrite(fd, part.data(), part.size(), static_cast<off_t>(at))
                                  : ::write(fd, part.data(), part.size());
        done = wrote == static_cast<ssize_t>(part.size());
      }
    }
  }
  ::close(fd);
  return done;
}

}  // namespace

Result<CallStops> CallStops::make() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(system_error("cannot make a socket", errno));
  return CallStops(ends[0], ends[1]);
}

CallStops::CallStops(CallStops&& other) noexcept
    : server_(std::exchange(other.server_, -1)), fork_(std::exchange(other.fork_, -1)) {}

CallStops::~CallStops() {
  if (server_ >= 0) ::close(server_);
  if (fork_ >= 0) ::close(fork_);
}

Status CallStops::install() const {
  std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(system_error("cannot give up new privileges", errno));
  const int listener = static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  if (listener < 0) return fail(system_error("cannot have calls stopped", errno));
  const bool sent = send_descriptor(fork_, listener);
  ::close(listener);
  ::close(fork_);
  ::close(server_);
  if (!sent) return fail(system_error("cannot hand the filter over", errno));
  return {};
}

CallStops::Seen CallStops::serve(Forked& fork, const Aim& aim, const SharedReceipts& receipts,
                                 std::uint64_t random, std::chrono::milliseconds timeout) {
  Seen seen;
  ::close(std::exchange(fork_, -1));  // so that a fork that dies early ends the wait for it
  const int listener = receive_descriptor(server_);
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, fork.pid(), 0));
  seen.failed = listener < 0 || process < 0;
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!seen.failed) {
    std::array<pollfd, 2> polls{{{listener, POLLIN, 0}, {process, POLLIN, 0}}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(polls.data(), 2, static_cast<int>(left.count())) < 0) break;
    if ((polls[1].revents & POLLIN) != 0 || (polls[0].revents & POLLHUP) != 0) break;
    if ((polls[0].revents & POLLIN) == 0) continue;
    seccomp_notif asked{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
    const Stage stage = receipts.stage();
    if (stage == Stage::opening) ++seen.opening;
    if (aim.stage == Stage::starting || aim.stage == stage) ++seen.calls;
    if (aim.kind == Aim::Kind::call && seen.calls >= aim.number && seen.calls > 0) {
      seen.reached = true;
      seen.call = name_of(asked.data.nr);
      seen.torn = aim.tear && write_a_part(fork, asked.data, random);
      fork.kill();
      break;
    }
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  // The fork is waited for before its listener goes: a pending call must not return an error to it.
  if (process >= 0) {
    pollfd poll{process, POLLIN, 0};
    if (seen.reached) ::poll(&poll, 1, 10'000);
    ::close(process);
  }
  if (!seen.reached && std::chrono::steady_clock::now() >= until) fork.kill();
  if (listener >= 0) ::close(listener);
  return seen;
}

bool can_stop_calls() {
  static const bool can = [] {
    Result<CallStops> stops = CallStops::make();
    if (!stops) return false;
    Result<Forked> fork = Forked::start([&] {
      if (!stops->install()) return 1;
      ::syscall(SYS_fsync, -1);
      return 0;
    });
    if (!fork) return false;
    const History history(1, HistoryShape{});
    const Result<SharedReceipts> receipts = SharedReceipts::make(history, 1);
    if (!receipts) return false;
    const CallStops::Seen seen =
        stops->serve(*fork, {.kind = Aim::Kind::call, .number = 1, .delay_us = 0}, *receipts, 0,
                     std::chrono::seconds(5));
    const ForkEnd end = fork->wait(std::chrono::seconds(5));
    return seen.reached && end.killed;
  }();
  return can;
}

}  // namespace assay::qualify
