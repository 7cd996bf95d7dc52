#include "harness/soak/soak.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/directory_image.h"
#include "harness/soak/bank.h"
#include "harness/soak/soak_shared.h"
#include "harness/trial/trial_directory.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Task = std::function<Status(Bank&, Store&)>;

constexpr auto kLook = std::chrono::milliseconds(5);
constexpr Seconds kPatience(600);  // for a child that recovers or closes its store
constexpr std::size_t kWriterBlock = std::size_t{1} << 20;
constexpr off_t kWriterFile = off_t{256} << 20;

double seconds_since(Clock::time_point begin) {
  return Seconds(Clock::now() - begin).count();
}
std::uint64_t nanoseconds_since(Clock::time_point begin) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

/// Resident memory of this process; 0 where the kernel does not tell.
std::uint64_t memory_now() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

struct Unmap {
  void operator()(SoakShared* shared) const { ::munmap(shared, sizeof *shared); }
};

/// Writes and syncs without end, in a file that it writes over again and again.
void keep_disk_busy(const std::string& path, SoakShared& shared) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string block(kWriterBlock, 'w');
  off_t at = 0;
  while (file >= 0) {
    const ssize_t wrote = ::pwrite(file, block.data(), block.size(), at);
    if (wrote <= 0 || ::fdatasync(file) != 0) break;
    shared.writer_bytes.fetch_add(static_cast<std::uint64_t>(wrote));
    shared.writer_syncs.fetch_add(1);
    at = at + wrote >= kWriterFile ? 0 : at + wrote;
  }
  shared.fail_with(system_error("the disk writer beside the store cannot write", errno).at(path));
}

/// A forked child, killed with its owner.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) end(SIGKILL);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end(int signal) {
    ::kill(pid_, signal);
    while (!is_over(0)) {
    }
  }
  /// Whether it has ended; with options 0, waits for it.
  bool is_over(int options) {
    if (pid_ <= 0) return true;
    rusage used{};
    const pid_t got = ::wait4(pid_, &status_, options, &used);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    memory_bytes_ = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    pid_ = 0;
    return true;
  }
  /// After its end: how it died, when it did not end by itself.
  [[nodiscard]] std::string death() const {
    if (WIFSIGNALED(status_)) return fmt::format("died by signal {}", WTERMSIG(status_));
    return WEXITSTATUS(status_) == 0 ? std::string()
                                     : fmt::format("ended with status {}", WEXITSTATUS(status_));
  }
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  pid_t pid_;
  int status_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

class Soak {
 public:
  Soak(const SoakPlan& plan, const std::atomic<bool>& stop,
       const std::function<void(const SoakRound&)>& on_round)
      : plan_(plan), stop_(stop), on_round_(on_round) {}
  Result<SoakReport> run();

 private:
  Status all_rounds(const std::string& data);
  Status one_round(const std::string& data, std::uint32_t clients, bool killed);
  Status finish(const std::string& path);
  Status whole_task(const std::string& data, bool create, const Task& task);
  Result<std::unique_ptr<Child>> start(const std::function<void()>& work);
  Result<std::unique_ptr<Child>> open_in_child(const std::string& data, bool create,
                                               const Task& task);
  Status wait_for(Child& child, const std::function<bool()>& until);
  Status told() const;

  const SoakPlan& plan_;
  const std::atomic<bool>& stop_;
  const std::function<void(const SoakRound&)>& on_round_;
  std::unique_ptr<SoakShared, Unmap> shared_;
  SoakReport report_;
};

Status Soak::told() const {
  const int kind = shared_->failed.load();
  if (kind < 0) return {};
  return fail(Error(static_cast<ErrorKind>(kind), std::string(shared_->message.data())));
}

Result<std::unique_ptr<Child>> Soak::start(const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start a process of the soak", errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) work();
    ::_exit(0);
  }
  return std::make_unique<Child>(pid);
}

Result<std::unique_ptr<Child>> Soak::open_in_child(const std::string& data, bool create,
                                                   const Task& task) {
  shared_->stop.store(false);
  shared_->working.store(0);
  shared_->opening_ns.store(0);
  const auto work = [&]() -> Status {
    OpenOptions options;
    options.directory = data;
    options.create = create;
    options.durability = plan_.durability;
    options.settings = plan_.settings;
    options.memory_bytes = plan_.memory_bytes;
    const auto begin = Clock::now();
    const Result<std::unique_ptr<Store>> store = plan_.driver->open(options);
    if (!store) return fail(store.error());
    shared_->opening_ns.store(nanoseconds_since(begin));
    Bank bank(plan_, *shared_, **store);
    ASSAY_TRY(create ? bank.fill() : bank.check_everything());
    ASSAY_TRY(task(bank, **store));
    shared_->memory_bytes.store(memory_now());
    return (*store)->close();
  };
  return start([&] {
    const Status status = work();
    if (!status) shared_->fail_with(status.error());
  });
}

