// The design `windows`: the arms' processes are all loaded and open, and the parent lets exactly
// one of them work at a time, for a short window, in random order. What the machine does slowly
// then meets every arm alike.
#include <memory>
#include <random>

#include <fmt/format.h>

#include "harness/trial/cpu_pins.h"
#include "harness/trial/idle_cpu.h"
#include "harness/trial/trial.h"
#include "harness/trial/trial_run.h"
#include "workloads/stream.h"

namespace assay {
namespace {

using nlohmann::json;

/// One arm of the set.
struct Member {
  TrialRequest request;
  std::string stream_digest;  ///< of the workload as it was declared
  std::unique_ptr<TrialRun> run;
  std::size_t windows_segment = 0;
  json throughputs = json::array();
  std::uint64_t idle_cpu_ns = 0;   ///< used while another arm was active
  std::uint64_t idle_wall_ns = 0;  ///< of those windows
};

class WindowSet {
 public:
  WindowSet(const WindowPlan& plan, const std::atomic<bool>& stop, const OnProgress& progress)
      : plan_(plan), stop_(stop), progress_(progress) {}

  Status add(const TrialRequest& request);
  Result<std::vector<json>> run();

 private:
  Status bring_up(Member& member, const std::vector<int>& cpus);
  Status hand_out();
  Status one_window(std::size_t active);
  Status bring_down(Member& member);
  json finish(Member& member);
  /// Why the set cannot go on; empty when every arm is well.
  [[nodiscard]] std::string broken() const;

