#include "harness/measure/process_counters.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "harness/measure/kernel_file.h"

namespace assay {
namespace {

std::uint64_t ns_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

/// What `after` is above `before`; 0 when it is below.
std::uint64_t growth(std::uint64_t before, std::uint64_t after) {
  return after - std::min(before, after);
}

}  // namespace

ProcessCounters operator-(const ProcessCounters& after, const ProcessCounters& before) {
  return {.user_ns = after.user_ns - before.user_ns,
          .system_ns = after.system_ns - before.system_ns,
          .minor_faults = after.minor_faults - before.minor_faults,
          .major_faults = after.major_faults - before.major_faults,
          .voluntary_switches = after.voluntary_switches - before.voluntary_switches,
          .involuntary_switches = after.involuntary_switches - before.involuntary_switches,
          .requested_read_bytes = after.requested_read_bytes - before.requested_read_bytes,
          .requested_write_bytes = after.requested_write_bytes - before.requested_write_bytes,
          .charged_read_bytes = after.charged_read_bytes - before.charged_read_bytes,
          .charged_write_bytes = after.charged_write_bytes - before.charged_write_bytes};
}

Result<ProcessCounters> process_counters() {
  const std::string path = "/proc/self/io";
  const Result<std::string> io = read_kernel_file(path);
  if (!io) return std::unexpected(io.error());
  ProcessCounters counters;
  struct Field {
    std::string_view name;
    std::uint64_t* value;
  };
  for (const Field& field : {Field{"rchar", &counters.requested_read_bytes},
                             Field{"wchar", &counters.requested_write_bytes},
                             Field{"read_bytes", &counters.charged_read_bytes},
                             Field{"write_bytes", &counters.charged_write_bytes}}) {
    const Result<std::uint64_t> number = kernel_number(*io, field.name, path);
    if (!number) return std::unexpected(number.error());
    *field.value = *number;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  counters.user_ns = ns_of(usage.ru_utime);
  counters.system_ns = ns_of(usage.ru_stime);
  counters.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  counters.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  counters.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  counters.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  return counters;
}

Result<MemoryUse> memory_use() {
  const std::string path = "/proc/self/status";
  const Result<std::string> status = read_kernel_file(path);
  if (!status) return std::unexpected(status.error());
  const Result<std::uint64_t> peak = kernel_number(*status, "VmHWM", path);
  if (!peak) return std::unexpected(peak.error());
  const Result<std::uint64_t> now = kernel_number(*status, "VmRSS", path);
  if (!now) return std::unexpected(now.error());
  // Written in kB, which the kernel means as 1024 bytes. The two are read one after the other.
  return MemoryUse{.peak_bytes = std::max(*peak, *now) * 1024, .now_bytes = *now * 1024};
}

Status reset_peak_memory() {
  const std::string path = "/proc/self/clear_refs";
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return fail(system_error("cannot reset the peak of memory use", errno).at(path));
  const ssize_t wrote = ::write(file, "5", 1);
  const int code = errno;
  ::close(file);
  if (wrote != 1) return fail(system_error("cannot reset the peak of memory use", code).at(path));
  return {};
}

Result<MachineCpu> machine_cpu() {
  const std::string path = "/proc/stat";
  const Result<std::string> text = read_kernel_file(path);
  if (!text) return std::unexpected(text.error());
  MachineCpu cpu;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    cpu.own_user_ns += ns_of(usage.ru_utime);
    cpu.own_ns += ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
  }
  const std::string_view line = lines_of(*text).front();
  // cpu user nice system idle iowait irq softirq steal ...; guest time is inside user.
  const std::vector<std::uint64_t> fields =
      line.starts_with("cpu ") ? numbers_of(line.substr(4)) : std::vector<std::uint64_t>();
  if (fields.size() < 7)
    return fail(
        Error(ErrorKind::environment, "this kernel does not tell the CPUs' times").at(path));
  const auto ns_per_jiffy = 1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  cpu.busy_ns = (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) * ns_per_jiffy;
  cpu.user_ns = (fields[0] + fields[1]) * ns_per_jiffy;
  cpu.steal_ns = fields.size() > 7 ? fields[7] * ns_per_jiffy : 0;
  return cpu;
}

ForeignCpu foreign_cpu(const MachineCpu& before, const MachineCpu& after) {
  // A reading may step back by a jiffy when the kernel corrects idle time.
  const std::uint64_t own = growth(before.own_ns, after.own_ns);
  const std::uint64_t own_user = growth(before.own_user_ns, after.own_user_ns);
  return {.all_ns = growth(own, growth(before.busy_ns, after.busy_ns)),
          .user_ns = growth(own_user, growth(before.user_ns, after.user_ns))};
}

}  // namespace assay
