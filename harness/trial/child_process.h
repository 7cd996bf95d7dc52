// A child of a trial: its own process group, lines of text to and from it, its chatter in a log.
//
// The kernel kills the child when the thread that started it ends, so that no child outlives a
// killed parent. Destroying a ChildProcess kills the whole group, and whatever else the child has
// left running (left_running.h). One thread uses an object.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay {

/// How a child of ours ends when it cannot do what it was made for. A store that calls exit() ends
/// in another way.
struct ChildExit {
  static constexpr int not_started = 120;        ///< the parent died meanwhile
  static constexpr int no_request = 121;         ///< the request cannot be read
  static constexpr int outcome_unwritten = 122;  ///< the outcome cannot be written: a full disk
};

class ChildProcess {
 public:
  enum class Event { line, ended, nothing };

  /// Standard error is appended to `log_path` (made if it is not there; empty = discarded).
  [[nodiscard]] static Result<std::unique_ptr<ChildProcess>> start(
      const std::string& binary, const std::vector<std::string>& arguments,
      const std::string& log_path);
  virtual ~ChildProcess() = default;

  /// Waits up to `timeout_ms` for a line (without its line feed), the end of the output or that of
  /// the child: what it has left running may hold the output open.
  virtual Event next(std::string& line, int timeout_ms) = 0;
  /// Writes `line` and a line feed. False when the child does not listen any more.
  virtual bool send(const std::string& line) = 0;
  /// Asks the group to end with `signal`, waits up to `grace_ms`, then kills it. A child that gets
  /// SIGQUIT leaves a line about the plug-in call that it hangs in.
  virtual void end_now(int grace_ms, int signal = SIGTERM) = 0;
  /// The last line that is not blank of what the child has left in its log.
  [[nodiscard]] virtual std::string last_log_line() const = 0;
  /// Waits for the end. Empty when the child returned 0, else a sentence: how it died and the last
  /// line it left in the log.
  virtual std::string wait() = 0;
  /// After wait(): the child ended by itself, by a fault (a segmentation fault, an abort, ...) or
  /// by an exit that is none of ChildExit, and not by a signal that comes from outside.
  [[nodiscard]] virtual bool crashed() const = 0;
  /// After wait() or end_now(): how many processes it had left running, whatever their group and
  /// session. They have been killed.
  [[nodiscard]] virtual std::uint32_t left_running() const = 0;
  [[nodiscard]] virtual pid_t pid() const = 0;
};

}  // namespace assay