  const WindowPlan& plan_;
  const std::atomic<bool>& stop_;
  const OnProgress& progress_;
  std::vector<std::unique_ptr<Member>> members_;
};

Status WindowSet::add(const TrialRequest& request) {
  auto member = std::make_unique<Member>();
  member->request = request;
  Workload& workload = member->request.workload;
  const std::size_t measured = measured_phase_index(workload);
  if (measured == workload.phases.size())
    return fail(
        ErrorKind::bad_input,
        fmt::format("workload \"{}\" has no timed run phase to cut into windows", workload.name));
  if (!workload.phases[measured].trace.empty())
    return fail(ErrorKind::bad_input,
                fmt::format("workload \"{}\" replays a trace, which cannot be cut into windows",
                            workload.name));
  for (const Role& role : workload.phases[measured].roles)
    if (role.arrival.rate_per_s > 0.0)
      return fail(
          ErrorKind::bad_input,
          fmt::format("role \"{}\" of workload \"{}\" is an open loop: its intended starts would "
                      "pass by while other arms have their windows",
                      role.name, workload.name));
  member->stream_digest = stream_digest(workload, request.seed);
  // The windows say how much is done, so the streams of the phase must have no end of their own.
  workload.phases[measured].operations = 0;
  workload.phases[measured].duration_ms = 1;
  members_.push_back(std::move(member));
  return {};
}

Status WindowSet::bring_up(Member& member, const std::vector<int>& cpus) {
  Result<std::unique_ptr<TrialRun>> run = TrialRun::make(member.request, stop_, progress_, cpus);
  if (!run) return fail(run.error());
  member.run = std::move(*run);
  const std::size_t measured = measured_phase_index(member.request.workload);
  for (std::size_t number = 0; number < member.run->segments().size(); ++number) {
    member.windows_segment = number;
    if (measured < member.run->segments()[number].last) break;
    ASSAY_TRY(member.run->run_segment(number));
    if (member.run->over()) return {};
  }
  ASSAY_TRY(member.run->start(member.windows_segment, true));
  const Result<std::optional<json>> ready = member.run->pump("ready");
  if (!ready) return fail(ready.error());
  if (!*ready) ASSAY_TRY(member.run->collect());
  return {};
}

std::string WindowSet::broken() const {
  for (const auto& member : members_)
    if (member->run && member->run->over())
      return fmt::format("arm \"{}\" of the set: {}", member->request.arm.name,
                         member->run->reason());
  return {};
}

Status WindowSet::one_window(std::size_t active) {
  std::vector<std::uint64_t> before(members_.size());
  for (std::size_t at = 0; at < members_.size(); ++at)
    before[at] = cpu_ns_of(members_[at]->run->child_pid());
  TrialRun& run = *members_[active]->run;
  run.send(fmt::format("window {}", plan_.operations));
  const Result<std::optional<json>> window = run.pump("window");
  if (!window) return fail(window.error());
  if (!*window) return run.collect();
  const auto wall_ns = (*window)->at("wall_ns").get<std::uint64_t>();
  const auto operations = (*window)->at("operations").get<std::uint64_t>();
  members_[active]->throughputs.push_back(
      wall_ns == 0 ? 0.0 : static_cast<double>(operations) * 1e9 / static_cast<double>(wall_ns));
  for (std::size_t at = 0; at < members_.size(); ++at) {
    if (at == active) continue;
    const std::uint64_t after = cpu_ns_of(members_[at]->run->child_pid());
    members_[at]->idle_cpu_ns += after > before[at] ? after - before[at] : 0;
    members_[at]->idle_wall_ns += wall_ns;
  }
  return {};
}

Status WindowSet::hand_out() {
  // In every round each arm has one window, in an order drawn anew: the arms' windows stay close in
  // time, and none of them always comes after the same other one.
  std::mt19937_64 random(plan_.seed);
  std::vector<std::size_t> round(members_.size());
  for (std::size_t at = 0; at < round.size(); ++at) round[at] = at;
  for (std::uint64_t window = 0; window < plan_.windows; ++window) {
    for (std::size_t left = round.size(); left > 1; --left)
      std::swap(round[left - 1], round[random() % left]);
    for (const std::size_t active : round) {
      ASSAY_TRY(one_window(active));
      if (!broken().empty()) return {};
    }
    if (progress_)
      progress_({"windows", static_cast<double>(window + 1) / static_cast<double>(plan_.windows)});
  }
  return {};
}

Status WindowSet::bring_down(Member& member) {
  TrialRun& run = *member.run;
  run.send("end");
  const Result<std::optional<json>> ended = run.pump("ready");
  if (!ended) return fail(ended.error());
  ASSAY_TRY(run.collect());
  for (std::size_t number = member.windows_segment + 1;
       number < run.segments().size() && !run.over(); ++number)
    ASSAY_TRY(run.run_segment(number));
  return run.validate();
}

json WindowSet::finish(Member& member) {
  const double fraction = member.idle_wall_ns == 0 ? 0.0
                                                   : static_cast<double>(member.idle_cpu_ns) /
                                                         static_cast<double>(member.idle_wall_ns);
  if (fraction > plan_.max_idle_cpu_fraction)
    member.run->make_void(
        fmt::format("the arm was not quiet while others were active: it used {:.0f} % of a CPU "
                    "(limit {:.0f} %)",
                    100.0 * fraction, 100.0 * plan_.max_idle_cpu_fraction));
  if (json* const phase = member.run->measured_phase()) {
    (*phase)["windows"] = member.throughputs;
    (*phase)["window_operations"] = plan_.operations;
    (*phase)["idle_cpu_fraction"] = fraction;
    // The phase was cut into pieces with pauses: neither has a meaning then.
    (*phase)["series"] = json::array();
    for (const char* name : {"relative_change", "p"})
      (*phase)["trend"][name] = unknown_figure("the phase was run in windows");
    (*phase)["trend"]["flagged"] = false;
  }
  json record = member.run->finish();
  record["stream_digest"] = member.stream_digest;
  return record;
}

Result<std::vector<json>> WindowSet::run() {
  const ParentElsewhere elsewhere(members_.front()->request.workload);  // the same for every arm
  for (auto& member : members_) {
    if (!broken().empty()) break;
    ASSAY_TRY(bring_up(*member, elsewhere.before()));
  }
  if (broken().empty()) ASSAY_TRY(hand_out());
  // One arm's failure spoils the set: what is left of it has nothing to be compared with.
  if (const std::string why = broken(); !why.empty())
    for (auto& member : members_)
      if (member->run) member->run->abandon(why);
  for (auto& member : members_)
    if (member->run && !member->run->over()) ASSAY_TRY(bring_down(*member));
  std::vector<json> records;
  for (auto& member : members_) {
    if (!member->run) {  // never brought up, because an arm before it failed
      Result<std::unique_ptr<TrialRun>> run = TrialRun::make(member->request, stop_, {});
      if (!run) return fail(run.error());
      member->run = std::move(*run);
      member->run->make_void(broken());
    }
    records.push_back(finish(*member));
  }
  return records;
}

}  // namespace

Result<std::vector<json>> run_window_set(const std::vector<TrialRequest>& arms,
                                         const WindowPlan& plan, const std::atomic<bool>& stop,
                                         const OnProgress& progress) {
  if (arms.empty() || plan.operations == 0 || plan.windows == 0)
    return fail(ErrorKind::bad_input, "a window set needs arms, windows and operations a window");
  WindowSet set(plan, stop, progress);
  for (const TrialRequest& arm : arms) ASSAY_TRY(set.add(arm));
  return set.run();
}

}  // namespace assay
