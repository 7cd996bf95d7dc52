#include "harness/trial/cache_policy.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/residency.h"

namespace assay {
namespace {

constexpr const char* kDropCaches = "/proc/sys/vm/drop_caches";

bool is_cold(CachePolicy policy) {
  return policy == CachePolicy::cold || policy == CachePolicy::cold_files;
}

/// Reads every file once. A file that cannot be read is left out: the residency tells.
void read_all(const std::string& directory) {
  std::vector<char> buffer(std::size_t{1} << 20);
  std::error_code code;
  std::filesystem::recursive_directory_iterator entries(directory, code);
  for (; !code && entries != std::filesystem::end(entries); entries.increment(code)) {
    if (!entries->is_regular_file(code)) continue;
    const int fd = ::open(entries->path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
    ::close(fd);
  }
}

void measure(const std::string& directory, CacheFigures& figures) {
  const Result<Residency> found = residency(directory);
  if (found) {
    figures.resident_fraction = found->fraction();
    figures.resident_bytes = found->resident_bytes;
  } else {
    figures.why_unknown = found.error().message();
  }
}

}  // namespace

Status check_cold(const Workload& workload) {
  if (workload.best_effort || ::access(kDropCaches, W_OK) == 0) return {};
  for (const Phase& phase : workload.phases) {
    if (phase.cache != CachePolicy::cold) continue;
    return fail(
        Error(ErrorKind::environment,
              fmt::format("phase \"{}\" wants cache = \"cold\", but this user may not "
                          "drop the page cache",
                          phase.name))
            .at(kDropCaches)
            .hint("run as root, use cache = \"cold-files\", or declare best_effort = true"));
  }
  return {};
}

Status drop_before_open(const Workload& workload, const Phase& phase, const std::string& directory,
                        CacheFigures& figures) {
  if (!is_cold(phase.cache)) return {};
  const Status dropped = phase.cache == CachePolicy::cold ? drop_caches() : drop_files(directory);
  if (dropped) return {};
  if (!workload.best_effort) return dropped;
  figures.not_done = dropped.error().message();
  const Status files = drop_files(directory);  // the part of it that needs no privilege
  if (!files) figures.not_done += "; " + files.error().message();
  return {};
}

bool within_limits(const Phase& phase, const CacheFigures& figures) {
  return *figures.resident_fraction <= phase.max_resident ||
         figures.resident_bytes <= phase.max_resident_bytes;
}

Status settle_cache(const Phase& phase, const std::string& directory, CacheFigures& figures) {
  if (phase.cache == CachePolicy::warm) read_all(directory);
  measure(directory, figures);
  if (!is_cold(phase.cache) || !figures.not_done.empty() || !figures.resident_fraction) return {};
  if (!within_limits(phase, figures)) {
    // Opening the store has read (recovery, checks): what it has not mapped can go once more.
    ASSAY_TRY(drop_files(directory));
    measure(directory, figures);
  }
  if (within_limits(phase, figures)) return {};
  return fail(
      ErrorKind::void_experiment,
      fmt::format("phase \"{}\" was to be cold, but {:.1f} % of the store's files ({} bytes) were "
                  "cached before its first operation (limit {:.1f} % or {} bytes)",
                  phase.name, 100.0 * *figures.resident_fraction, figures.resident_bytes,
                  100.0 * phase.max_resident, phase.max_resident_bytes));
}

}  // namespace assay