/// Waits until the child has ended or `until` says so, or it failed.
Status Soak::wait_for(Child& child, const std::function<bool()>& until) {
  const auto begin = Clock::now();
  while (!child.is_over(WNOHANG)) {
    if (until && until()) return {};
    if (stop_.load()) return fail(ErrorKind::interrupted, "the soak was stopped");
    // A store that failed may hang as well: it is not waited for.
    if (shared_->failed.load() >= 0) break;
    if (!until && seconds_since(begin) > kPatience.count())
      return fail(ErrorKind::child,
                  fmt::format("the store is not done after {:.0f} s", kPatience.count()));
    std::this_thread::sleep_for(kLook);
  }
  ASSAY_TRY(told());
  const std::string death = child.death();
  if (!death.empty()) return fail(ErrorKind::child, "the process with the store " + death);
  return {};
}

/// A child that opens the store, checks it, does `task` and closes it.
Status Soak::whole_task(const std::string& data, bool create, const Task& task) {
  const Result<std::unique_ptr<Child>> child = open_in_child(data, create, task);
  if (!child) return fail(child.error());
  return wait_for(**child, {});
}

Status Soak::one_round(const std::string& data, std::uint32_t clients, bool killed) {
  SoakRound round{.clients = clients, .killed = killed};
  const std::uint64_t transfers = shared_->transfers.load();
  const std::uint64_t checks = shared_->checks.load();
  const Result<std::unique_ptr<Child>> started =
      open_in_child(data, false, [clients](Bank& bank, Store&) { return bank.work(clients); });
  if (!started) return fail(started.error());
  Child& child = **started;
  const auto began = Clock::now();
  ASSAY_TRY(wait_for(child, [&] {
    return shared_->working.load() == clients || seconds_since(began) > kPatience.count();
  }));
  if (shared_->working.load() != clients)
    return fail(ErrorKind::child,
                fmt::format("not every one of {} clients got a session", clients));
  const auto begin = Clock::now();
  const double wanted = plan_.seconds / static_cast<double>(2 * plan_.clients.size());
  ASSAY_TRY(wait_for(child, [&] { return seconds_since(begin) >= wanted; }));
  round.load_s = seconds_since(begin);
  if (killed) {
    child.end(SIGKILL);
    ASSAY_TRY(told());
  } else {
    shared_->stop.store(true);
    ASSAY_TRY(wait_for(child, {}));
  }
  round.open_s = static_cast<double>(shared_->opening_ns.load()) / 1e9;
  round.transfers = shared_->transfers.load() - transfers;
  round.operations = 3 * round.transfers;
  round.checks = shared_->checks.load() - checks;
  round.peak_memory_bytes = child.memory_bytes();
  report_.rounds.push_back(round);
  if (on_round_) on_round_(round);
  return {};
}

Status Soak::all_rounds(const std::string& data) {
  std::unique_ptr<Child> writer;
  if (plan_.disk_writer) {
    Result<std::unique_ptr<Child>> started =
        start([&] { keep_disk_busy(data + "/../beside", *shared_); });
    if (!started) return fail(started.error());
    writer = std::move(*started);
  }
  for (const std::uint32_t clients : plan_.clients) {
    ASSAY_TRY(one_round(data, clients, false));
    ASSAY_TRY(one_round(data, clients, true));
  }
  report_.written_beside_bytes = shared_->writer_bytes.load();
  report_.written_beside_syncs = shared_->writer_syncs.load();
  return {};
}

/// Checkpoint, backup, restore: the same contents.
Status Soak::finish(const std::string& path) {
  const std::string data = path + "/data";
  const std::string backup = path + "/backup";
  const auto digest = [this](Bank& bank) -> Status {
    const Result<std::string> text = bank.digest();
    if (!text) return fail(text.error());
    text->copy(shared_->digest.data(), shared_->digest.size() - 1);
    return {};
  };
  const auto settled = [&](Bank& bank, Store& store) -> Status {
    const auto began = Clock::now();
    ASSAY_TRY(store.checkpoint());
    ASSAY_TRY(store.sync());
    ASSAY_TRY(store.settle());
    shared_->checkpoint_ns.store(nanoseconds_since(began));
    return digest(bank);
  };
  ASSAY_TRY(whole_task(data, false, settled));
  report_.checkpoint_s = static_cast<double>(shared_->checkpoint_ns.load()) / 1e9;
  report_.final_memory_bytes = shared_->memory_bytes.load();
  report_.digest = shared_->digest.data();
  const auto begin = Clock::now();
  ASSAY_TRY(qualify::copy_directory(data, backup));
  report_.backup_s = seconds_since(begin);
  const Result<Footprint> footprint = directory_footprint(backup);
  if (!footprint) return fail(footprint.error());
  report_.backup_bytes = footprint->apparent_bytes;
  ASSAY_TRY(qualify::copy_directory(backup, path + "/restored"));
  ASSAY_TRY(
      whole_task(path + "/restored", false, [&](Bank& bank, Store&) { return digest(bank); }));
  report_.restore_s = static_cast<double>(shared_->opening_ns.load()) / 1e9;
  report_.restored_digest = shared_->digest.data();
  if (report_.restored_digest != report_.digest)
    return fail(ErrorKind::wrong_contents, "the restored backup has other contents");
  return {};
}

