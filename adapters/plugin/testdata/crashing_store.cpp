// A store that works until the call that its settings name, and then ends badly. `leave` does not
// end: it leaves a process running that is in a session of its own and nobody's child, says its id
// on standard error, and goes on; once a process.
//   crash_in     none, or the call: open put get erase apply rollback scan close
//   crash_after  how many of these calls succeed first
//   crash_how    segv, abort, stack (overflow), exit, throw, hang, memory (takes it all) or leave
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "adapters/plugin/testdata/toy_store.h"

namespace {

constexpr const char* kCalls[] = {"none",  "open",     "put",  "get",   "erase",
                                  "apply", "rollback", "scan", "close", nullptr};
constexpr const char* kEnds[] = {"segv", "abort",  "stack", "exit", "throw",
                                 "hang", "memory", "leave", nullptr};

std::atomic<unsigned> taken{0};
std::atomic<std::uint64_t> calls{0};  // of the kind that crashes, in this process

void leave_a_process() {
  static std::atomic<bool> left{false};
  if (left.exchange(true)) return;
  const pid_t between = ::fork();
  if (between == 0) {
    ::setsid();
    const pid_t last = ::fork();
    if (last == 0) {
      for (;;) ::pause();
    }
    std::fprintf(stderr, "left running: %d\n", static_cast<int>(last));
    std::fflush(stderr);
    ::_exit(0);
  }
  ::waitpid(between, nullptr, 0);
}

// Not a tail call, and nothing the compiler could leave out.
int overflow(volatile char* above, int depth) {
  volatile char room[4096];
  room[0] = *above;
  return depth == 0 ? 0 : overflow(room, depth - 1) + room[0];
}

struct Crashing {
  static constexpr const char* name = "crashing";
  static constexpr std::array<toy::Choice, 3> settings{
      {{"crash_in", "none", kCalls}, {"crash_after", "0", nullptr}, {"crash_how", "segv", kEnds}}};

  explicit Crashing(const toy::Values& values) {
    if (values.empty()) return;
    crash_in = values.at("crash_in");
    crash_how = values.at("crash_how");
    crash_after = std::strtoull(values.at("crash_after").c_str(), nullptr, 10);
  }

  void before(const char* call) const {
    if (crash_in != call || calls++ < crash_after) return;
    if (crash_how == "segv") {
      // Not a null pointer: a sanitizer would end the process before the fault does.
      volatile std::uintptr_t nowhere = 4096;
      *reinterpret_cast<volatile int*>(nowhere) = 1;
    }
    if (crash_how == "leave") leave_a_process();
    if (crash_how == "abort") std::abort();
    if (crash_how == "exit") ::_exit(3);
    if (crash_how == "throw") throw std::runtime_error("thrown on purpose");
    if (crash_how == "stack") {
      volatile char bottom = 1;
      overflow(&bottom, 1'000'000'000);
    }
    while (crash_how == "hang") ::pause();
    while (crash_how == "memory") {  // bounded, where nothing bounds it
      constexpr std::size_t kBlock = 1 << 20;
      if (taken++ == 1024) std::abort();
      volatile char* const block = static_cast<volatile char*>(std::malloc(kBlock));
      for (std::size_t at = 0; at < kBlock; at += 4096) block[at] = 1;
    }
  }
  [[nodiscard]] std::size_t commits_to_forget() const { return 0; }
  void opened(toy::Entries&) const {}
  void order(std::vector<toy::Entry>&) const {}

  std::string crash_in = "none";
  std::string crash_how = "segv";
  std::uint64_t crash_after = 0;
};

const assay_plugin kTable = toy::toy_table<Crashing>();

}  // namespace

const assay_plugin* assay_plugin_entry(std::uint32_t) {
  return &kTable;
}
