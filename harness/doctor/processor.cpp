// The processor: how fast it runs, who else runs on it, what limits it.
#include <fmt/format.h>

#include "harness/doctor/looks.h"

namespace assay::doctor {
namespace {

using nlohmann::json;

constexpr std::string_view kCpu = "/sys/devices/system/cpu";

std::vector<std::string> governor_files(const provenance::SystemFiles& files) {
  std::vector<std::string> paths;
  for (int cpu = 0; cpu < 4096; ++cpu) {
    const std::string path = fmt::format("{}/cpu{}/cpufreq/scaling_governor", kCpu, cpu);
    if (!files.text(fmt::format("{}/cpu{}/topology/core_id", kCpu, cpu)) && !files.text(path)) {
      break;
    }
    if (files.text(path)) paths.push_back(path);
  }
  return paths;
}

/// The file of this group's CPU or memory limit: version 2, else version 1's own mount.
json group_limit(const provenance::SystemFiles& files, std::string_view controller,
                 std::string_view unified, std::string_view old) {
  std::string group;
  std::string old_group;
  for (const std::string& line : files.lines("/proc/self/cgroup")) {
    if (line.starts_with("0::")) group = line.substr(3);
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find(fmt::format(",{},", controller)) != std::string::npos) {
      old_group = line.substr(second + 1);
    }
  }
  const auto below = [](const std::string& name) { return name == "/" ? std::string() : name; };
  const std::string places[] = {
      fmt::format("/sys/fs/cgroup{}/{}", below(group), unified),
      fmt::format("/sys/fs/cgroup/{}{}/{}", controller, below(old_group), old),
      fmt::format("/sys/fs/cgroup/{}/{}", controller, old)};
  for (const std::string& place : places) {
    if (const auto text = files.text(place)) return *text;
  }
  return provenance::unknown("this process's control group shows none");
}

}  // namespace

Finding look_at_governor(const Look& look) {
  Finding finding{.title = "CPU frequency governor",
                  .wanted = "performance",
                  .why =
                      "others change the frequency with the load, so that a run's first seconds "
                      "and its pauses are slower than the rest",
                  .how = "cpupower frequency-set -g performance"};
  std::map<std::string, int> counts;
  for (const std::string& path : governor_files(look.files)) {
    const std::string governor = look.files.text(path).value_or("");
    ++counts[governor];
    if (governor != "performance") finding.remedies.push_back({path, "performance"});
  }
  if (counts.empty()) {
    finding.found = "the kernel shows no governor (a virtual machine's host sets the frequency)";
    return finding;
  }
  for (const auto& [governor, count] : counts) {
    finding.found += fmt::format("{}{} on {} CPU{}", finding.found.empty() ? "" : ", ", governor,
                                 count, count == 1 ? "" : "s");
  }
  finding.state = finding.remedies.empty() ? State::fine : State::differs;
  return finding;
}

Finding look_at_turbo(const Look& look) {
  Finding finding =
      judged({.title = "turbo frequencies",
              .why = "how fast a CPU runs above its base then depends on heat and on "
                     "what the other CPUs do",
              .how = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo "
                     "0 > /sys/devices/system/cpu/cpufreq/boost"},
             look.cpu["turbo"], {"off"});
  if (finding.state == State::differs) {
    const std::string intel = fmt::format("{}/intel_pstate/no_turbo", kCpu);
    if (look.files.text(intel)) {
      finding.remedies.push_back({intel, "1"});
    } else {
      finding.remedies.push_back({fmt::format("{}/cpufreq/boost", kCpu), "0"});
    }
  }
  return finding;
}

Finding look_at_smt(const Look& look) {
  Finding finding = judged(
      {.title = "simultaneous multithreading",
       .why = "two threads on one core slow each other down by what they happen to do",
       .how = "echo off > /sys/devices/system/cpu/smt/control, or pin to one thread of a core"},
      look.cpu["smt"], {"off", "forceoff", "notsupported", "notimplemented"});
  if (finding.state == State::differs) {
    finding.remedies.push_back({fmt::format("{}/smt/control", kCpu), "off"});
  }
  return finding;
}

