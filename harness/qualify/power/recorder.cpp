#include "harness/qualify/power/recorder.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace assay::qualify::power {
namespace {

LogHeader* recording = nullptr;

struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER, which libc's headers hide

std::byte* records() {
  return reinterpret_cast<std::byte*>(recording) + kLogRecordsAt;
}

extern "C" void assay_record_return();
// The unwinder knows a signal's frame by these very instructions.
asm(R"(
.text
.globl assay_record_return
.hidden assay_record_return
.type assay_record_return, @function
    nop
assay_record_return:
    mov $15, %rax
    syscall
.size assay_record_return, . - assay_record_return
)");

void on_call(int, siginfo_t* info, void* raw_context) {
  auto* const context = static_cast<ucontext_t*>(raw_context);
  auto& registers = context->uc_mcontext.gregs;
  const auto at = [&](int index) { return static_cast<std::uint64_t>(registers[index]); };
  const detail::Trapped call{
      info->si_syscall,
      {at(REG_RDI), at(REG_RSI), at(REG_RDX), at(REG_R10), at(REG_R8), at(REG_R9)},
      at(REG_RIP)};
  registers[REG_RAX] = detail::handle(call);
}

}  // namespace

namespace detail {

LogHeader* log() {
  return recording;
}

long raw(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d,
         std::uint64_t e, std::uint64_t f) {
  return reinterpret_cast<Stub>(kStubAddress)(number, a, b, c, d, e, f);
}

void refuse(const char* why) {
  std::uint32_t free = 0;
  if (!recording->refused.compare_exchange_strong(free, 1)) return;
  std::strncpy(recording->refusal, why, sizeof recording->refusal - 1);
}

void note(const char* what) {
  if (std::strstr(recording->notes, what) != nullptr) return;
  const std::size_t used = std::strlen(recording->notes);
  if (used + std::strlen(what) + 3 > sizeof recording->notes) return;
  if (used != 0) std::strcat(recording->notes, "; ");
  std::strcat(recording->notes, what);
}

void lock_log() {
  std::uint32_t seen = 0;
  if (recording->lock.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
  while (recording->lock.exchange(2, std::memory_order_acquire) != 0) {
    raw(SYS_futex, reinterpret_cast<std::uint64_t>(&recording->lock), FUTEX_WAIT, 2);
  }
}

void unlock_log() {
  if (recording->lock.exchange(0, std::memory_order_release) == 2) {
    raw(SYS_futex, reinterpret_cast<std::uint64_t>(&recording->lock), FUTEX_WAKE, 1);
  }
}

std::uint64_t append(RecordHead head, const std::uint64_t* stack, const char* path_a,
                     const char* path_b, const void* data) {
  if (recording->refused.load(std::memory_order_relaxed) != 0) return 0;
  const std::uint64_t bytes = (sizeof head + 8ULL * head.stack_depth + head.path_a_bytes +
                               head.path_b_bytes + head.data_bytes + 7) /
                              8 * 8;
  const std::uint64_t place = recording->used.load(std::memory_order_relaxed);
  if (place + bytes > recording->capacity || bytes > UINT32_MAX) {
    refuse("the record became larger than the memory set aside for it; shorten the history");
    return 0;
  }
  head.bytes = static_cast<std::uint32_t>(bytes);
  head.process = static_cast<std::uint32_t>(raw(SYS_getpid));
  head.thread = static_cast<std::uint32_t>(raw(SYS_gettid));
  std::byte* to = records() + place;
  const auto put = [&](const void* from, std::size_t size) {
    if (size != 0) std::memcpy(to, from, size);
    to += size;
  };
  put(&head, sizeof head);
  put(stack, 8ULL * head.stack_depth);
  put(path_a, head.path_a_bytes);
  put(path_b, head.path_b_bytes);
  put(data, head.data_bytes);
  recording->used.store(place + bytes, std::memory_order_release);
  return place + 1;
}

}  // namespace detail

void add_inode(LogHeader& log, std::uint64_t inode) {
  for (std::size_t step = 0; step < kInodeSlots; ++step) {
    auto& slot = log.inodes[(inode * 0x9E3779B97F4A7C15ULL + step) % kInodeSlots];
    std::uint64_t seen = 0;
    if (slot.compare_exchange_strong(seen, inode) || seen == inode) return;
  }
  std::strncpy(log.refusal, "the store has more files than the recorder can follow",
               sizeof log.refusal - 1);
  log.refused = 1;
}

bool start_recording(LogHeader& log) {
  recording = &log;
  if (!detail::map_stub()) {
    detail::refuse("the address that the recorder needs is taken in this process");
    return false;
  }
  // What the unwinder sets up at its first use must not happen inside the handler.
  _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_NO_REASON; }, nullptr);
  KernelAction action{on_call, SA_SIGINFO | kRestorer, assay_record_return, ~std::uint64_t{0}};
  std::uint64_t unblock = std::uint64_t{1} << (SIGSYS - 1);
  const bool set =
      detail::raw(SYS_rt_sigaction, SIGSYS, reinterpret_cast<std::uint64_t>(&action), 0, 8) == 0 &&
      detail::raw(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<std::uint64_t>(&unblock), 0,
                  8) == 0;
  if (!set) {
    detail::refuse("the signal that the recorder needs cannot be taken");
    return false;
  }
  // A program that a recorded one started has its filter already: a second would cost twice.
  const bool inherited = log.attached != 0 && ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
  const int code = inherited ? 0 : detail::install_filter();
  if (code != 0) {
    detail::refuse(code == EACCES || code == EPERM || code == EINVAL
                       ? "this system does not let a process filter its own system calls (seccomp)"
                       : "the filter of system calls could not be installed");
    return false;
  }
  log.attached = 1;
  return true;
}

std::uint64_t record_mark(std::uint64_t what, std::uint64_t a, std::uint64_t b) {
  if (recording == nullptr) return 0;
  // All signals wait, as in the handler: one that came now and wrote would wait for our lock.
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  detail::raw(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<std::uint64_t>(&all),
              reinterpret_cast<std::uint64_t>(&before), 8);
  detail::lock_log();
  detail::capture_mappings();
  RecordHead head{};
  head.kind = RecordKind::mark;
  head.reference = what;
  head.offset = a;
  head.length = b;
  const std::uint64_t place = detail::append(head, nullptr, nullptr, nullptr, nullptr);
  detail::unlock_log();
  detail::raw(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<std::uint64_t>(&before), 0, 8);
  return place;
}

}  // namespace assay::qualify::power
