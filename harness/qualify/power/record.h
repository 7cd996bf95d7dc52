// Runs something in a child process with the recorder on, and gives back its trace.
//
// Invariant: a trace that is returned was complete: the recorder saw no call that it cannot follow,
// and replaying all events reproduced the directory byte for byte. Everything else is an Error that
// says what was in the way; ErrorKind::unsupported where the store does what cannot be recorded,
// ErrorKind::environment where the machine lacks something.
// Threads: the caller must not have started any (the child is forked).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/qualify/power/trace.h"

namespace assay::qualify::power {

struct RecordPlan {
  std::string directory;  ///< the store's; whatever is in it now counts as durable
  std::uint64_t log_bytes = std::uint64_t{1} << 30;  ///< room for the record; used as needed
  std::uint32_t stacks = 16;                         ///< return addresses to note at each sync
  std::chrono::milliseconds timeout{120'000};
  std::uint64_t fail_sync = 0;  ///< this sync call, from 1, is not made and fails with EIO
};

/// Calls `work` in a recorded child. Its error is returned as it is; a child that dies or takes
/// longer than the timeout is ErrorKind::child.
[[nodiscard]] Result<Trace> record_call(const RecordPlan& plan,
                                        const std::function<Status()>& work);

/// Runs a program, which must load the preloaded object at `recorder` (a program that is linked
/// statically does not, and is refused). It notes its marks through `assay_record_mark`.
[[nodiscard]] Result<Trace> record_program(const RecordPlan& plan, const std::string& recorder,
                                           const std::vector<std::string>& command);

}  // namespace assay::qualify::power
