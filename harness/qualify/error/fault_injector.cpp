#include "harness/qualify/error/fault_injector.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "harness/qualify/error/called_process.h"
#include "harness/qualify/kill/descriptor_passing.h"

namespace assay::qualify::error {
namespace {

using Clock = std::chrono::steady_clock;

/// One life's calls, one after the other.
class Watcher {
 public:
  Watcher(const FaultInjector::Watch& watch, pid_t pid, const SharedReceipts& receipts)
      : watch_(watch), process_(pid, watch.directory), receipts_(receipts) {}

  Status begin() {
    const FaultShape& shape = watch_.fault.shape;
    follows_disk_ = !watch_.cut_directory.empty() && shape.sort == CallSort::sync &&
                    shape.answer != Answer::interrupted;
    return follows_disk_ ? disk_.begin(watch_.directory) : Status{};
  }

  /// What the call is answered; id and flags are set by the caller.
  Result<seccomp_notif_resp> answer(const seccomp_data& call) {
    seccomp_notif_resp goes_on{};
    goes_on.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    if (call.nr == SYS_io_uring_setup) {
      seen_.unseen_calls = true;
      return goes_on;
    }
    if (is_told(call)) {
      ASSAY_TRY(listen(call));
      return goes_on;
    }
    const std::optional<CallSort> sort = sort_of(call.nr);
    if (!sort || cannot_fail(call)) return goes_on;
    const CalledFile file = process_.file_of_call(call);
    if (!file.ours) return goes_on;
    const std::uint64_t number = ++seen_.calls[static_cast<std::size_t>(*sort)];
    if (fails(*sort, number)) {
      seccomp_notif_resp answered{};
      if (let_fail(call, file, answered)) {
        note_failure(call, file);
        return answered;
      }
    }
    follow(call, *sort, file);
    return goes_on;
  }

  InjectorSeen take_seen() { return std::move(seen_); }

 private:
  static bool is_told(const seccomp_data& call) {
    return (call.nr == SYS_fsync || call.nr == SYS_fdatasync) &&
           static_cast<int>(call.args[0]) == -1;
  }

  Status listen(const seccomp_data& call) {
    if (call.nr == SYS_fdatasync) {
      repaired_ = seen_.times > 0;
      return {};
    }
    seen_.notes_at_cut = receipts_.notes();
    // Without a failed sync the cut is no different from what the process sees.
    if (!follows_disk_ || seen_.sync_failed_at == 0 || seen_.unseen_calls) return {};
    const Result<std::uint64_t> dropped = disk_.write_out(watch_.directory, watch_.cut_directory);
    if (!dropped) return fail(dropped.error());
    seen_.dropped = *dropped;
    return {};
  }

  [[nodiscard]] bool fails(CallSort sort, std::uint64_t number) const {
    const Fault& fault = watch_.fault;
    if (fault.number == 0 || repaired_ || sort != fault.shape.sort || number < fault.number)
      return false;
    return fault.shape.stays || seen_.times == 0;
  }

  /// False when this fault cannot come to this call, which then goes on.
  bool let_fail(const seccomp_data& call, const CalledFile& file, seccomp_notif_resp& answered) {
    if (watch_.fault.shape.answer == Answer::part) {
      const std::int64_t wrote = process_.write_half(call);
      if (wrote <= 0) return false;
      answered.val = wrote;
      return true;
    }
    answered.error = -errno_of(watch_.fault.shape.answer, call.nr);
    if (follows_disk_ && !file.directory) disk_.sync_failed(file.id, file.content, file.range);
    return true;
  }

  void note_failure(const seccomp_data& call, const CalledFile& file) {
    if (++seen_.times > 1) return;
    seen_.call = name_of_call(call.nr);
    seen_.file = file.name;
    seen_.stage = to_string(receipts_.stage());
    // A failed sync of a directory drops names; that is not followed.
    if (watch_.fault.shape.sort == CallSort::sync) seen_.sync_failed_at = receipts_.notes() + 1;
  }

