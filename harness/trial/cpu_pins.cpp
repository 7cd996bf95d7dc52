#include "harness/trial/cpu_pins.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/measure/pinning.h"

namespace assay {

std::vector<int> declared_cpus(const Workload& workload) {
  std::vector<int> cpus;
  for (const Phase& phase : workload.phases)
    for (const Role& role : phase.roles)
      cpus.insert(cpus.end(), role.cpus.begin(), role.cpus.end());
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

Status check_cpus(const Workload& workload) {
  const std::vector<int> declared = declared_cpus(workload);
  if (declared.empty()) return {};
  const Result<std::vector<int>> usable = allowed_cpus();
  if (!usable) return fail(usable.error());
  for (const int cpu : declared) {
    if (std::ranges::find(*usable, cpu) != usable->end()) continue;
    return fail(Error(ErrorKind::environment,
                      fmt::format("workload \"{}\" pins a thread to CPU {}, which this process "
                                  "may not use",
                                  workload.name, cpu))
                    .hint(fmt::format("usable: {}", fmt::join(*usable, ", "))));
  }
  return {};
}

ParentElsewhere::ParentElsewhere(const Workload& workload) {
  const std::vector<int> declared = declared_cpus(workload);
  Result<std::vector<int>> usable = allowed_cpus();
  if (declared.empty() || !usable) return;
  std::vector<int> others;
  std::ranges::set_difference(*usable, declared, std::back_inserter(others));
  if (!others.empty() && pin_thread(others)) before_ = std::move(*usable);
}

ParentElsewhere::~ParentElsewhere() {
  if (!before_.empty()) static_cast<void>(pin_thread(before_));
}

}  // namespace assay
