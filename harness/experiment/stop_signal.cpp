#include "harness/experiment/stop_signal.h"

#include <array>

namespace assay {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> stop_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may only set lock-free flags");

extern "C" void set_stop_flag(int /*signal*/) {
  stop_flag.store(true);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_flag.store(false);
  struct sigaction action{};
  action.sa_handler = &set_stop_flag;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
  }
}

StopOnSignal::~StopOnSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

const std::atomic<bool>& StopOnSignal::flag() const {
  return stop_flag;
}

}  // namespace assay