  void follow(const seccomp_data& call, CallSort sort, const CalledFile& file) {
    if (!follows_disk_ || file.directory) return;
    // A range that is merely handed to the disk is not on it.
    if (sort == CallSort::sync && call.nr != SYS_sync_file_range)
      disk_.synced(file.id, file.content, file.range);
    if (sort == CallSort::write) disk_.writes(file.id, file.content, file.range, file.through);
    if (sort == CallSort::name && file.last_name) disk_.forget(file.id);
  }

  const FaultInjector::Watch& watch_;
  CalledProcess process_;
  const SharedReceipts& receipts_;
  DiskBelow disk_;
  InjectorSeen seen_;
  bool follows_disk_ = false;
  bool repaired_ = false;
};

/// Syncs always: the fork speaks by them. What is on the disk follows from writes, sizes and names.
CallSorts sorts_for(const Fault& fault) {
  CallSorts sorts{};
  const auto add = [&](CallSort sort) { sorts[static_cast<std::size_t>(sort)] = true; };
  if (fault.number == 0) sorts.fill(true);
  add(CallSort::sync);
  add(fault.shape.sort);
  if (fault.shape.sort == CallSort::sync)
    for (const CallSort sort : {CallSort::write, CallSort::size, CallSort::name}) add(sort);
  return sorts;
}

}  // namespace

Result<FaultInjector> FaultInjector::make() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(system_error("cannot make a socket", errno));
  return FaultInjector(ends[0], ends[1]);
}

FaultInjector::FaultInjector(FaultInjector&& other) noexcept
    : server_(std::exchange(other.server_, -1)), fork_(std::exchange(other.fork_, -1)) {}

FaultInjector::~FaultInjector() {
  if (server_ >= 0) ::close(server_);
  if (fork_ >= 0) ::close(fork_);
}

Status FaultInjector::install(const Fault& fault) const {
  std::vector<sock_filter> code = fault_filter(sorts_for(fault));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(system_error("cannot give up new privileges", errno));
  const int listener = static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  if (listener < 0) return fail(system_error("cannot have calls answered", errno));
  const bool sent = send_descriptor(fork_, listener);
  const int why = errno;
  ::close(listener);
  ::close(fork_);
  ::close(server_);
  if (!sent) return fail(system_error("cannot hand the filter over", why));
  return {};
}

void FaultInjector::tell_repaired() {
  ::syscall(SYS_fdatasync, -1);
}

void FaultInjector::tell_cut() {
  ::syscall(SYS_fsync, -1);
}

Result<InjectorSeen> FaultInjector::serve(Forked& fork, const Watch& watch,
                                          const SharedReceipts& receipts) {
  ::close(std::exchange(fork_, -1));  // so that a fork that dies early ends the wait for it
  Watcher watcher(watch, fork.pid(), receipts);
  const Status began = watcher.begin();
  const int listener = receive_descriptor(server_);
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, fork.pid(), 0));
  bool timed_out = false;
  Status went = began;
  const auto until = Clock::now() + watch.timeout;
  while (listener >= 0 && process >= 0 && went) {
    std::array<pollfd, 2> polls{{{listener, POLLIN, 0}, {process, POLLIN, 0}}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    timed_out = left <= 0;
    if (timed_out) break;
    if (::poll(polls.data(), 2, static_cast<int>(left)) < 0 && errno != EINTR) break;
    if ((polls[1].revents & POLLIN) != 0 || (polls[0].revents & POLLHUP) != 0) break;
    if ((polls[0].revents & POLLIN) == 0) continue;
    seccomp_notif asked{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
    Result<seccomp_notif_resp> answer = watcher.answer(asked.data);
    if (!answer) {
      went = fail(answer.error());
      break;
    }
    answer->id = asked.id;
    ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &*answer);
  }
  if (timed_out || !went) fork.kill();
  // The fork has ended before its listener goes: a pending call must not return an error to it.
  if (process >= 0) {
    pollfd poll{process, POLLIN, 0};
    ::poll(&poll, 1, 10'000);
    ::close(process);
  }
  if (listener >= 0) ::close(listener);
  if (!went) return fail(went.error());
  InjectorSeen seen = watcher.take_seen();
  seen.timed_out = timed_out;
  seen.failed = listener < 0 || process < 0;
  return seen;
}

}  // namespace assay::qualify::error
