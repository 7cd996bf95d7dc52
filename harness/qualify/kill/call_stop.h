// Kills a fork exactly before a chosen call that changes files, or in the middle of a long write.
//
// The fork installs a seccomp filter that hands such calls to the server first (user
// notification); the server counts, lets them go on, or kills the process while the call has not
// begun. That needs no tracing rights. A write that a kill may cut short is cut at a page
// boundary of the file, which is where the kernel looks for a fatal signal between two pages
// (generic_perform_write in mm/filemap.c): the server writes the first part itself, through the
// fork's own file, and kills the fork.
// One thread, and the only one of the process, uses these.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/result.h"
#include "harness/qualify/kill/aim.h"
#include "harness/qualify/kill/forked.h"

namespace assay::qualify {

/// The channel over which a fork hands its filter to the server. Made before the fork.
class CallStops {
 public:
  [[nodiscard]] static Result<CallStops> make();
  CallStops(CallStops&& other) noexcept;
  CallStops& operator=(CallStops&&) = delete;
  CallStops(const CallStops&) = delete;
  CallStops& operator=(const CallStops&) = delete;
  ~CallStops();

  /// In the fork, before the store is opened: from here on its calls are counted.
  [[nodiscard]] Status install() const;

  struct Seen {
    bool reached = false;       ///< the process was killed at the aim
    bool torn = false;          ///< ... in the middle of a write
    std::uint64_t calls = 0;    ///< counted, of the aim's stage
    std::uint64_t opening = 0;  ///< of them, while opening
    std::string call;           ///< the one that was not made: "pwrite64"
    bool failed = false;        ///< the kernel refused the filter, or never handed it over
  };
  /// In the server: serves the fork's calls until it ends, is killed at the aim, or `timeout`.
  [[nodiscard]] Seen serve(Forked& fork, const Aim& aim, const SharedReceipts& receipts,
                           std::uint64_t random, std::chrono::milliseconds timeout);

 private:
  CallStops(int server, int fork) : server_(server), fork_(fork) {}
  int server_;
  int fork_;
};

/// Whether this kernel lets calls be stopped; tried once with a fork of our own.
[[nodiscard]] bool can_stop_calls();

}  // namespace assay::qualify
