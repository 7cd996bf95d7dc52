// Which CPUs we may use, pinning, and which CPU serves a block device. A pin holds for the calling
// thread and for threads it makes afterwards.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"

namespace assay {

/// CPUs that the calling thread may run on, rising.
[[nodiscard]] Result<std::vector<int>> allowed_cpus();
/// Restricts the calling thread to `cpus` (not empty). A refused pin, or a CPU that is not there,
/// is an error of kind `environment`; nothing is changed then.
[[nodiscard]] Status pin_thread(std::span<const int> cpus);
/// "0-3,8" -> {0, 1, 2, 3, 8}, as the kernel writes lists of CPUs.
[[nodiscard]] Result<std::vector<int>> parse_cpu_list(std::string_view text);

/// CPUs that take the interrupts of a disk ("vda", "nvme0n1"), the busiest first. Best effort:
/// empty when /proc/interrupts names no line for it.
[[nodiscard]] std::vector<int> interrupt_cpus(const std::string& disk);

/// A line of /proc/interrupts.
struct Interrupt {
  int number = 0;
  std::vector<std::uint64_t> counts;  ///< by column
  std::string name;                   ///< the action, last word of the line: "virtio0-req.0"
};
/// The numbered lines of /proc/interrupts.
[[nodiscard]] std::vector<Interrupt> parse_interrupts(std::string_view text);

}  // namespace assay
