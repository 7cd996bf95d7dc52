// Ctrl-C and friends become a flag. However often they come, nothing is interrupted in the middle
// of a write: the runner sees the flag, ends the current trial, records and returns.
// One instance at a time in a process; the flag may be read by any thread.
#pragma once

#include <atomic>
#include <csignal>

namespace assay {

class StopOnSignal {
 public:
  /// Catches SIGINT, SIGTERM and SIGHUP until destruction.
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const;

 private:
  struct sigaction before_[3];
};

}  // namespace assay