Finding look_at_throttling(const Look& look) {
  Finding finding{.title = "thermal throttling since the machine was started",
                  .wanted = "0 events",
                  .why = "a CPU that is too hot slows down in the middle of a run",
                  .how = "cool the machine; a run is void when the count rises during a trial"};
  std::uint64_t events = 0;
  bool seen = false;
  for (int cpu = 0; cpu < 4096; ++cpu) {
    const std::string folder = fmt::format("{}/cpu{}/thermal_throttle", kCpu, cpu);
    const auto count = look.files.text(folder + "/core_throttle_count");
    if (!count) break;
    seen = true;
    events += std::strtoull(count->c_str(), nullptr, 10);
  }
  finding.found =
      seen ? fmt::format("{} events", events) : "the kernel shows no counters (a virtual machine?)";
  if (seen) finding.state = events == 0 ? State::fine : State::differs;
  return finding;
}

Finding look_at_clock_source(const Look& look) {
  return judged({.title = "clock source",
                 .why = "others than these are read by a system call or slower: a microsecond a "
                        "sample where these take some 20 ns",
                 .how = "echo tsc > "
                        "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
                look.clock["source"],
                {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"});
}

Finding look_at_aslr(const Look& look) {
  Finding finding =
      judged({.title = "address space randomisation",
              .why = "without it every process has the same layout, and one lucky layout counts as "
                     "a difference between stores; with it the trials average over layouts",
              .how = "sysctl kernel.randomize_va_space=2"},
             look.files.text_or_unknown("/proc/sys/kernel/randomize_va_space"), {"2"});
  if (finding.state == State::differs) {
    finding.remedies.push_back({"/proc/sys/kernel/randomize_va_space", "2"});
  }
  return finding;
}

Finding look_at_load(const Look& look) {
  Finding finding{.title = "load average of the last minute",
                  .wanted = "below 0.5",
                  .why = "what runs beside a trial takes its CPU time, its caches and its disk",
                  .how = "stop what runs, and wait a minute"};
  const auto text = look.files.text("/proc/loadavg");
  if (!text) {
    finding.found = "cannot read /proc/loadavg";
    return finding;
  }
  const double load = std::strtod(text->c_str(), nullptr);
  finding.found = fmt::format("{:.2f}", load);
  finding.state = load < 0.5 ? State::fine : State::differs;
  return finding;
}

Finding look_at_foreign_cpu(const Look& look) {
  constexpr double kMost = 0.1;
  Finding finding{.title = "CPUs that others use now",
                  .wanted = fmt::format("at most {}", kMost),
                  .why = "as the load average, but at this very moment",
                  .how = "look at top; a trial is void when others use more than foreign_cpus_max"};
  if (!look.foreign_cpus) {
    finding.found = "not watched, or /proc/stat cannot be read";
    return finding;
  }
  finding.found = fmt::format("{:.2f} of the last {} ms", *look.foreign_cpus, look.watched.count());
  finding.state = *look.foreign_cpus <= kMost ? State::fine : State::differs;
  return finding;
}

Finding look_at_cpu_limit(const Look& look) {
  json limit = group_limit(look.files, "cpu", "cpu.max", "cpu.cfs_quota_us");
  // "max 100000" of version 2 and "-1" of version 1 are no limit.
  if (limit.is_string()) {
    const std::string text = limit.get<std::string>();
    if (text.starts_with("max") || text == "-1") limit = "none";
  }
  return judged(
      {.title = "CPU limit of this control group",
       .why = "a group that used up its share is stopped until the next period: latencies "
              "of 100 ms that no store caused",
       .how = "run outside of the limited group (a container's --cpus)"},
      limit, {"none"});
}

Finding look_at_memory_limit(const Look& look) {
  json limit = group_limit(look.files, "memory", "memory.max", "memory.limit_in_bytes");
  // Version 1 writes "no limit" as the largest multiple of a page.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
  if (limit.is_string()) {
    const std::string text = limit.get<std::string>();
    const std::uint64_t bytes = std::strtoull(text.c_str(), nullptr, 10);
    if (text == "max" || bytes >= kNoLimit) limit = "none";
  }
  return judged({.title = "memory limit of this control group",
                 .why = "it bounds the page cache as well: a store then reads from the disk what "
                        "would fit into the machine's memory",
                 .how = "run outside of the limited group (a container's --memory), or keep it and "
                        "know that it is part of the result"},
                limit, {"none"});
}

}  // namespace assay::doctor
