// What a plan is in words, and the machine it is checked against.
#include "harness/experiment/plan.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "adapters/registry.h"
#include "harness/experiment/plan_spelling.h"

namespace assay {

std::string_view to_string(Design design) {
  return kDesigns[static_cast<std::size_t>(design)].first;
}

bool is_paired(Design design) {
  return design != Design::random;
}

std::string_view unit_of_trials(Design design) {
  if (design == Design::random) return "trials an arm";
  return design == Design::blocks ? "blocks" : "sets";
}

std::string_view to_string(HypothesisKind kind) {
  return kHypotheses[static_cast<std::size_t>(kind)].first;
}

std::string_view to_string(ProcessValue value) {
  return kProcessValues[static_cast<std::size_t>(value)].first;
}

std::string Metric::name() const {
  return latency ? fmt::format("latency {} of {}", percentile, operation_class) : "throughput";
}

std::string Metric::unit() const {
  return latency ? "ns" : "operations/s";
}

const Arm* Plan::find_arm(std::string_view arm_name) const {
  const auto found =
      std::find_if(arms.begin(), arms.end(), [&](const Arm& arm) { return arm.name == arm_name; });
  return found == arms.end() ? nullptr : &*found;
}

const Arm* Plan::find_arm_beside(const Arm& beside, std::string_view arm_name) const {
  if (beside.cell.empty()) return find_arm(arm_name);
  return find_arm(fmt::format("{}@{}", arm_name, beside.cell));
}

std::vector<const Plan*> Plan::parts() const {
  if (cells.empty()) return {this};
  std::vector<const Plan*> all;
  for (const Cell& cell : cells) all.push_back(&cell.plan);
  return all;
}

const Plan& Plan::part_of(const Arm& arm) const {
  for (const Cell& cell : cells) {
    if (cell.name == arm.cell) return cell.plan;
  }
  return *this;
}

bool Plan::is_a_a_twin(const Arm& arm) const {
  const std::string& twin = part_of(arm).a_a_twin;
  return !twin.empty() && arm.name == twin;
}

bool Plan::is_control(const Arm& arm) const {
  const std::string& delayed = part_of(arm).control.delayed;
  return !delayed.empty() && arm.name == delayed;
}

bool Plan::is_subject(const Arm& arm) const {
  return !arm.reference && !is_a_a_twin(arm) && !is_control(arm);
}

void Plan::set_trials(std::uint64_t number) {
  trials = number;
  for (Cell& cell : cells) cell.plan.trials = number;
}

std::uint64_t Plan::trials_in_all() const {
  const auto run =
      std::count_if(arms.begin(), arms.end(), [](const Arm& arm) { return arm.trials_of.empty(); });
  return static_cast<std::uint64_t>(run) * rounds();
}

std::string name_without_cell(const Arm& arm) {
  const std::string tail = "@" + arm.cell;
  const bool has = !arm.cell.empty() && arm.name.ends_with(tail);
  return has ? arm.name.substr(0, arm.name.size() - tail.size()) : arm.name;
}

std::string benchmark_root(const Plan& plan) {
  return plan.root == kDefaultRoot ? fmt::format("{}-{}", plan.root, ::getuid()) : plan.root;
}

PlanEnvironment PlanEnvironment::real() {
  PlanEnvironment environment;
  environment.find_store = find_driver;
  environment.find_workload = load_workload;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) environment.cpus.push_back(cpu);
    }
  }
  return environment;
}

}  // namespace assay
