// What a child of ours leaves running when it ends: a store, a plug-in most of all, may fork, and
// what it forks may leave its process group and its session. Such a process would take CPU and disk
// from the trials after it.
//
// The kernel gives an orphan to the nearest ancestor that adopts (PR_SET_CHILD_SUBREAPER). Every
// child of ours adopts what its own descendants orphan, and this process adopts what is left when a
// child ends: so a child of this process that it did not start has been left behind, whatever group
// and session it is in. Only who kills this process as well, at the same moment, lets it escape.
// Invariants: a child that this process had before it began to adopt is never touched, nor is one
// that LiveChildren knows. Other code of this process must not start children meanwhile.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace assay {

/// Children that this process has started and not waited for yet.
class LiveChildren {
 public:
  /// Starts one by `start`, which returns its id (0: it failed), and notes it. While it runs nobody
  /// is taken for left behind.
  static void add(const std::function<pid_t()>& start);
  /// `child` has been waited for. Kills and reaps what was left running, and what that had left,
  /// until there is none. Returns how many processes that were.
  [[nodiscard]] static std::uint32_t remove(pid_t child);
};

/// For a child, between fork and exec: it adopts what its descendants orphan. Async-signal-safe.
void adopt_in_child();

}  // namespace assay
