#include "harness/measure/pinning.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/measure/kernel_file.h"

namespace assay {
namespace {

/// A mask for as many CPUs as Linux supports; the kernel refuses one shorter than its own.
constexpr int kMostCpus = 8192;

class CpuMask {
 public:
  CpuMask() : mask_(CPU_ALLOC(kMostCpus)) { CPU_ZERO_S(bytes(), mask_); }
  ~CpuMask() { CPU_FREE(mask_); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;
  [[nodiscard]] cpu_set_t* get() { return mask_; }
  [[nodiscard]] static std::size_t bytes() { return CPU_ALLOC_SIZE(kMostCpus); }

 private:
  cpu_set_t* mask_;
};

bool read_int(std::string_view text, int& number) {
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && stop == text.data() + text.size() && number >= 0;
}

}  // namespace

Result<std::vector<int>> allowed_cpus() {
  CpuMask mask;
  if (::sched_getaffinity(0, CpuMask::bytes(), mask.get()) != 0)
    return fail(system_error("cannot read which CPUs this thread may use", errno));
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), CpuMask::bytes(), mask.get()))
      cpus.push_back(cpu);
  }
  return cpus;
}

Status pin_thread(std::span<const int> cpus) {
  ASSAY_CHECK(!cpus.empty(), "a pin names at least one CPU");
  const Result<std::vector<int>> before = allowed_cpus();
  if (!before) return std::unexpected(before.error());
  CpuMask mask;
  for (const int cpu : cpus) {
    // The kernel drops CPUs that are offline or outside the cpuset without a word, so look at each.
    const std::string online = read_kernel_line("/sys/devices/system/cpu/online");
    const Result<std::vector<int>> present = parse_cpu_list(online);
    if (cpu < 0 || cpu >= kMostCpus || (present && !std::ranges::count(*present, cpu)))
      return fail(Error(ErrorKind::environment, fmt::format("cannot pin to CPU {}", cpu))
                      .hint(fmt::format("this machine's CPUs are {}", online)));
    CPU_SET_S(static_cast<std::size_t>(cpu), CpuMask::bytes(), mask.get());
  }
  if (::sched_setaffinity(0, CpuMask::bytes(), mask.get()) != 0) {
    return fail(system_error(fmt::format("cannot pin to CPU {}", fmt::join(cpus, ",")), errno)
                    .hint(fmt::format("this process may use {}", fmt::join(*before, ","))));
  }
  const Result<std::vector<int>> after = allowed_cpus();
  if (!after) return std::unexpected(after.error());
  std::vector<int> wanted(cpus.begin(), cpus.end());
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (*after == wanted) return {};
  CpuMask old;
  for (const int cpu : *before)
    CPU_SET_S(static_cast<std::size_t>(cpu), CpuMask::bytes(), old.get());
  ::sched_setaffinity(0, CpuMask::bytes(), old.get());
  return fail(Error(ErrorKind::environment,
                    fmt::format("the kernel pinned to CPU {} where {} was asked for",
                                fmt::join(*after, ","), fmt::join(wanted, ",")))
                  .hint("a cpuset limits this process"));
}

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const auto bad = [&] {
    return fail(Error(ErrorKind::bad_input, fmt::format("\"{}\" is no list of CPUs", text))
                    .hint("write it as 0-3,8"));
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view range = rest.substr(0, comma);
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    const std::size_t dash = range.find('-');
    int first = 0;
    int last = 0;
    if (!read_int(range.substr(0, dash), first)) return bad();
    last = first;
    if (dash != range.npos && !read_int(range.substr(dash + 1), last)) return bad();
    if (last < first || last >= kMostCpus) return bad();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  if (cpus.empty()) return bad();
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<Interrupt> parse_interrupts(std::string_view text) {
  std::vector<Interrupt> interrupts;
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) return interrupts;
  std::size_t columns = 0;  // the first line heads one column an online CPU
  for (std::size_t at = lines[0].find("CPU"); at != lines[0].npos;
       at = lines[0].find("CPU", at + 1))
    ++columns;
  for (std::string_view line : lines) {
    const std::size_t colon = line.find(':');
    const std::size_t start = line.find_first_not_of(' ');
    Interrupt interrupt;
    if (colon == line.npos || start >= colon ||
        !read_int(line.substr(start, colon - start), interrupt.number))
      continue;
    line.remove_prefix(colon + 1);
    interrupt.counts = numbers_of(line);
    if (interrupt.counts.size() < columns) continue;
    interrupt.counts.resize(columns);
    const std::size_t end = line.find_last_not_of(' ');
    line = line.substr(0, end + 1);
    interrupt.name = line.substr(line.find_last_of(" \t") + 1);
    interrupts.push_back(std::move(interrupt));
  }
  return interrupts;
}

std::vector<int> interrupt_cpus(const std::string& disk) {
  namespace fs = std::filesystem;
  const Result<std::string> text = read_kernel_file("/proc/interrupts");
  if (!text) return {};
  // Lines are named after the driver's device: virtio1-req.0 for vda whose device is virtio1,
  // nvme0q3 for nvme0n1 whose device is nvme0.
  std::error_code code;
  const std::string owner = fs::canonical("/sys/block/" + disk + "/device", code).filename();
  if (owner.empty()) return {};
  const auto belongs = [&](const std::string& name) {
    if (!name.starts_with(owner) || name.ends_with("-config")) return false;
    const char next = name.size() > owner.size() ? name[owner.size()] : '-';
    return next < '0' || next > '9';  // virtio1 is not virtio10
  };
  const std::string online_line = read_kernel_line("/sys/devices/system/cpu/online");
  const Result<std::vector<int>> online = parse_cpu_list(online_line);
  std::map<int, std::uint64_t> load;
  for (const Interrupt& interrupt : parse_interrupts(*text)) {
    if (!belongs(interrupt.name)) continue;
    const std::uint64_t total =
        std::accumulate(interrupt.counts.begin(), interrupt.counts.end(), std::uint64_t{0});
    // Where it goes now; the counts also tell of the past.
    const std::string affinity =
        read_kernel_line(fmt::format("/proc/irq/{}/effective_affinity_list", interrupt.number));
    if (const Result<std::vector<int>> now = parse_cpu_list(affinity); now) {
      for (const int cpu : *now) load[cpu] += total;
      continue;
    }
    for (std::size_t column = 0; column < interrupt.counts.size(); ++column) {
      if (interrupt.counts[column] != 0 && online && column < online->size())
        load[(*online)[column]] += interrupt.counts[column];
    }
  }
  std::vector<int> cpus;
  for (const auto& [cpu, total] : load) {
    if (total != 0) cpus.push_back(cpu);
  }
  std::ranges::stable_sort(cpus, [&](int a, int b) { return load[a] > load[b]; });
  return cpus;
}

}  // namespace assay