Result<SoakReport> Soak::run() {
  void* const memory = ::mmap(nullptr, sizeof(SoakShared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(system_error("no memory for a soak", errno));
  shared_.reset(new (memory) SoakShared());
  const Result<TrialDirectory> directory = TrialDirectory::make(plan_.root);
  if (!directory) return fail(directory.error());
  Status status = whole_task(directory->data(), true, [](Bank&, Store&) { return Status{}; });
  if (status) status = all_rounds(directory->data());
  if (status) status = finish(directory->path());
  if (!status) {
    if (status.error().kind() != ErrorKind::wrong_contents) return fail(status.error());
    report_.violation = status.error().message();
  }
  return report_;
}

Status check(const SoakPlan& plan) {
  const Capabilities can = plan.driver->capabilities();
  if (!can.ordered || !can.atomic_batches || !can.retains_data) {
    return fail(Error(ErrorKind::unsupported,
                      fmt::format("a soak of {} can check nothing", plan.driver->name()))
                    .hint("it needs atomic batches and scans"));
  }
  if (plan.clients.empty() || plan.accounts < kSoakAccountsLeast || !(plan.seconds > 0))
    return fail(ErrorKind::bad_input, "a soak needs clients, two accounts and some time");
  std::uint32_t most = 0;
  for (const std::uint32_t clients : plan.clients) {
    most = std::max(most, clients);
    if (clients == 0 || clients > kSoakClientsMost)
      return fail(ErrorKind::bad_input,
                  fmt::format("a soak has 1 to {} clients, not {}", kSoakClientsMost, clients));
  }
  const Result<GivenDurability> given =
      given_durability(*plan.driver, plan.durability, plan.settings);
  if (!given) return fail(given.error());
  if (given->given == DurabilityClass::volatile_)
    return fail(Error(ErrorKind::bad_input,
                      "a soak kills the process, which class volatile does not survive")
                    .hint("the least class is process"));
  OpenOptions options;
  options.durability = plan.durability;
  options.settings = plan.settings;
  options.memory_bytes = plan.memory_bytes;
  return plan.driver->check_settings(options, most + 1);
}

}  // namespace

Result<SoakReport> run_soak(const SoakPlan& plan, const std::atomic<bool>& stop,
                            const std::function<void(const SoakRound&)>& on_round) {
  ASSAY_TRY(check(plan));
  return Soak(plan, stop, on_round).run();
}

namespace {
nlohmann::json memory_json(const SoakPlan& plan, std::uint64_t bytes) {
  if (!plan.own_process) return bytes;
  return {{"unknown", "the store works in a process of its own, whose memory is not measured"}};
}
}  // namespace

nlohmann::json soak_json(const SoakPlan& plan, const SoakReport& report) {
  nlohmann::json rounds = nlohmann::json::array();
  std::uint64_t transfers = 0;
  std::uint64_t checks = 0;
  for (const SoakRound& round : report.rounds) {
    transfers += round.transfers;
    checks += round.checks;
    rounds.push_back({{"clients", round.clients},
                      {"ended", round.killed ? "SIGKILL" : "closed"},
                      {"open_s", round.open_s},
                      {"load_s", round.load_s},
                      {"transfers", round.transfers},
                      {"operations", round.operations},
                      {"checks", round.checks},
                      {"peak_memory_bytes", memory_json(plan, round.peak_memory_bytes)}});
  }
  return {
      {"schema", 1},
      {"store", plan.driver->name()},
      {"version", plan.driver->version()},
      {"durability", to_string(plan.durability)},
      {"settings", plan.settings},
      {"seconds", plan.seconds},
      {"accounts", plan.accounts},
      {"seed", plan.seed},
      {"disk_writer", plan.disk_writer},
      {"rounds", rounds},
      {"transfers", transfers},
      {"operations", 3 * transfers},
      {"checks", checks},
      {"violation", report.violation.empty() ? nlohmann::json() : nlohmann::json(report.violation)},
      {"written_beside_bytes", report.written_beside_bytes},
      {"written_beside_syncs", report.written_beside_syncs},
      {"checkpoint_s", report.checkpoint_s},
      {"backup_s", report.backup_s},
      {"backup_bytes", report.backup_bytes},
      {"restore_s", report.restore_s},
      {"final_memory_bytes", memory_json(plan, report.final_memory_bytes)},
      {"digest", report.digest},
      {"restored_digest", report.restored_digest}};
}

}  // namespace assay
