// The seccomp filter: which system calls are sent to the handler.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power::detail {
namespace {

constexpr std::uint32_t low(std::size_t field) {
  return static_cast<std::uint32_t>(field);
}
constexpr std::uint32_t kNumber = low(offsetof(seccomp_data, nr));
constexpr std::uint32_t kArchitecture = low(offsetof(seccomp_data, arch));
constexpr std::uint32_t kCaller = low(offsetof(seccomp_data, instruction_pointer));
constexpr std::uint32_t argument(std::size_t index) {
  return low(offsetof(seccomp_data, args)) + 8 * low(index);
}

/// Sent always: they change files, names, or make them durable.
constexpr long kAlways[] = {SYS_write,     SYS_pwrite64,       SYS_writev,    SYS_pwritev,
                            SYS_pwritev2,  SYS_sendfile,       SYS_splice,    SYS_copy_file_range,
                            SYS_ftruncate, SYS_truncate,       SYS_fallocate, SYS_rename,
                            SYS_renameat,  SYS_renameat2,      SYS_link,      SYS_linkat,
                            SYS_unlink,    SYS_unlinkat,       SYS_mkdir,     SYS_mkdirat,
                            SYS_rmdir,     SYS_symlink,        SYS_symlinkat, SYS_mknod,
                            SYS_mknodat,   SYS_fsync,          SYS_fdatasync, SYS_sync_file_range,
                            SYS_sync,      SYS_syncfs,         SYS_msync,     SYS_creat,
                            SYS_openat2,   SYS_io_uring_setup, SYS_io_setup,  SYS_exit_group};

/// A program under construction. Jumps go forward by counts, so each test is a closed block.
class Program {
 public:
  void load(std::uint32_t field) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field)); }
  void end(std::uint32_t action) { add(BPF_STMT(BPF_RET | BPF_K, action)); }
  /// Skips the next `count` instructions unless the loaded word equals `value`.
  void unless_equal(std::uint32_t value, std::uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
  }
  void unless_any_bit(std::uint32_t bits, std::uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, count));
  }
  void unless_at_least(std::uint32_t value, std::uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, count));
  }
  void if_at_least(std::uint32_t value, std::uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, count, 0));
  }
  /// `number` is sent when argument `index` has any of `bits`.
  void send_if_bits(long number, std::size_t index, std::uint32_t bits) {
    unless_equal(static_cast<std::uint32_t>(number), 5);
    load(argument(index));
    unless_any_bit(bits, 1);
    end(SECCOMP_RET_TRAP);
    end(SECCOMP_RET_ALLOW);
    load(kNumber);
  }
  void send_if_equal(long number, std::size_t index, std::uint32_t value) {
    unless_equal(static_cast<std::uint32_t>(number), 4);
    load(argument(index));
    unless_equal(value, 1);
    end(SECCOMP_RET_TRAP);
    load(kNumber);
  }
  /// `number` is sent when its first argument is an address in the window.
  void send_if_in_window(long number) {
    unless_equal(static_cast<std::uint32_t>(number), 6);
    load(argument(0) + 4);
    unless_at_least(kWindowAt >> 32, 2);
    if_at_least(kWindowEnd >> 32, 1);
    end(SECCOMP_RET_TRAP);
    end(SECCOMP_RET_ALLOW);
    load(kNumber);
  }
  sock_fprog get() { return {count_, code_}; }

 private:
  void add(sock_filter instruction) { code_[count_++] = instruction; }
  sock_filter code_[256];
  unsigned short count_ = 0;
};

void build(Program& program) {
  program.load(kArchitecture);
  program.unless_equal(AUDIT_ARCH_X86_64, 1);
  program.if_at_least(0, 1);
  program.end(SECCOMP_RET_KILL_PROCESS);  // 32-bit calls have other numbers
  // Our own instruction passes.
  program.load(kCaller);
  program.unless_equal(static_cast<std::uint32_t>(kStubReturn), 3);
  program.load(kCaller + 4);
  program.unless_equal(static_cast<std::uint32_t>(kStubReturn >> 32), 1);
  program.end(SECCOMP_RET_ALLOW);
  program.load(kNumber);
  for (const long number : kAlways) {
    program.unless_equal(static_cast<std::uint32_t>(number), 1);
    program.end(SECCOMP_RET_TRAP);
  }
  constexpr std::uint32_t kMakes = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  program.send_if_bits(SYS_openat, 2, kMakes);
  program.send_if_bits(SYS_open, 1, kMakes);
  program.send_if_bits(SYS_mmap, 3, MAP_SHARED);
  program.send_if_equal(SYS_ioctl, 1, FICLONE);
  program.send_if_equal(SYS_ioctl, 1, FICLONERANGE);
  program.send_if_equal(SYS_ioctl, 1, FIDEDUPERANGE);
  program.send_if_in_window(SYS_munmap);
  program.send_if_in_window(SYS_mremap);
  program.send_if_in_window(SYS_mprotect);
  program.end(SECCOMP_RET_ALLOW);
}

}  // namespace

bool map_stub() {
  // rax <- first argument, the others move down by one, syscall, ret.
  static constexpr unsigned char kCode[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6,
                                            0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8,
                                            0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05, 0xc3};
  static_assert(kStubReturn - kStubAddress == sizeof kCode - 1);
  static bool mapped = false;
  if (mapped) return true;
  void* const wanted = reinterpret_cast<void*>(kStubAddress);
  void* const page = ::mmap(wanted, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page != wanted) return false;
  std::memcpy(page, kCode, sizeof kCode);
  mapped = ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0;
  return mapped;
}

int install_filter() {
  static Program program;
  build(program);
  sock_fprog code = program.get();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &code) != 0) {
    return errno == 0 ? EINVAL : errno;
  }
  return 0;
}

}  // namespace assay::qualify::power::detail
