#include "engine/base/wait_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace lode {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

std::uint32_t WaitWord::wait(std::uint32_t value, Deadline deadline) const {
  timespec until{};
  if (deadline) {
    // The steady clock is CLOCK_MONOTONIC, which is what the kernel takes the time by.
    const auto since = std::chrono::nanoseconds(deadline->time_since_epoch()).count();
    until.tv_sec = static_cast<time_t>(since / 1'000'000'000);
    until.tv_nsec = static_cast<long>(since % 1'000'000'000);
  }
  while (true) {
    const std::uint32_t now = load();
    if (now != value) return now;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return now;
    // Returns also when the word has changed, at a signal, and for no reason.
    ::syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET_PRIVATE, value, deadline ? &until : nullptr,
              nullptr, FUTEX_BITSET_MATCH_ANY);
  }
}

void WaitWord::wake() const {
  ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lode
