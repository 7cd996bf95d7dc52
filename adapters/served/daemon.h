// The child process behind a served store: `assay serve ... --child`.
//
// The two ends of a socket pair are its standard output and our channel: it sends one frame when it
// serves and one when it has closed its store, each an Answer::done or an Answer::error. One thread
// at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/result.h"
#include "adapters/served/channel.h"

namespace assay::served {

class Daemon {
 public:
  /// Starts `program` and waits until it serves; an error is the child's own.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(const std::string& program,
                                                             std::vector<std::string> arguments);
  /// Kills the child when it was not waited for.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Waits for the end of a child that was asked to end: what closing its store said.
  Status wait();
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  Daemon(pid_t pid, int channel) : pid_(pid), channel_(channel) {}
  Status report();
  int reap();

  pid_t pid_;
  Channel channel_;
};

}  // namespace assay::served
