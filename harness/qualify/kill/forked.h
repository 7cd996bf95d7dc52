// A process forked from this one: a life of a store that is going to be killed, or a check.
//
// Forking instead of starting a program saves the loading of the store's libraries; the store
// itself is opened in the fork only. Every fork is the leader of a process group of its own, dies
// with the process that made it, has nothing on standard input and its standard output on standard
// error. Whatever it has started is killed with it, sessions of its own included: the server
// adopts orphans (adopt_orphans()).
// One thread, and the only one of the process, uses these.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "adapters/result.h"

namespace assay::qualify {

/// Memory that a fork leaves a text in.
class SharedText {
 public:
  [[nodiscard]] static Result<SharedText> make(std::size_t capacity);
  SharedText(SharedText&& other) noexcept;
  SharedText& operator=(SharedText&&) = delete;
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  ~SharedText();

  void clear();
  /// Cut at the capacity.
  void set(const std::string& text);
  [[nodiscard]] std::string get() const;

 private:
  SharedText(void* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}
  void* memory_;
  std::size_t bytes_;
};

/// How a fork ended.
struct ForkEnd {
  bool timed_out = false;  ///< it was killed because it did not end in time
  bool killed = false;     ///< by SIGKILL, its own or ours
  int exit_status = -1;    ///< of _exit(); -1 = it ended by a signal
  int signal = 0;
  std::uint32_t left_behind = 0;  ///< processes that it had started and that were still there
  /// "exit status 3", "signal 11 (Segmentation fault)", "no end within 30 s".
  [[nodiscard]] std::string text() const;
};

/// This process becomes the parent of what its forks leave behind.
[[nodiscard]] Status adopt_orphans();

class Forked {
 public:
  /// `body`'s result is the exit status.
  [[nodiscard]] static Result<Forked> start(const std::function<int()>& body);
  Forked(Forked&& other) noexcept;
  Forked& operator=(Forked&&) = delete;
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits for its end, kills it when that takes too long, and kills what it left behind.
  [[nodiscard]] ForkEnd wait(std::chrono::milliseconds timeout);
  void kill() const;

 private:
  explicit Forked(pid_t pid) : pid_(pid) {}
  pid_t pid_;  ///< 0 when it has been waited for
};

}  // namespace assay::qualify
