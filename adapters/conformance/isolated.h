// Runs work that touches a foreign store in a child process, so that a crash or a hang in it is one
// clear message and not the end of us.
//
// The child is forked, so the caller must not have started threads. Its standard error goes through
// us, its result comes back through a pipe. A crash note that the loader of plug-ins leaves
// (adapters/plugin/crash_note.h) tells in which call it died.
// Invariant: the child is gone, and reaped, when a function here returns, also after Ctrl-C.
// Threads: one call at a time, because Ctrl-C is caught meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "adapters/conformance/conformance.h"

namespace assay {

/// Tells the parent what is being done; shows that the child is alive.
using OnStep = std::function<void(std::string_view step)>;

struct Isolation {
  std::string subject;  ///< the store as the user named it, for messages
  /// A child that reports no step and no result for so long has hung.
  std::chrono::milliseconds silence_limit{60'000};
  OnStep on_step;  ///< called in the parent, for progress; may be empty
};

/// Runs `work` in a child and returns what it returns. Errors: its own; ErrorKind::child with the
/// store, the signal, the call if known, and the step, when it crashes, ends early or hangs;
/// ErrorKind::interrupted after Ctrl-C.
[[nodiscard]] Result<std::string> run_isolated(
    const Isolation& isolation, const std::function<Result<std::string>(const OnStep&)>& work);

/// check_conformance() in a child. `find` runs in the child as well, because loading a plug-in runs
/// its code. `options.on_check` is not used; isolation.on_step gets the names of the checks.
[[nodiscard]] Result<ConformanceReport> check_isolated(
    const Isolation& isolation, const std::function<Result<const Driver*>()>& find,
    const ConformanceOptions& options);

/// What a crash note in the output of some child says: "store NAME crashed (signal 11, Segmentation
/// fault) in put". Empty if there is none.
[[nodiscard]] std::string crash_note_in(std::string_view output);

}  // namespace assay
