// Memory: how much is free, how it is handed out, when it is written back.
#include <fmt/format.h>

#include "harness/doctor/looks.h"

namespace assay::doctor {
namespace {

using nlohmann::json;

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

}  // namespace

Finding look_at_free_memory(const Look& look) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 30;
  Finding finding{.title = "memory that is available",
                  .wanted = "at least 1.0 GiB",
                  .why =
                      "where memory is short the kernel takes pages from the store's cache, or "
                      "kills the trial",
                  .how = "stop what holds memory"};
  const json available = look.memory["available_bytes"];
  if (!available.is_number()) {
    finding.found = item(available).text;
    return finding;
  }
  const auto bytes = available.get<std::uint64_t>();
  finding.found = gib(bytes);
  finding.state = bytes >= kLeast ? State::fine : State::differs;
  return finding;
}

Finding look_at_swap(const Look& look) {
  Finding finding{.title = "swap in use",
                  .wanted = "none",
                  .why =
                      "a page of the store or of the harness that was swapped out costs a read of "
                      "the disk when it is touched",
                  .how = "swapoff -a, where memory suffices"};
  const json total = look.memory["swap_total_bytes"];
  const json free = look.memory["swap_free_bytes"];
  if (!total.is_number() || !free.is_number()) {
    finding.found = item(total).text;
    return finding;
  }
  const std::uint64_t used = total.get<std::uint64_t>() - free.get<std::uint64_t>();
  finding.found = used == 0 ? "none" : gib(used);
  finding.state = used == 0 ? State::fine : State::differs;
  return finding;
}

Finding look_at_thp(const Look& look) {
  constexpr const char* kPath = "/sys/kernel/mm/transparent_hugepage/enabled";
  Finding finding =
      judged({.title = "transparent huge pages",
              .why = "with \"always\" the kernel merges pages behind the store's back: "
                     "stalls at a moment nobody chose; with \"madvise\" who wants huge "
                     "pages asks for them",
              .how = fmt::format("echo madvise > {}", kPath)},
             look.memory["transparent_hugepages"], {"madvise", "never"});
  if (finding.state == State::differs) finding.remedies.push_back({kPath, "madvise"});
  return finding;
}

Finding look_at_huge_pages(const Look& look) {
  constexpr const char* kPath = "/proc/sys/vm/nr_hugepages";
  return judged({.title = "reserved huge pages",
                 .why = "memory that is reserved for huge pages is lost to the page cache",
                 .how = "sysctl vm.nr_hugepages=0, unless something on this machine needs them"},
                look.files.text_or_unknown(kPath), {"0"});
}

Finding look_at_numa_balancing(const Look& look) {
  constexpr const char* kPath = "/proc/sys/kernel/numa_balancing";
  Finding finding =
      judged({.title = "automatic NUMA balancing",
              .why = "it unmaps pages to see who touches them: faults that no store caused",
              .how = "sysctl kernel.numa_balancing=0"},
             look.files.text_or_unknown(kPath), {"0"});
  if (finding.state == State::unknown) finding.found = "not in this kernel";
  if (finding.state == State::unknown) finding.state = State::fine;
  if (finding.state == State::differs) finding.remedies.push_back({kPath, "0"});
  return finding;
}

Finding look_at_dirty_limits(const Look& look) {
  Finding finding{.title = "dirty limits of the page cache",
                  .wanted = "10 % in the background, 20 % at most (the kernel's own)",
                  .why =
                      "they say when unsynced writes are written back and when a writer is held "
                      "up: stores that sync late differ by them more than by themselves",
                  .how = "sysctl vm.dirty_background_ratio=10 vm.dirty_ratio=20"};
  const json background = look.memory["dirty_background_ratio"];
  const json most = look.memory["dirty_ratio"];
  const json background_bytes = look.memory["dirty_background_bytes"];
  const json most_bytes = look.memory["dirty_bytes"];
  if (!background.is_number() || !most.is_number()) {
    finding.found = item(most).text;
    return finding;
  }
  // A limit in bytes takes the place of the ratio, which then reads 0.
  const auto shown = [](const json& ratio, const json& bytes) {
    const bool in_bytes = bytes.is_number() && bytes.get<std::int64_t>() > 0;
    return in_bytes ? fmt::format("{} B", bytes.get<std::int64_t>())
                    : fmt::format("{} %", ratio.get<std::int64_t>());
  };
  finding.found = fmt::format("{} in the background, {} at most",
                              shown(background, background_bytes), shown(most, most_bytes));
  const bool usual = background == 10 && most == 20;
  finding.state = usual ? State::fine : State::differs;
  // Writing a ratio clears the limit in bytes, which could not be put back in this way.
  const bool in_bytes = background == 0 || most == 0;
  if (!usual && !in_bytes) {
    finding.remedies = {{"/proc/sys/vm/dirty_background_ratio", "10"},
                        {"/proc/sys/vm/dirty_ratio", "20"}};
  }
  return finding;
}

}  // namespace assay::doctor
