#include "harness/qualify/power/nested.h"

#include <algorithm>
#include <random>

namespace assay::qualify::power {
namespace {

/// Choices in the order of their cuts, a seeded few of all that there are.
std::vector<Choice> pick(const Trace& trace, const NestedPlan& plan) {
  std::mt19937_64 random(plan.explore.seed ^ 0x6e6573746564ULL);
  std::vector<Choice> all;
  Disk disk(trace, plan.explore.profile, plan.explore.suppressed);
  Omitted omitted;
  Limits limits = plan.explore.limits;
  limits.pairs_max = 0;
  for (const std::uint32_t cut : cuts_of(trace)) {
    while (disk.position() < cut) disk.step();
    const std::vector<Choice> here = list_choices(disk, limits, omitted);
    all.insert(all.end(), here.begin(), here.end());
  }
  std::vector<Choice> picked;
  for (std::uint64_t count = 0; count < plan.recoveries && !all.empty(); ++count) {
    picked.push_back(all[random() % all.size()]);
  }
  std::stable_sort(picked.begin(), picked.end(),
                   [](const Choice& a, const Choice& b) { return a.cut < b.cut; });
  return picked;
}

}  // namespace

Result<NestedExploration> explore_nested(const LifeOfStore& life, const Trace& trace,
                                         const Acknowledgements& receipts, const NestedPlan& plan) {
  NestedExploration out;
  Disk disk(trace, plan.explore.profile, plan.explore.suppressed);
  for (const Choice& choice : pick(trace, plan)) {
    if (plan.explore.stop != nullptr && plan.explore.stop->load()) break;
    while (disk.position() < choice.cut) disk.step();
    const Tree state = state_of(disk, kept_by(disk, choice));
    const std::uint32_t known_at = choice.cut == 0 ? 0 : choice.cut - 1;
    auto recovery =
        record_recovery(life, state, receipts_at(trace, receipts, known_at), plan.directory);
    if (!recovery) {
      // A recovery that fails was told of already; what cannot be recorded is an error.
      if (recovery.error().kind() == ErrorKind::store ||
          recovery.error().kind() == ErrorKind::child) {
        continue;
      }
      return std::unexpected(recovery.error());
    }
    ++out.recoveries;
    if (recovery->trace.events.empty()) {
      ++out.untouched;
      continue;
    }
    const auto found = explore(recovery->trace, recovery->receipts, plan.explore);
    if (!found) return std::unexpected(found.error());
    add(out.sum, *found);
    if (!found->kept_failures.empty() && out.failures.empty()) {
      out.failures.push_back({std::move(*recovery), found->kept_failures.front(), choice});
    }
    if (plan.explore.stop_at_failure && !out.failures.empty()) break;
  }
  return out;
}

}  // namespace assay::qualify::power
