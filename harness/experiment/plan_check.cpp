#include "harness/experiment/plan_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/stats/stats.h"
#include "workloads/stream.h"
#include "workloads/toml_reader.h"

namespace assay {
namespace {

std::size_t kinds_of(const Role& role) {
  return static_cast<std::size_t>(
      std::count_if(role.mix.begin(), role.mix.end(), [](double weight) { return weight > 0.0; }));
}

/// A timed batch covers whatever operations follow each other.
bool has_mixed_samples(const Phase& phase) {
  return phase.timed_batch != 1 && std::any_of(phase.roles.begin(), phase.roles.end(),
                                               [](const Role& role) { return kinds_of(role) > 1; });
}

/// A latency sample of the phase can be of this kind alone.
bool is_sampled(const Phase& phase, OpKind kind) {
  return std::any_of(phase.roles.begin(), phase.roles.end(), [&](const Role& role) {
    return role.mix[static_cast<std::size_t>(kind)] > 0.0 &&
           (phase.timed_batch == 1 || kinds_of(role) == 1);
  });
}

}  // namespace

std::optional<WeakenedArm> weakened_arm(const Arm& arm, const Driver& driver, bool from_flags) {
  const auto durability = given_durability(driver, arm.durability, arm.settings);
  // A setting that cannot be resolved is refused by the check of the settings, with its reason.
  if (!durability || durability->given == arm.durability) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& name : durability->weakened_by) {
    names.push_back(fmt::format("{}={}", name, arm.settings.at(name)));
  }
  const std::string_view given = to_string(durability->given);
  WeakenedArm weak;
  weak.given = durability->given;
  if (!durability->weakened_by.empty()) weak.setting = durability->weakened_by.front();
  const std::string store =
      arm.store == arm.name ? arm.store : fmt::format("{} ({})", arm.name, driver.name());
  weak.what = fmt::format("{}: {} gives durability {}, not the {} that is declared", store,
                          fmt::join(names, " with "), given, to_string(arm.durability));
  weak.hint = from_flags
                  ? fmt::format(
                        "--durability {0} declares it for every store; an experiment's file can "
                        "give this arm alone durability = \"{0}\"; --mixed-durability runs it as "
                        "it is and shows what each arm gives",
                        given)
                  : fmt::format(
                        "give this arm durability = \"{}\"; mixed_durability = true runs it as it "
                        "is and shows what each arm gives",
                        given);
  return weak;
}

namespace {

std::optional<Error> impossible_pins(const Phase& phase, const std::vector<int>& cpus) {
  std::set<int> pinned;
  for (const Role& role : phase.roles) pinned.insert(role.cpus.begin(), role.cpus.end());
  if (pinned.size() > cpus.size()) {
    return Error(ErrorKind::bad_input, fmt::format("phase {} asks for {} pins on {} CPUs",
                                                   phase.name, pinned.size(), cpus.size()));
  }
  for (const int cpu : pinned) {
    if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) continue;
    return Error(ErrorKind::bad_input,
                 fmt::format("phase {} pins to CPU {}, but this process may use {} CPUs: {}",
                             phase.name, cpu, cpus.size(), fmt::join(cpus, ", ")));
  }
  return std::nullopt;
}

/// "file:line" of the first `cpus` in the phases of a workload's file.
std::string place_of_pins(const std::string& file, std::string_view phase_name) {
  auto document = TomlDocument::load(file);
  if (!document) return {};
  std::string somewhere;
  TomlTable root = document->root();
  for (TomlTable& phase : root.tables("phases")) {
    const std::string name = phase.text("name", phase.text("kind"));
    for (TomlTable& role : phase.tables("roles")) {
      if (!role.has("cpus")) continue;
      if (name == phase_name) return role.where("cpus");
      if (somewhere.empty()) somewhere = role.where("cpus");
    }
  }
  return somewhere;
}

}  // namespace

std::optional<Error> impossible_pins(const Workload& workload, const std::vector<int>& cpus,
                                     const std::string& file) {
  for (const Phase& phase : workload.phases) {
    auto error = impossible_pins(phase, cpus);
    if (!error) continue;
    const std::string place = file.empty() ? std::string() : place_of_pins(file, phase.name);
    if (!place.empty()) error->at(place);
    return error;
  }
  return std::nullopt;
}

std::uint32_t most_threads(const Workload& workload) {
  std::uint32_t most = 0;
  for (const Phase& phase : workload.phases) most = std::max(most, thread_count(phase));
  return most;
}

const Phase* measured_phase(const Workload& workload) {
  const Phase* found = nullptr;
  for (const Phase& phase : workload.phases) {
    const bool named = !workload.measured_phase.empty() && phase.name == workload.measured_phase;
    if (named) return &phase;
    if (workload.measured_phase.empty() && phase.timed && phase.kind == PhaseKind::run) {
      found = &phase;
    }
  }
  return found;
}

std::optional<Error> impossible_metric(const Workload& workload, const Metric& metric) {
  const Phase* phase = measured_phase(workload);
  if (phase == nullptr) {
    return Error(ErrorKind::bad_input,
                 fmt::format("workload {} has no timed phase to compare", workload.name));
  }
  if (!metric.latency) return std::nullopt;
  std::vector<std::string> done;
  if (phase->kind == PhaseKind::load) done.push_back("load");
  for (std::size_t i = 0; i < kOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (is_sampled(*phase, kind)) done.emplace_back(to_string(kind));
  }
  if (has_mixed_samples(*phase)) done.emplace_back("mixed");
  if (uses_tables(phase->kind)) done.emplace_back("table");
  if (std::find(done.begin(), done.end(), metric.operation_class) != done.end()) {
    return std::nullopt;
  }
  return Error(ErrorKind::bad_input, fmt::format("phase {} does no '{}'; it does: {}", phase->name,
                                                 metric.operation_class, fmt::join(done, ", ")));
}

DurabilityClass reference_durability(DurabilityClass wanted, const Driver& driver) {
  DurabilityClass best = wanted;
  bool found = false;
  const Capabilities can = driver.capabilities();  // held: a range's temporaries end early
  for (const DurabilityClass claimed : can.durability) {
    if (claimed <= wanted && (!found || claimed > best)) {
      best = claimed;
      found = true;
    }
  }
  return best;
}

std::uint64_t least_trials_of_median(double alpha, Design design) {
  std::uint64_t needed = 2;
  while (stats::smallest_rank_p(needed, needed, is_paired(design)) >= alpha) ++needed;
  return needed;
}

}  // namespace assay
