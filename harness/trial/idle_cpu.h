// CPU time of another process, to see whether an idle arm is quiet.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace assay {

/// CPU time of all threads of a process so far, from /proc/PID/task/*/schedstat (nanoseconds; the
/// ticks of /proc/PID/stat are too coarse for a window). 0 when there is no such process.
[[nodiscard]] std::uint64_t cpu_ns_of(pid_t pid);

}  // namespace assay
