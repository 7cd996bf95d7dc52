// What the kernel charges to this process: CPU time, faults, switches, bytes, memory. And what the
// rest of the machine did meanwhile. Every function may be called from any thread; a read costs
// some 10 us, so read at the edges of a phase.
#pragma once

#include <cstdint>

#include "adapters/result.h"

namespace assay {

/// Of the whole process since it began (its children not included).
struct ProcessCounters {
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;
  /// rchar and wchar of /proc/self/io: bytes asked for by read and write calls, from the cache or
  /// not. Access to mapped files does not show here.
  std::uint64_t requested_read_bytes = 0;
  std::uint64_t requested_write_bytes = 0;
  /// read_bytes and write_bytes of /proc/self/io. write_bytes charges whole folios when they get
  /// dirty and overstates; BlockDevice tells what reached the device.
  std::uint64_t charged_read_bytes = 0;
  std::uint64_t charged_write_bytes = 0;
};
[[nodiscard]] Result<ProcessCounters> process_counters();
[[nodiscard]] ProcessCounters operator-(const ProcessCounters& after,
                                        const ProcessCounters& before);

/// Resident memory of this process.
struct MemoryUse {
  std::uint64_t peak_bytes = 0;  ///< VmHWM: since the start or the last reset_peak_memory()
  std::uint64_t now_bytes = 0;   ///< VmRSS; mapped file pages count
};
[[nodiscard]] Result<MemoryUse> memory_use();
/// Makes the peak begin anew at the present value (writes 5 to /proc/self/clear_refs, Linux 4.0).
[[nodiscard]] Status reset_peak_memory();

/// CPU time of the machine and of us, to find what others used.
struct MachineCpu {
  std::uint64_t busy_ns = 0;  ///< all CPUs, user + nice + system + irq + softirq, in steps of 10 ms
  std::uint64_t user_ns = 0;  ///< of that, user + nice
  std::uint64_t steal_ns = 0;     ///< taken by the hypervisor while we wanted to run
  std::uint64_t own_ns = 0;       ///< this process and its children that ended
  std::uint64_t own_user_ns = 0;  ///< of that, in user space
};
[[nodiscard]] Result<MachineCpu> machine_cpu();
/// CPU time that somebody else used between two readings. Good to about 10 ms a CPU; never
/// negative.
struct ForeignCpu {
  std::uint64_t all_ns = 0;   ///< with the kernel's own threads (write-back, the journal)
  std::uint64_t user_ns = 0;  ///< user space alone: other programs, and nothing done for the store
};
[[nodiscard]] ForeignCpu foreign_cpu(const MachineCpu& before, const MachineCpu& after);

}  // namespace assay
