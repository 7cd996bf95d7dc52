// Names the store and the call when foreign code crashes the process.
//
// A plug-in may crash inside any call. The process is lost then, but its last line on stderr says
// who did it: "assay: store NAME crashed with signal 11 inside put". The parent of the process
// reads that line (parse_crash_note) and reports it. A process that is told to stop with SIGQUIT,
// as a parent does with a child that hangs, writes "assay: store NAME was still inside put".
//
// Invariants: the handler is async-signal-safe, writes at most one line, and then lets the signal
// take its former course, so that core files and sanitizer reports stay as they were. Nothing is
// written when the crash did not happen inside a marked call.
// Threads: marks are kept for each thread; every function may be called from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// Marks the calling thread as being inside `call` of `store` for the life of the object. Both
/// must be literals or live as long as the process. Costs two stores to thread-local memory.
class CallMark {
 public:
  CallMark(const char* store, const char* call) : store_(current.store), call_(current.call) {
    current.store = store;
    current.call = call;
  }
  ~CallMark() {
    current.store = store_;
    current.call = call_;
  }
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

  struct Place {
    const char* store;
    const char* call;
  };
  static thread_local constinit Place current;

 private:
  const char* store_;
  const char* call_;
};

/// Installs the signal handlers; only the first call does anything.
void install_crash_notes();

/// Gives the calling thread a signal stack of its own, so that even a stack overflow inside a
/// store leaves its note. Only the first call of a thread does anything.
void prepare_thread_for_crash_notes();

/// What a note on stderr says.
struct CrashNote {
  std::string store;
  std::string call;
  int signal = 0;  ///< 0: it was stopped while still inside the call
};

/// Reads one line; nothing if it is not a note.
[[nodiscard]] std::optional<CrashNote> parse_crash_note(std::string_view line);

}  // namespace assay
