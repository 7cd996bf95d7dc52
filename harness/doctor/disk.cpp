// The file system and the device that the trials write to, and who else writes to it.
#include <fmt/format.h>

#include "harness/doctor/looks.h"

namespace assay::doctor {
namespace {

using nlohmann::json;

std::string mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

const json& device(const Look& look) {
  return look.storage["device"];
}

json of_device(const Look& look, const char* key) {
  return device(look).contains(key) ? device(look)[key] : device(look);
}

std::string queue_file(const Look& look, std::string_view name) {
  const Item disk = item(of_device(look, "name"));
  return disk.known ? fmt::format("/sys/block/{}/queue/{}", disk.text, name) : std::string();
}

}  // namespace

Finding look_at_free_disk(const Look& look) {
  constexpr double kLeastShare = 0.1;
  Finding finding{.title = "free space where the trials write",
                  .wanted = "at least 10 % and 4 GiB",
                  .why =
                      "a file system that is nearly full looks longer for free blocks, and a disk "
                      "that is full ends the trial",
                  .how = "free some space, or choose another directory with --root"};
  const json& space = look.storage["space"];
  if (!space.contains("free_bytes")) {
    finding.found = item(space).text;
    return finding;
  }
  const auto free = space["free_bytes"].get<std::uint64_t>();
  const auto total = space["total_bytes"].get<std::uint64_t>();
  const double share = total == 0 ? 0.0 : static_cast<double>(free) / static_cast<double>(total);
  finding.found =
      fmt::format("{:.1f} GiB, {:.0f} %", static_cast<double>(free) / (1U << 30U), 100.0 * share);
  finding.state =
      share >= kLeastShare && free >= (std::uint64_t{4} << 30) ? State::fine : State::differs;
  return finding;
}

Finding look_at_scheduler(const Look& look) {
  const std::string path = queue_file(look, "scheduler");
  Finding finding =
      judged({.title = "I/O scheduler of the device",
              .why = "bfq and kyber hold requests back to be fair or to merge them: a "
                     "flush then waits for others",
              .how = path.empty() ? "" : fmt::format("echo none > {}", path)},
             of_device(look, "scheduler"), {"none", "mq-deadline"});
  if (finding.state == State::differs) finding.remedies.push_back({path, "none"});
  return finding;
}

Finding look_at_write_cache(const Look& look) {
  return judged(
      {.title = "write cache of the device",
       .why = "with \"write through\" the kernel sends no flush: right for a device without "
              "a volatile cache, and a lie about every sync for one that has it",
       .how = "ask the maker of the device; `write back` where there is any doubt"},
      of_device(look, "write_cache"), {"write back"});
}

Finding look_at_background_writers(const Look& look) {
  constexpr std::uint64_t kMostPerSecond = std::uint64_t{256} << 10;
  Finding finding{.title = "what others write to this device now",
                  .wanted = "at most 256 KiB a second",
                  .why = "a sync waits behind what others wrote",
                  .how = "stop the writer; see iotop"};
  if (!look.written_bytes || look.watched.count() == 0) {
    finding.found = "not watched, or the device shows no counters";
    return finding;
  }
  finding.found = fmt::format("{} in {} ms", mib(*look.written_bytes), look.watched.count());
  if (!look.busiest_writer.empty())
    finding.found += "; asked for most, to any device: " + look.busiest_writer;
  const auto ms = static_cast<std::uint64_t>(look.watched.count());
  finding.state = *look.written_bytes * 1000 / ms <= kMostPerSecond ? State::fine : State::differs;
  return finding;
}

}  // namespace assay::doctor
