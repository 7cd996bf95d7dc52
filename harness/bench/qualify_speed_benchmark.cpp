// How fast qualification is: distinct states a second at level F, kills a second at K, cuts a
// second at B on ext4, and how much longer a recorded process takes than the same one unrecorded.
//
// usage: qualify_speed_benchmark [STORE ...]   (sqlite, rocksdb, lmdb and lode unless some are
// given) Every figure is of the whole level: recording, building of states, opening, judging. Run
// it on a quiet machine with two CPUs, which the goals are for. It asserts nothing.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"
#include "harness/qualify/campaign.h"
#include "harness/qualify/controls.h"
#include "harness/qualify/power/store_life.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

struct Subject {
  std::string store;
  Settings settings;
  double states_goal;  ///< a second at level F
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kAll{
      {"lode", {}, 300},
      {"lmdb", {}, 300},
      {"sqlite", {{"journal_mode", "wal"}, {"synchronous", "full"}}, 150},
      {"rocksdb", {}, 25}};
  return kAll;
}

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

Result<qualify::CampaignPlan> plan_of(const Subject& subject, qualify::Level level,
                                      std::uint64_t cases, const std::string& home) {
  const Result<const Driver*> driver = find_driver(subject.store);
  if (!driver) return fail(driver.error());
  qualify::CampaignPlan plan;
  plan.store = subject.store;
  plan.settings = subject.settings;
  const auto in_force = resolve_settings(**driver, plan.durability, plan.settings);
  if (!in_force) return fail(in_force.error());
  plan.settings_in_force = *in_force;
  const auto claimed = given_durability(**driver, plan.durability, plan.settings);
  if (!claimed) return fail(claimed.error());
  plan.claimed = claimed->given;
  const auto shape = qualify::shape_for((*driver)->capabilities(), 1);
  if (!shape) return fail(shape.error());
  plan.shape = *shape;
  plan.levels = {level};
  plan.budget.cases = cases;
  plan.budget.time = std::chrono::minutes(2);
  plan.jobs = 2;
  plan.binary = ASSAY_COMMAND;
  std::error_code code;
  plan.root = std::filesystem::exists("/dev/shm", code) ? "/dev/shm/assay-qualify-speed" : home;
  plan.out = fmt::format("{}/{}-{}", home, subject.store, to_string(level));
  return plan;
}

/// Cases a second of one level, and its verdict.
void print_rate(const Subject& subject, qualify::Level level, std::uint64_t cases, double goal,
                const std::string& unit) {
  const TemporaryDirectory home;
  const auto plan = plan_of(subject, level, cases, home.path());
  if (!plan) return fmt::print("{:8} {}\n", subject.store, plan.error().message());
  const std::atomic<bool> stop{false};
  qualify::CampaignObserver silent;
  const auto began = Clock::now();
  const auto outcome = run_campaign(*plan, {"qualify_speed_benchmark"}, stop, silent);
  const double took = seconds_since(began);
  if (!outcome) return fmt::print("{:8} {}\n", subject.store, outcome.error().message());
  const qualify::LevelOutcome& found = outcome->levels.front();
  if (found.verdict == qualify::Verdict::skipped)
    return fmt::print("{:8} level {}: {}\n", subject.store, to_string(level), found.reason);
  fmt::print("{:8} level {}: {:7.1f} {} a second ({} in {:.1f} s, goal {:.0f}), {}\n",
             subject.store, to_string(level), static_cast<double>(found.cases) / took, unit,
             found.cases, took, goal, to_string(found.verdict));
  std::fflush(stdout);
}

/// Durable commits of one key each, with opening and closing.
class Commits {
 public:
  Commits(const Driver& driver, const Subject& subject, std::uint64_t count)
      : driver_(driver), subject_(subject), count_(count) {}

  Status make(const std::string& directory) const {
    OpenOptions options;
    options.directory = directory;
    options.durability = DurabilityClass::power;
    options.settings = qualify::small_scale(subject_.store, subject_.settings);
    options.create = true;
    const auto store = driver_.open(options);
    if (!store) return fail(store.error());
    {
      const auto session = (*store)->session();
      if (!session) return fail(session.error());
      const std::string value(128, 'v');
      for (std::uint64_t at = 0; at < count_; ++at)
        ASSAY_TRY((*session)->put(fmt::format("key-{:012}", at % 1000), value));
    }
    return (*store)->close();
  }

  /// Seconds of make() in a process of its own, recorded or not.
  Result<double> seconds(const std::string& directory, bool record) const {
    void* const memory =
        ::mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(system_error("cannot share memory", errno));
    double& took = *static_cast<double*>(memory);
    const auto work = [&]() -> Status {
      const auto began = Clock::now();
      const Status done = make(directory);
      took = seconds_since(began);
      return done;
    };
    const Status done = record ? recorded(directory, work) : in_a_process(work);
    const double seconds = took;
    ::munmap(memory, sizeof(double));
    if (!done) return fail(done.error());
    return seconds;
  }

 private:
  static Status recorded(const std::string& directory, const std::function<Status()>& work) {
    qualify::power::RecordPlan plan;
    plan.directory = directory;
    const auto trace = qualify::power::record_call(plan, work);
    if (!trace) return fail(trace.error());
    return {};
  }
  static Status in_a_process(const std::function<Status()>& work) {
    const pid_t child = ::fork();
    if (child < 0) return fail(system_error("cannot start a process", errno));
    if (child == 0) ::_exit(work() ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return fail(ErrorKind::store, "the commits failed");
  }

  const Driver& driver_;
  const Subject& subject_;
  std::uint64_t count_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// On a disk, where a commit waits for its sync.
void print_overhead(const Subject& subject) {
  constexpr std::uint64_t kCommits = 1000;
  constexpr int kRounds = 5;
  const auto driver = find_driver(subject.store);
  if (!driver) return fmt::print("{:8} {}\n", subject.store, driver.error().message());
  const TemporaryDirectory home;
  const Commits commits(**driver, subject, kCommits);
  std::vector<double> native;
  std::vector<double> recorded;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool record : {false, true}) {
      const std::string directory = home.file(fmt::format("{}-{}", record ? "r" : "n", round));
      std::filesystem::create_directory(directory);
      const Result<double> took = commits.seconds(directory, record);
      if (!took) return fmt::print("{:8} {}\n", subject.store, took.error().message());
      (record ? recorded : native).push_back(*took);
    }
  }
  fmt::print(
      "{:8} recording: {:.2f}x the native time of {} durable commits of one key ({:.0f} ms and "
      "{:.0f} ms, medians of {}; goal 2.00x)\n",
      subject.store, median(recorded) / median(native), kCommits, median(recorded) * 1000,
      median(native) * 1000, kRounds);
  std::fflush(stdout);
}

}  // namespace
}  // namespace assay

int main(int count, char** words) {
  using namespace assay;
  for (const Subject& subject : subjects()) {
    const std::vector<std::string> wanted(words + 1, words + count);
    if (!wanted.empty() && std::ranges::find(wanted, subject.store) == wanted.end()) continue;
    const std::uint64_t states = subject.states_goal < 100 ? 1000 : 6000;
    print_rate(subject, qualify::Level::power_files, states, subject.states_goal, "states");
    print_rate(subject, qualify::Level::kill, 400, 20, "kills");
    print_rate(subject, qualify::Level::power_blocks, 200, 8, "cuts");
    print_overhead(subject);
  }
  return 0;
}
