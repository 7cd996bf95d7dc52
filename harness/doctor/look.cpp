// What all items look at, read once, and over a short time where it moves.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "harness/doctor/looks.h"
#include "harness/measure/kernel_file.h"

namespace assay::doctor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Ticks in which the CPUs were busy (user, nice, system, irq, softirq) and ticks in all.
struct CpuTicks {
  std::uint64_t busy = 0;
  std::uint64_t all = 0;
};

std::optional<CpuTicks> cpu_ticks(const provenance::SystemFiles& files) {
  for (const std::string& line : files.lines("/proc/stat")) {
    if (!line.starts_with("cpu ")) continue;
    // user nice system idle iowait irq softirq steal, as proc(5) has them.
    const std::vector<std::uint64_t> ticks = numbers_of(std::string_view(line).substr(4));
    if (ticks.size() < 8) return std::nullopt;
    CpuTicks sum;
    for (std::size_t i = 0; i < 8; ++i) sum.all += ticks[i];
    sum.busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    return sum;
  }
  return std::nullopt;
}

/// Bytes written to the device so far: the seventh number of its stat counts sectors of 512 B.
std::optional<std::uint64_t> device_written(const provenance::SystemFiles& files,
                                            const std::string& disk) {
  const auto text = files.text(fmt::format("/sys/block/{}/stat", disk));
  if (!text) return std::nullopt;
  const std::vector<std::uint64_t> numbers = numbers_of(*text);
  if (numbers.size() < 7) return std::nullopt;
  return numbers[6] * 512;
}

/// write_bytes by process; only root sees those of others.
std::map<int, std::uint64_t> writers(const provenance::SystemFiles& files) {
  std::map<int, std::uint64_t> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(files.at("/proc"), error)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed != std::errc() || end != name.data() + name.size()) continue;
    const json bytes = files.field(fmt::format("/proc/{}/io", pid), "write_bytes");
    if (bytes.is_string()) all[pid] = std::strtoull(bytes.get<std::string>().c_str(), nullptr, 10);
  }
  return all;
}

std::string busiest(const provenance::SystemFiles& files,
                    const std::map<int, std::uint64_t>& before,
                    const std::map<int, std::uint64_t>& after) {
  int most_pid = 0;
  std::uint64_t most = 0;
  for (const auto& [pid, bytes] : after) {
    const auto known = before.find(pid);
    if (known == before.end() || bytes <= known->second + most) continue;
    most = bytes - known->second;
    most_pid = pid;
  }
  if (most == 0) return {};
  return fmt::format("{} (pid {}): {:.1f} MiB",
                     files.text(fmt::format("/proc/{}/comm", most_pid)).value_or("?"), most_pid,
                     static_cast<double>(most) / (1024.0 * 1024.0));
}

void watch(Look& look, std::chrono::milliseconds time) {
  if (time.count() == 0) return;  // a look between two trials must cost next to nothing
  const Item disk = item(look.storage["device"].contains("name") ? look.storage["device"]["name"]
                                                                 : look.storage["device"]);
  const auto ticks = cpu_ticks(look.files);
  const auto written = disk.known ? device_written(look.files, disk.text) : std::nullopt;
  const auto wrote = writers(look.files);
  std::this_thread::sleep_for(time);
  look.watched = time;
  if (const auto now = cpu_ticks(look.files); now && ticks) {
    const double cpus = look.cpu["logical"].is_number() ? look.cpu["logical"].get<double>() : 1.0;
    const auto all = static_cast<double>(now->all - ticks->all);
    look.foreign_cpus = all == 0 ? 0.0 : cpus * static_cast<double>(now->busy - ticks->busy) / all;
  }
  if (const auto now = disk.known ? device_written(look.files, disk.text) : std::nullopt;
      now && written) {
    look.written_bytes = *now - *written;
    look.busiest_writer = busiest(look.files, wrote, writers(look.files));
  }
}

}  // namespace

Look take_look(const Options& options) {
  Look look;
  look.files = provenance::SystemFiles(options.system_root);
  look.cpu = provenance::describe_cpu(look.files);
  look.memory = provenance::describe_memory(look.files);
  look.storage = provenance::describe_storage(look.files, options.benchmark_root, "");
  look.clock = provenance::describe_clock(look.files);
  watch(look, options.watch);
  return look;
}

Item item(const json& value) {
  if (value.is_object() && value.contains("unknown")) {
    return {value["unknown"].get<std::string>(), false};
  }
  return {value.is_string() ? value.get<std::string>() : value.dump(), true};
}

Finding judged(Finding finding, const json& found, const std::vector<std::string>& wanted) {
  const Item seen = item(found);
  finding.found = seen.text;
  finding.wanted = wanted.front();
  for (std::size_t i = 1; i < wanted.size(); ++i) finding.wanted += " or " + wanted[i];
  if (!seen.known) return finding;
  const bool fine = std::find(wanted.begin(), wanted.end(), seen.text) != wanted.end();
  finding.state = fine ? State::fine : State::differs;
  return finding;
}

}  // namespace assay::doctor
