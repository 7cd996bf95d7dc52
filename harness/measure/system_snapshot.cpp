#include "harness/measure/system_snapshot.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "harness/measure/kernel_file.h"
#include "harness/measure/pinning.h"

namespace assay {
namespace {

constexpr std::uint64_t kShortestForeignNs = 100'000'000;
/// A suspension lasts seconds; the two clocks drift apart by far less.
constexpr std::uint64_t kSuspensionNs = 500'000'000;

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void read_cpus(SystemSnapshot& snapshot) {
  const Result<std::vector<int>> online = parse_cpu_list(snapshot.online_cpus);
  if (!online) return;
  for (const int cpu : *online) {
    const std::string place = fmt::format("/sys/devices/system/cpu/cpu{}/", cpu);
    const auto frequency = numbers_of(read_kernel_line(place + "cpufreq/scaling_cur_freq"));
    if (!frequency.empty()) snapshot.frequency_khz.push_back(frequency[0]);
    const std::string governor = read_kernel_line(place + "cpufreq/scaling_governor");
    if (!governor.empty()) snapshot.governors.push_back(governor);
    for (const char* counter : {"core_throttle_count", "package_throttle_count"}) {
      const std::string path = place + "thermal_throttle/" + counter;
      const auto count = numbers_of(read_kernel_line(path));
      if (!count.empty()) snapshot.throttle_events[path] = count[0];
    }
  }
}

double mean(const std::vector<std::uint64_t>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return sum / static_cast<double>(values.size());
}

void compare_frequency(const SystemSnapshot& before, const SystemSnapshot& after,
                       const SnapshotLimits& limits, std::vector<std::string>& found) {
  if (before.governors != after.governors) found.push_back("the frequency governor changed");
  if (before.frequency_khz.empty() || after.frequency_khz.empty()) return;
  // Under any other governor the clock follows the load: two instants then say nothing about the
  // time between them.
  const bool held =
      std::all_of(after.governors.begin(), after.governors.end(),
                  [](const auto& one) { return one == "performance" || one == "userspace"; });
  if (!held) return;
  const double old_khz = mean(before.frequency_khz);
  const double new_khz = mean(after.frequency_khz);
  if (old_khz > 0 && std::fabs(new_khz / old_khz - 1) > limits.frequency_change)
    found.push_back(fmt::format("the CPUs' frequency went from {:.0f} to {:.0f} MHz",
                                old_khz / 1000, new_khz / 1000));
}

void compare_cpu_use(const SystemSnapshot& before, const SystemSnapshot& after,
                     const SnapshotLimits& limits, std::vector<std::string>& found) {
  const std::uint64_t span = after.active_ns - before.active_ns;
  if (span < kShortestForeignNs) return;
  const Result<std::vector<int>> online = parse_cpu_list(after.online_cpus);
  const double available =
      static_cast<double>(span) * static_cast<double>(online ? online->size() : 1);
  const double foreign =
      static_cast<double>(foreign_cpu(before.cpu, after.cpu).user_ns) / available;
  if (foreign > limits.foreign_cpu_share)
    found.push_back(fmt::format("other processes used {:.0f} % of the CPUs (limit {:.0f} %)",
                                100 * foreign, 100 * limits.foreign_cpu_share));
  const double steal = static_cast<double>(after.cpu.steal_ns - before.cpu.steal_ns) / available;
  if (steal > limits.steal_share)
    found.push_back(fmt::format("the hypervisor took {:.0f} % of the CPUs (limit {:.0f} %)",
                                100 * steal, 100 * limits.steal_share));
}

}  // namespace

Result<SystemSnapshot> system_snapshot() {
  SystemSnapshot snapshot;
  snapshot.taken_ns = clock_ns(CLOCK_BOOTTIME);
  snapshot.active_ns = clock_ns(CLOCK_MONOTONIC);
  snapshot.boot_id = read_kernel_line("/proc/sys/kernel/random/boot_id");
  snapshot.online_cpus = read_kernel_line("/sys/devices/system/cpu/online");
  read_cpus(snapshot);
  snapshot.load_average = std::strtod(read_kernel_line("/proc/loadavg").c_str(), nullptr);
  const Result<MachineCpu> cpu = machine_cpu();
  if (!cpu) return std::unexpected(cpu.error());
  snapshot.cpu = *cpu;
  return snapshot;
}

std::vector<std::string> disturbances(const SystemSnapshot& before, const SystemSnapshot& after,
                                      const SnapshotLimits& limits) {
  std::vector<std::string> found;
  if (before.boot_id != after.boot_id) {
    found.emplace_back("the machine was started anew");
    return found;  // no counter goes on
  }
  const std::uint64_t slept =
      (after.taken_ns - before.taken_ns) - (after.active_ns - before.active_ns);
  if (static_cast<std::int64_t>(slept) > static_cast<std::int64_t>(kSuspensionNs))
    found.push_back(
        fmt::format("the machine was suspended for {:.1f} s", static_cast<double>(slept) / 1e9));
  if (before.online_cpus != after.online_cpus)
    found.push_back(
        fmt::format("the CPUs went from {} to {}", before.online_cpus, after.online_cpus));
  std::uint64_t throttled = 0;
  for (const auto& [path, count] : after.throttle_events) {
    const auto old = before.throttle_events.find(path);
    if (old != before.throttle_events.end() && count > old->second)
      throttled += count - old->second;
  }
  if (throttled != 0) found.push_back(fmt::format("a CPU was throttled {} times", throttled));
  compare_frequency(before, after, limits, found);
  compare_cpu_use(before, after, limits, found);
  return found;
}

}  // namespace assay
