#include "harness/experiment/small_scale.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/experiment/plan_check.h"
#include "harness/trial/precheck.h"

namespace assay {
namespace {

constexpr std::string_view kSweptKeys = "workload.keys.count";

/// What was lowered, each sentence once: the cells of a sweep are mostly lowered alike.
class Told {
 public:
  void add(std::string sentence) {
    if (known_.insert(sentence).second) sentences_.push_back(std::move(sentence));
  }
  /// Lowers `value` to `most` and tells it.
  template <class Integer>
  void lower(Integer& value, std::uint64_t most, const std::string& what) {
    if (std::uint64_t{value} <= most) return;
    add(fmt::format("{}: {} -> {}", what, value, most));
    value = static_cast<Integer>(most);
  }
  [[nodiscard]] const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  std::set<std::string> known_;
  std::vector<std::string> sentences_;
};

void shrink_warm_up(WarmUp& warm_up, const SmallScale& scale, const std::string& phase,
                    Told& told) {
  const std::string where = phase + ".warm_up";
  if (warm_up.policy == WarmUpPolicy::fixed) {
    told.lower(warm_up.operations, scale.operations, where + ".operations");
    told.lower(warm_up.ms, scale.duration_ms, where + ".ms");
  }
  if (warm_up.policy == WarmUpPolicy::steady) {
    told.lower(warm_up.window_ms, scale.duration_ms, where + ".window_ms");
    told.lower(warm_up.max_ms, 2 * scale.duration_ms, where + ".max_ms");
  }
}

void shrink(Workload& workload, bool keys_are_swept, const SmallScale& scale, Told& told) {
  if (!keys_are_swept) {
    const std::uint64_t entry_bytes =
        std::max<std::uint64_t>(1, expected_data_bytes(workload) / workload.keys.count);
    // Each writing thread needs a key of its own.
    const std::uint64_t most =
        std::max<std::uint64_t>(std::min(uses_tables(workload) ? scale.table_rows : scale.keys,
                                         scale.data_bytes / entry_bytes),
                                most_threads(workload));
    told.lower(workload.keys.count, most, "keys");
  }
  for (Phase& phase : workload.phases) {
    told.lower(phase.rows, workload.keys.count, phase.name + ".rows");
    if (phase.kind != PhaseKind::run || !phase.trace.empty()) continue;  // a trace ends by itself
    told.lower(phase.operations, scale.operations, phase.name + ".operations");
    told.lower(phase.duration_ms, scale.duration_ms, phase.name + ".duration_ms");
    shrink_warm_up(phase.warm_up, scale, phase.name, told);
  }
}

/// The values of an axis that stay.
std::vector<std::string> kept_values(const SweepAxis& axis, const SmallScale& scale) {
  std::vector<std::string> kept;
  if (axis.key == kSweptKeys) {
    std::string smallest = axis.values.front();
    for (const std::string& value : axis.values) {
      if (std::stoull(value) <= scale.keys) kept.push_back(value);
      if (std::stoull(value) < std::stoull(smallest)) smallest = value;
    }
    if (kept.empty()) kept.push_back(smallest);
  } else {
    kept = axis.values;
  }
  if (axis.key == kMeasuredPhaseAxis) return kept;  // its cells cost nothing
  if (kept.size() > scale.axis_values) kept = {kept.front(), kept.back()};
  return kept;
}

/// Leaves out cells with other values than those that stay.
void shrink_sweep(Plan& plan, const SmallScale& scale, Told& told) {
  for (std::size_t axis = 0; axis < plan.sweep.size(); ++axis) {
    std::vector<std::string>& values = plan.sweep[axis].values;
    std::vector<std::string> kept = kept_values(plan.sweep[axis], scale);
    if (kept.size() == values.size()) continue;
    told.add(fmt::format("{}: {} of {} values ({})", plan.sweep[axis].label, kept.size(),
                         values.size(), fmt::join(kept, ", ")));
    std::erase_if(plan.cells, [&](const Cell& cell) {
      return std::find(kept.begin(), kept.end(), cell.values[axis]) == kept.end();
    });
    values = std::move(kept);
  }
  if (plan.cells.empty()) return;
  const auto left_out = [&plan](const std::string& cell) {
    return std::none_of(plan.cells.begin(), plan.cells.end(),
                        [&cell](const Cell& one) { return one.name == cell; });
  };
  std::erase_if(plan.arms, [&](const Arm& arm) { return left_out(arm.cell); });
  std::erase_if(plan.hypotheses,
                [&](const Hypothesis& claim) { return plan.find_arm(claim.a) == nullptr; });
}

void shrink_rounds(Plan& plan, const SmallScale& scale, Told& told) {
  std::uint64_t most = scale.trials;
  if (plan.aggregation.median_of_trials) {
    most = std::max(most, least_trials_of_median(plan.alpha, plan.design));
  }
  std::uint64_t trials = plan.trials;
  told.lower(trials, most, std::string(unit_of_trials(plan.design)));
  plan.set_trials(trials);
  if (plan.design != Design::windows) return;
  told.lower(plan.windows.windows, scale.windows, "windows");
  told.lower(plan.windows.operations, scale.window_operations, "operations a window");
  for (Cell& cell : plan.cells) cell.plan.windows = plan.windows;
}

/// What others do on the machine makes no trial void: there is no figure to protect.
void turn_off_limits(Plan& plan, Told& told) {
  const auto off = [&told](double& limit, const char* name) {
    if (limit == 0.0) return;
    told.add(fmt::format("{}: {:g} -> off", name, limit));
    limit = 0.0;
  };
  off(plan.foreign_cpus_max, "foreign_cpus_max");
  off(plan.frequency_change_max, "frequency_change_max");
  off(plan.steal_share_max, "steal_share_max");
}

}  // namespace

std::vector<std::string> make_small(Plan& plan, const SmallScale& scale) {
  Told told;
  shrink_rounds(plan, scale, told);
  shrink_sweep(plan, scale, told);
  turn_off_limits(plan, told);
  const bool keys_are_swept =
      std::any_of(plan.sweep.begin(), plan.sweep.end(),
                  [](const SweepAxis& axis) { return axis.key == kSweptKeys; });
  for (Cell& cell : plan.cells) shrink(cell.plan.workload, keys_are_swept, scale, told);
  if (plan.cells.empty()) {
    shrink(plan.workload, false, scale, told);
  } else {
    plan.workload = plan.cells.front().plan.workload;
  }
  plan.notes.insert(plan.notes.begin(),
                    told.sentences().empty()
                        ? std::string("small scale, exploratory: nothing had to be lowered")
                        : fmt::format("small scale, exploratory; lowered: {}",
                                      fmt::join(told.sentences(), "; ")));
  return told.sentences();
}

}  // namespace assay
