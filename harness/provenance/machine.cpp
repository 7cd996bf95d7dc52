// Operating system, processor, memory, limits: what the kernel tells about the machine.
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "harness/provenance/system_files.h"

namespace assay::provenance {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kCpu = "/sys/devices/system/cpu";

std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

json caches(const SystemFiles& files) {
  json all = json::array();
  for (int index = 0; index < 16; ++index) {
    const std::string folder = fmt::format("{}/cpu0/cache/index{}", kCpu, index);
    const auto level = files.text(folder + "/level");
    if (!level) break;
    all.push_back({{"level", *level},
                   {"type", files.text_or_unknown(folder + "/type")},
                   {"size", files.text_or_unknown(folder + "/size")},
                   {"shared_by", files.text_or_unknown(folder + "/shared_cpu_list")}});
  }
  return all.empty() ? unknown("the kernel shows no caches of CPU 0") : all;
}

/// Physical cores: distinct (package, core) pairs of /proc/cpuinfo.
json core_count(const SystemFiles& files) {
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  for (const std::string& line : files.lines("/proc/cpuinfo")) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("physical id")) package = line.substr(colon + 2);
    if (line.starts_with("core id")) cores.emplace(package, line.substr(colon + 2));
  }
  return cores.empty() ? unknown("/proc/cpuinfo names no cores") : json(cores.size());
}

json turbo(const SystemFiles& files) {
  if (const auto off = files.text(fmt::format("{}/intel_pstate/no_turbo", kCpu))) {
    return *off == "0" ? "on" : "off";
  }
  if (const auto on = files.text(fmt::format("{}/cpufreq/boost", kCpu))) {
    return *on == "1" ? "on" : "off";
  }
  return unknown("neither intel_pstate/no_turbo nor cpufreq/boost is there");
}

json kilobytes(const SystemFiles& files, std::string_view key) {
  const json field = files.field("/proc/meminfo", key);
  if (!field.is_string()) return field;
  return std::strtoull(field.get<std::string>().c_str(), nullptr, 10) * 1024;
}

/// The kernel's own part of its command line: what follows a lone "--" is handed to init.
json boot_parameters(const SystemFiles& files) {
  json line = files.text_or_unknown("/proc/cmdline");
  if (line.is_string()) {
    std::string text = line.get<std::string>();
    if (const std::size_t init = text.find(" -- "); init != std::string::npos) text.resize(init);
    line = text;
  }
  return line;
}

}  // namespace

json describe_os(const SystemFiles& files) {
  json name = files.field("/etc/os-release", "PRETTY_NAME", '=');
  if (name.is_string()) name = unquoted(name.get<std::string>());
  return {{"name", name},
          {"kernel_release", files.text_or_unknown("/proc/sys/kernel/osrelease")},
          {"kernel_version", files.text_or_unknown("/proc/sys/kernel/version")},
          {"boot_parameters", boot_parameters(files)},
          {"boot_id", files.text_or_unknown("/proc/sys/kernel/random/boot_id")},
          {"aslr", files.integer_or_unknown("/proc/sys/kernel/randomize_va_space")},
          {"load_average", files.text_or_unknown("/proc/loadavg")}};
}

json describe_cpu(const SystemFiles& files) {
  std::size_t logical = 0;
  for (const std::string& line : files.lines("/proc/cpuinfo")) {
    logical += line.starts_with("processor") ? 1 : 0;
  }
  return {
      {"model", files.field("/proc/cpuinfo", "model name")},
      {"vendor", files.field("/proc/cpuinfo", "vendor_id")},
      {"family", files.field("/proc/cpuinfo", "cpu family")},
      {"model_number", files.field("/proc/cpuinfo", "model")},
      {"stepping", files.field("/proc/cpuinfo", "stepping")},
      {"microcode", files.field("/proc/cpuinfo", "microcode")},
      {"flags", files.field("/proc/cpuinfo", "flags")},
      {"mhz_now", files.field("/proc/cpuinfo", "cpu MHz")},
      {"logical", logical == 0 ? unknown("/proc/cpuinfo names no CPU") : json(logical)},
      {"cores", core_count(files)},
      {"online", files.text_or_unknown(fmt::format("{}/online", kCpu))},
      {"isolated", files.text_or_unknown(fmt::format("{}/isolated", kCpu))},
      {"smt", files.text_or_unknown(fmt::format("{}/smt/control", kCpu))},
      {"numa_nodes", files.text_or_unknown("/sys/devices/system/node/online")},
      {"caches", caches(files)},
      {"governor", files.text_or_unknown(fmt::format("{}/cpu0/cpufreq/scaling_governor", kCpu))},
      {"turbo", turbo(files)}};
}

