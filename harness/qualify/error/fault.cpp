#include "harness/qualify/error/fault.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <numeric>

#include <fmt/format.h>

namespace assay::qualify::error {
namespace {

struct Call {
  int number;
  const char* name;
  CallSort sort;
  FilePlace file;
};

constexpr FilePlace kDescriptor{.descriptor = 0};
constexpr FilePlace kPath{.path = 0};
constexpr FilePlace kPathAt{.directory = 0, .path = 1};
constexpr FilePlace kNoFile{};

constexpr Call kCalls[] = {
    {SYS_write, "write", CallSort::write, kDescriptor},
    {SYS_pwrite64, "pwrite64", CallSort::write, kDescriptor},
    {SYS_writev, "writev", CallSort::write, kDescriptor},
    {SYS_pwritev, "pwritev", CallSort::write, kDescriptor},
    {SYS_pwritev2, "pwritev2", CallSort::write, kDescriptor},
    {SYS_fsync, "fsync", CallSort::sync, kDescriptor},
    {SYS_fdatasync, "fdatasync", CallSort::sync, kDescriptor},
    {SYS_sync_file_range, "sync_file_range", CallSort::sync, kDescriptor},
    {SYS_msync, "msync", CallSort::sync, kNoFile},
    {SYS_ftruncate, "ftruncate", CallSort::size, kDescriptor},
    {SYS_truncate, "truncate", CallSort::size, kPath},
    {SYS_fallocate, "fallocate", CallSort::size, kDescriptor},
    {SYS_openat, "openat", CallSort::create, kPathAt},
    {SYS_mkdirat, "mkdirat", CallSort::create, kPathAt},
    {SYS_renameat, "renameat", CallSort::name, kPathAt},
    {SYS_renameat2, "renameat2", CallSort::name, kPathAt},
    {SYS_linkat, "linkat", CallSort::name, kPathAt},
    {SYS_unlinkat, "unlinkat", CallSort::name, kPathAt},
    {SYS_mmap, "mmap", CallSort::map, {.descriptor = 4}},
    {SYS_read, "read", CallSort::read, kDescriptor},
    {SYS_pread64, "pread64", CallSort::read, kDescriptor},
    {SYS_readv, "readv", CallSort::read, kDescriptor},
    {SYS_preadv, "preadv", CallSort::read, kDescriptor},
    {SYS_preadv2, "preadv2", CallSort::read, kDescriptor},
#ifdef SYS_open
    {SYS_open, "open", CallSort::create, kPath},
    {SYS_creat, "creat", CallSort::create, kPath},
    {SYS_mkdir, "mkdir", CallSort::create, kPath},
    {SYS_rename, "rename", CallSort::name, kPath},
    {SYS_link, "link", CallSort::name, kPath},
    {SYS_unlink, "unlink", CallSort::name, kPath},
    {SYS_rmdir, "rmdir", CallSort::name, kPath},
#endif
};

const Call* find_call(int number) {
  for (const Call& call : kCalls)
    if (call.number == number) return &call;
  return nullptr;
}

/// The calls that may make a name or more of a file, and so need space.
bool may_need_space(int call) {
  switch (call) {
    case SYS_unlinkat:
    case SYS_ftruncate:
    case SYS_truncate:
#ifdef SYS_unlink
    case SYS_unlink:
    case SYS_rmdir:
#endif
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string_view to_string(CallSort sort) {
  switch (sort) {
    case CallSort::write:
      return "write";
    case CallSort::sync:
      return "sync";
    case CallSort::size:
      return "size";
    case CallSort::create:
      return "create";
    case CallSort::name:
      return "name";
    case CallSort::map:
      return "map";
    case CallSort::read:
      return "read";
  }
  return "write";
}

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::io:
      return "EIO";
    case Answer::no_space:
      return "ENOSPC";
    case Answer::quota:
      return "EDQUOT";
    case Answer::interrupted:
      return "EINTR";
    case Answer::no_memory:
      return "ENOMEM";
    case Answer::part:
      return "a short write";
  }
  return "EIO";
}

std::string FaultShape::text() const {
  return fmt::format("{} {} at {}", to_string(answer), stays ? "from then on" : "once",
                     to_string(sort));
}

const std::vector<FaultShape>& fault_shapes() {
  static const std::vector<FaultShape> shapes = [] {
    std::vector<FaultShape> all;
    const auto both = [&](CallSort sort, Answer answer) {
      all.push_back({sort, answer, false});
      all.push_back({sort, answer, true});
    };
    // Whoever is interrupted may try again for ever: that error comes once only.
    const auto once = [&](CallSort sort, Answer answer) { all.push_back({sort, answer, false}); };
    both(CallSort::sync, Answer::io);
    both(CallSort::write, Answer::io);
    both(CallSort::write, Answer::no_space);
    both(CallSort::write, Answer::part);
    both(CallSort::create, Answer::io);
    both(CallSort::name, Answer::io);
    both(CallSort::size, Answer::io);
    both(CallSort::read, Answer::io);
    both(CallSort::map, Answer::no_memory);
    both(CallSort::sync, Answer::no_space);
    both(CallSort::sync, Answer::quota);
    once(CallSort::sync, Answer::interrupted);
    both(CallSort::write, Answer::quota);
    once(CallSort::write, Answer::interrupted);
    both(CallSort::size, Answer::no_space);
    once(CallSort::size, Answer::interrupted);
    both(CallSort::create, Answer::no_space);
    both(CallSort::create, Answer::quota);
    both(CallSort::name, Answer::no_space);
    once(CallSort::read, Answer::interrupted);
    return all;
  }();
  return shapes;
}

std::optional<CallSort> sort_of(int call) {
  const Call* const found = find_call(call);
  if (found == nullptr) return std::nullopt;
  return found->sort;
}

const char* name_of_call(int call) {
  const Call* const found = find_call(call);
  return found == nullptr ? "?" : found->name;
}

FilePlace file_of(int call) {
  const Call* const found = find_call(call);
  return found == nullptr ? kNoFile : found->file;
}

bool cannot_fail(const seccomp_data& call) {
  return call.nr == SYS_sync_file_range && call.args[3] == 0;
}

std::uint64_t spread(std::uint64_t turn, std::uint64_t count) {
  // Steps of the golden section, made prime to the count so that each call comes once.
  std::uint64_t step = std::max<std::uint64_t>(1, count * 618 / 1000);
  while (std::gcd(step, count) != 1) ++step;
  return 1 + turn % count * step % count;
}

int errno_of(Answer answer, int call) {
  switch (answer) {
    case Answer::no_space:
      return may_need_space(call) ? ENOSPC : EIO;
    case Answer::quota:
      return may_need_space(call) ? EDQUOT : EIO;
    case Answer::interrupted:
      return call == SYS_msync || call == SYS_sync_file_range ? EIO : EINTR;
    case Answer::no_memory:
      return ENOMEM;
    case Answer::io:
    case Answer::part:
      break;
  }
  return EIO;
}

std::vector<sock_filter> fault_filter(const CallSorts& sorts) {
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
  const auto argument = [&](std::size_t index) {
    return load(offsetof(seccomp_data, args) + index * 8);  // its low half: little-endian
  };
  std::vector<sock_filter> code;
  code.push_back(load(offsetof(seccomp_data, arch)));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  code.push_back(load(offsetof(seccomp_data, nr)));
  const auto is = [&](int number, unsigned char else_skip) {
    code.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, else_skip));
  };
  const auto answer = [&](std::uint32_t what) { code.push_back(BPF_STMT(BPF_RET | BPF_K, what)); };
  // Opening counts when it may make or empty a file: the flags decide.
  const auto opens = [&](int number, std::size_t flags) {
    is(number, 4);
    code.push_back(argument(flags));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));
    answer(SECCOMP_RET_USER_NOTIF);
    answer(SECCOMP_RET_ALLOW);
  };
  for (const Call& call : kCalls) {
    if (!sorts[static_cast<std::size_t>(call.sort)]) continue;
    if (call.number == SYS_mmap) {
      // Memory without a file is no matter of the disk.
      is(call.number, 4);
      code.push_back(argument(4));
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0));
      answer(SECCOMP_RET_USER_NOTIF);
      answer(SECCOMP_RET_ALLOW);
    } else if (call.number == SYS_openat) {
      opens(call.number, 2);
#ifdef SYS_open
    } else if (call.number == SYS_open) {
      opens(call.number, 1);
#endif
    } else {
      is(call.number, 1);
      answer(SECCOMP_RET_USER_NOTIF);
    }
  }
  // Seen, never failed: what goes through a ring is not seen at all.
  is(SYS_io_uring_setup, 1);
  answer(SECCOMP_RET_USER_NOTIF);
  answer(SECCOMP_RET_ALLOW);
  return code;
}

}  // namespace assay::qualify::error