json describe_memory(const SystemFiles& files) {
  constexpr std::string_view kThp = "/sys/kernel/mm/transparent_hugepage";
  return {
      {"total_bytes", kilobytes(files, "MemTotal")},
      {"available_bytes", kilobytes(files, "MemAvailable")},
      {"swap_total_bytes", kilobytes(files, "SwapTotal")},
      {"swap_free_bytes", kilobytes(files, "SwapFree")},
      {"swappiness", files.integer_or_unknown("/proc/sys/vm/swappiness")},
      {"transparent_hugepages", files.chosen_or_unknown(fmt::format("{}/enabled", kThp))},
      {"thp_defrag", files.chosen_or_unknown(fmt::format("{}/defrag", kThp))},
      {"dirty_ratio", files.integer_or_unknown("/proc/sys/vm/dirty_ratio")},
      {"dirty_background_ratio", files.integer_or_unknown("/proc/sys/vm/dirty_background_ratio")},
      {"dirty_bytes", files.integer_or_unknown("/proc/sys/vm/dirty_bytes")},
      {"dirty_background_bytes", files.integer_or_unknown("/proc/sys/vm/dirty_background_bytes")},
      {"dirty_expire_centisecs", files.integer_or_unknown("/proc/sys/vm/dirty_expire_centisecs")},
      {"dirty_writeback_centisecs",
       files.integer_or_unknown("/proc/sys/vm/dirty_writeback_centisecs")}};
}

json describe_cgroup(const SystemFiles& files) {
  std::string group;
  for (const std::string& line : files.lines("/proc/self/cgroup")) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  if (group.empty()) return unknown("/proc/self/cgroup names no group of version 2");
  // Inside a container the group's own path may not be mounted; its root then is.
  std::string folder = "/sys/fs/cgroup" + (group == "/" ? std::string() : group);
  std::error_code error;
  if (!fs::exists(files.at(folder), error)) folder = "/sys/fs/cgroup";
  return {{"group", group},
          {"memory_max", files.text_or_unknown(folder + "/memory.max")},
          {"memory_high", files.text_or_unknown(folder + "/memory.high")},
          {"cpu_max", files.text_or_unknown(folder + "/cpu.max")},
          {"cpuset", files.text_or_unknown(folder + "/cpuset.cpus.effective")},
          {"io_max", files.text_or_unknown(folder + "/io.max")}};
}

json describe_virtualisation(const SystemFiles& files) {
  const json flags = files.field("/proc/cpuinfo", "flags");
  json hypervisor = unknown("/proc/cpuinfo names no flags");
  if (flags.is_string()) {
    hypervisor = (" " + flags.get<std::string>() + " ").find(" hypervisor ") != std::string::npos;
  }
  std::error_code error;
  return {{"hypervisor", hypervisor},
          {"vendor", files.text_or_unknown("/sys/class/dmi/id/sys_vendor")},
          {"product", files.text_or_unknown("/sys/class/dmi/id/product_name")},
          {"container", fs::exists(files.at("/.dockerenv"), error) ||
                            fs::exists(files.at("/run/.containerenv"), error)}};
}

json describe_clock(const SystemFiles& files) {
  constexpr std::string_view kSource = "/sys/devices/system/clocksource/clocksource0";
  json zone = files.text_or_unknown("/etc/timezone");
  std::error_code error;
  const fs::path link = fs::read_symlink(files.at("/etc/localtime"), error);
  if (!error) {
    const std::string target = link.string();
    const std::size_t at = target.find("zoneinfo/");
    if (at != std::string::npos) zone = target.substr(at + std::string_view("zoneinfo/").size());
  }
  return {{"source", files.text_or_unknown(fmt::format("{}/current_clocksource", kSource))},
          {"available", files.text_or_unknown(fmt::format("{}/available_clocksource", kSource))},
          {"time_zone", zone}};
}

json describe_packages(const SystemFiles& files) {
  constexpr std::string_view kStatus = "/var/lib/dpkg/status";
  constexpr std::string_view kWanted[] = {"libsqlite3-0", "librocksdb", "liblmdb0",     "libc6",
                                          "libstdc++6",   "libxxhash0", "libssl3",      "liblz4-1",
                                          "libzstd1",     "libpq5",     "postgresql-15"};
  json found = json::object();
  std::string name;
  for (const std::string& line : files.lines(kStatus)) {
    if (line.starts_with("Package: ")) name = line.substr(9);
    if (!line.starts_with("Version: ")) continue;
    for (const std::string_view wanted : kWanted) {
      const bool versioned = wanted == "librocksdb" && name.starts_with(wanted) &&
                             name.find("-dev") == std::string::npos;
      if (name == wanted || versioned) found[name] = line.substr(9);
    }
  }
  return found.empty() ? unknown(fmt::format("{} is not there or names none of them", kStatus))
                       : found;
}

}  // namespace assay::provenance
