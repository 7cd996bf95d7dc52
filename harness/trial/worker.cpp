// The child process of a trial: opens the store, runs a segment of the workload's phases (or
// validates the contents), and writes the outcome file.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "harness/measure/clock.h"
#include "harness/measure/memory_group.h"
#include "harness/measure/pinning.h"
#include "harness/trial/cache_policy.h"
#include "harness/trial/child_process.h"
#include "harness/trial/cpu_pins.h"
#include "harness/trial/delayed_store.h"
#include "harness/trial/load_phase.h"
#include "harness/trial/phase_meters.h"
#include "harness/trial/phase_record.h"
#include "harness/trial/precheck.h"
#include "harness/trial/run_phase.h"
#include "harness/trial/table_phase.h"
#include "harness/trial/trial.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"
#include "workloads/model.h"

namespace assay {
namespace {

using nlohmann::json;

/// The line protocol to the parent. It takes over the standard output's pipe and points the
/// standard output itself to the log, so that a store that prints cannot disturb the protocol.
class ParentLink {
 public:
  ParentLink() : out_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  void send(const json& message) const {
    const std::string line = message.dump() + "\n";
    // A parent that is gone cannot be told; the kernel kills this process with it.
    [[maybe_unused]] const ssize_t sent = ::write(out_, line.data(), line.size());
  }

 private:
  int out_;
};

class Worker {
 public:
  Worker(const WorkerRequest& request, json& outcome, ParentLink& parent)
      : request_(request), workload_(request.workload), outcome_(outcome), parent_(parent) {}

  Status run();
  Status validate();
  /// After run(): the restart that ends this process is a killing one, so the store stays open.
  [[nodiscard]] bool ends_by_kill() const;

 private:
  Status open(bool create);
  Status rebuild_index(const OpenOptions& options);
  Status run_phases();
  Status run_one(std::size_t index, json& record);
  Status run_workers(std::size_t index, PhaseMeters& meters, PhaseFigures& figures);
  Status run_windows(RunPhase& run, PhaseMeters& meters);
  Status run_store_call(PhaseKind kind, PhaseMeters& meters, PhaseFigures& figures);
  Status run_tables(std::size_t index, PhaseMeters& meters, PhaseFigures& figures, json& told);
  Result<ModelCheck> check_contents();
  /// The phase before this process's first one rebuilds the index.
  [[nodiscard]] bool rebuilds_first() const;
  void note_restart();
  Status close();
  OnFraction progress_of(std::size_t index);

  const WorkerRequest& request_;
  const Workload& workload_;
  json& outcome_;
  ParentLink& parent_;
  const Driver* driver_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TableWork> tables_;  ///< since the process's first phase over tables
  CacheFigures cache_;
  std::unique_ptr<PhaseMeters> open_meters_;
};

/// Why the meters of this process do not see what the store uses; empty where they do.
std::string_view store_elsewhere(const Driver& driver) {
  return works_elsewhere(driver)
             ? "the store works in a process of its own, whose use is not measured"
             : std::string_view();
}

Status Worker::open(bool create) {
  const Result<const Driver*> driver = find_driver(request_.store);
  if (!driver) return fail(driver.error());
  driver_ = *driver;
  const Capabilities can = driver_->capabilities();
  outcome_["retains_data"] = can.retains_data;
  outcome_["store"] = {{"name", driver_->name()}, {"version", driver_->version()}};
  if (create)
    ASSAY_TRY(check_before_trial(*driver_, request_.durability, request_.settings, workload_,
                                 request_.directory));
  if (request_.task == WorkerTask::run && request_.first_phase < request_.last_phase)
    ASSAY_TRY(drop_before_open(workload_, workload_.phases[request_.first_phase],
                               request_.directory, cache_));
  // Threads that the store starts inherit this mask, never the pin of one worker.
  const std::vector<int> cpus = declared_cpus(workload_);
  if (!cpus.empty()) ASSAY_TRY(pin_thread(cpus));
  OpenOptions options;
  options.directory = request_.directory;
  options.create = create;
  options.durability = request_.durability;
  options.settings = request_.settings;
  options.key_kind = workload_.keys.kind;
  options.memory_bytes = workload_.memory_bytes;
  options.expected_bytes = expected_data_bytes(workload_);
  options.value_bytes = usual_value_bytes(workload_.values);
  if (rebuilds_first()) ASSAY_TRY(rebuild_index(options));
  open_meters_ = std::make_unique<PhaseMeters>(request_.directory, store_elsewhere(*driver_));
  open_meters_->begin();
  const std::uint64_t before = ticks_now();
  Result<std::unique_ptr<Store>> store = driver_->open(options);
  const std::uint64_t ticks = ticks_between(before, ticks_now());
  open_meters_->end();
  outcome_["open_ns"] = TickScale::get().to_ns(ticks);
  if (!store) {
    Error error = store.error();
    return fail(error.in(fmt::format("open {}", driver_->name())));
  }
  store_ = request_.delay_ns == 0
               ? std::move(*store)
               : delayed_store(std::move(*store), request_.directory, request_.delay_ns);
  return {};
}

bool Worker::rebuilds_first() const {
  return request_.task == WorkerTask::run && request_.first_phase > 0 &&
         workload_.phases[request_.first_phase - 1].kind == PhaseKind::rebuild;
}

Status Worker::rebuild_index(const OpenOptions& options) {
  const Phase& phase = workload_.phases[request_.first_phase - 1];
  const auto named = [&](Error error) {
    return fail(error.in(fmt::format("phase \"{}\"", phase.name)));
  };
  const Status dropped = driver_->drop_index(options);
  if (!dropped) return named(dropped.error());
  PhaseMeters meters(request_.directory, store_elsewhere(*driver_));
  PhaseFigures figures;
  meters.begin();
  const std::uint64_t before = ticks_now();
  const Result<std::uint64_t> entries = driver_->rebuild_index(options);
  figures.wall_ns = TickScale::get().to_ns(ticks_between(before, ticks_now()));
  meters.end();
  if (!entries) return named(entries.error());
  figures.operations = *entries;
  figures.store.add(*entries, figures.wall_ns);
  json record = phase_record(phase, figures);
  meters.add_to(record);
  outcome_["phases"].push_back(std::move(record));
  return {};
}

OnFraction Worker::progress_of(std::size_t index) {
  return [this, index](double fraction) {
    parent_.send({{"progress",
                   {{"what", workload_.phases[index].name},
                    {"fraction", (static_cast<double>(index) + fraction) /
                                     static_cast<double>(workload_.phases.size())}}}});
  };
}

Status Worker::run_windows(RunPhase& run, PhaseMeters& meters) {
  parent_.send({{"ready", true}});
  bool fresh = true;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "end") return {};
    Section section;
    if (std::sscanf(line.c_str(), "window %lu", &section.operations) != 1)
      return fail(ErrorKind::child, "the parent said \"" + line + "\"");
    section.fresh = fresh;
    fresh = false;
    run.refill(section);
    meters.begin();
    const Result<SectionFigures> done = run.run(section);
    if (!done) return fail(done.error());
    meters.end();
    parent_.send({{"window", {{"operations", done->operations}, {"wall_ns", done->wall_ns}}}});
  }
  return fail(ErrorKind::child, "the parent went away in the middle of the windows");
}

Status Worker::run_workers(std::size_t index, PhaseMeters& meters, PhaseFigures& figures) {
  const Phase& phase = workload_.phases[index];
  RunPhase run(*store_, workload_, request_.seed, index);
  if (!driver_->capabilities().retains_data) run.accept_any_value();
  outcome_["stage"] = "setup";  // a refused pin is not the store's doing
  ASSAY_TRY(run.start());
  outcome_["stage"] = "measuring";
  ASSAY_TRY(settle_cache(phase, request_.directory, cache_));
  Result<WarmUpFigures> warm_up = run.warm_up();
  if (!warm_up) return fail(warm_up.error());
  if (request_.windows && index == measured_phase_index(workload_)) {
    ASSAY_TRY(run_windows(run, meters));
  } else {
    const Section section = run.timed_section();
    run.refill(section);
    meters.begin();
    const Result<SectionFigures> timed = run.run(section, progress_of(index));
    if (!timed) return fail(timed.error());
    meters.end();
  }
  figures = run.finish();
  figures.warm_up = *warm_up;
  if (!driver_->capabilities().retains_data) return {};
  return check_reads_found(workload_, index, figures.not_found);
}

Status Worker::run_store_call(PhaseKind kind, PhaseMeters& meters, PhaseFigures& figures) {
  meters.begin();
  const std::uint64_t before = ticks_now();
  const Status done = kind == PhaseKind::sync         ? store_->sync()
                      : kind == PhaseKind::checkpoint ? store_->checkpoint()
                                                      : store_->settle();
  figures.wall_ns = TickScale::get().to_ns(ticks_between(before, ticks_now()));
  figures.store.ns = figures.wall_ns;
  meters.end();
  return done;
}

Status Worker::run_tables(std::size_t index, PhaseMeters& meters, PhaseFigures& figures,
                          json& told) {
  if (tables_ == nullptr) {
    Result<std::unique_ptr<TableWork>> tables =
        TableWork::open(*store_, *driver_, workload_, index);
    if (!tables) return fail(tables.error());
    tables_ = std::move(*tables);
  }
  const Phase& phase = workload_.phases[index];
  if (phase.kind == PhaseKind::load_tables)
    return tables_->load(phase, meters, figures, told, progress_of(index));
  return tables_->run(phase, request_.directory, cache_, meters, figures, told);
}

Status Worker::run_one(std::size_t index, json& record) {
  const Phase& phase = workload_.phases[index];
  PhaseMeters meters(request_.directory, store_elsewhere(*driver_));
  PhaseFigures figures;
  json table;
  progress_of(index)(0.0);
  switch (phase.kind) {
    case PhaseKind::load: {
      meters.begin();
      Result<PhaseFigures> loaded =
          run_load(*store_, workload_, request_.seed, index, progress_of(index));
      if (!loaded) return fail(loaded.error());
      meters.end();
      figures = std::move(*loaded);
      break;
    }
    case PhaseKind::run:
      ASSAY_TRY(run_workers(index, meters, figures));
      break;
    case PhaseKind::sync:
    case PhaseKind::checkpoint:
    case PhaseKind::settle:
      ASSAY_TRY(run_store_call(phase.kind, meters, figures));
      break;
    case PhaseKind::load_tables:
    case PhaseKind::table:
      ASSAY_TRY(run_tables(index, meters, figures, table));
      break;
    case PhaseKind::restart:
    case PhaseKind::rebuild:
      return {};  // noted by the process that opens the store again
  }
  record = phase_record(phase, figures);
  if (phase.kind == PhaseKind::run || phase.kind == PhaseKind::table)
    record["cache"] = cache_record(phase, cache_);
  if (!table.is_null()) record["table"] = std::move(table);
  meters.add_to(record);
  if (!figures.executed.empty())
    outcome_["executed"].push_back({{"phase", index}, {"operations", figures.executed}});
  return {};
}

void Worker::note_restart() {
  if (request_.first_phase == 0) return;
  const Phase& before = workload_.phases[request_.first_phase - 1];
  if (before.kind != PhaseKind::restart) return;
  PhaseFigures figures;
  figures.wall_ns = outcome_["open_ns"];
  json record = phase_record(before, figures);
  open_meters_->add_to(record);
  outcome_["phases"].push_back(std::move(record));
}

Status Worker::run_phases() {
  note_restart();
  for (std::size_t index = request_.first_phase; index < request_.last_phase; ++index) {
    json record;
    const Status done = run_one(index, record);
    if (!done) {
      Error error = done.error();
      return fail(error.in(fmt::format("phase \"{}\"", workload_.phases[index].name)));
    }
    if (!record.is_null()) outcome_["phases"].push_back(std::move(record));
    cache_ = {};  // figures of the segment's first phase are its own
  }
  return {};
}

Status Worker::close() {
  tables_.reset();
  json& store = outcome_["store"];
  store["counters"] = store_->counters();
  const Result<Settings> effective = store_->effective_settings();
  store["settings_effective"] =
      effective ? json(*effective) : unknown_figure(effective.error().message());
  const Result<Footprint> space = store_->footprint();
  for (const char* name : {"files", "apparent_bytes", "allocated_bytes"})
    outcome_["space"][name] = space ? json() : unknown_figure(space.error().message());
  if (space)
    outcome_["space"] = {{"files", space->files},
                         {"apparent_bytes", space->apparent_bytes},
                         {"allocated_bytes", space->allocated_bytes}};
  const std::uint64_t before = ticks_now();
  const Status closed = store_->close();
  outcome_["close_ns"] = TickScale::get().to_ns(ticks_between(before, ticks_now()));
  if (!closed) {
    Error error = closed.error();
    return fail(error.in("close"));
  }
  store_.reset();
  return {};
}

bool Worker::ends_by_kill() const {
  if (request_.task != WorkerTask::run || request_.last_phase == request_.first_phase) return false;
  const Phase& last = workload_.phases[request_.last_phase - 1];
  return last.kind == PhaseKind::restart && last.how == RestartHow::kill;
}

Status Worker::run() {
  outcome_["stage"] = "setup";
  outcome_["stream_digest"] = stream_digest(workload_, request_.seed);
  outcome_["phases"] = json::array();
  outcome_["executed"] = json::array();
  ASSAY_TRY(open(request_.first_phase == 0));
  outcome_["stage"] = "measuring";
  ASSAY_TRY(run_phases());
  if (ends_by_kill()) return {};
  return close();
}

Result<ModelCheck> Worker::check_contents() {
  if (uses_tables(workload_)) {
    const Result<std::unique_ptr<TableWork>> tables =
        TableWork::open(*store_, *driver_, workload_, workload_.phases.size());
    if (!tables) return fail(tables.error());
    return (*tables)->check();
  }
  const Result<std::unique_ptr<Session>> session = store_->session();
  if (!session) return fail(session.error());
  Model model(workload_, request_.seed);
  for (const Executed& executed : request_.executed) model.apply(executed);
  return model.check(**session, driver_->capabilities().ordered);
}

Status Worker::validate() {
  outcome_["stage"] = "measuring";
  ASSAY_TRY(open(false));
  const Result<ModelCheck> check = check_contents();
  if (!check) return fail(check.error());
  outcome_["validation"] = {{"ok", check->ok},
                            {"entries", check->entries},
                            {"expected_entries", check->expected_entries},
                            {"digest", check->digest},
                            {"expected_digest", check->expected_digest},
                            {"first_difference", check->first_difference}};
  return store_->close();
}

}  // namespace

int worker_main(const std::string& request_path) {
  ParentLink parent;
  json outcome = json::object();
  const auto read_request = [&]() -> Result<WorkerRequest> {
    const Result<std::string> text = read_file(request_path);
    if (!text) return fail(text.error());
    return worker_request_from_json(json::parse(*text, nullptr, false));
  };
  const Result<WorkerRequest> request = read_request();
  if (!request) {
    fmt::print(stderr, "assay worker: {}\n", request.error().message());
    return ChildExit::no_request;
  }
  {
    Worker worker(*request, outcome, parent);
    outcome["stage"] = "setup";
    Status done;
    if (!request->memory_group.empty()) done = join_memory_group(request->memory_group);
    if (done && !request->cpus.empty()) done = pin_thread(request->cpus);
    if (done) done = request->task == WorkerTask::run ? worker.run() : worker.validate();
    if (!done) {
      fmt::print(stderr, "assay worker: {}\n", done.error().message());
      outcome["error"] = error_to_json(done.error());
    }
    if (done && worker.ends_by_kill()) {
      // What was measured is written down first; every operation has been acknowledged by now.
      outcome["killed"] = true;
      if (hand_over_file(request->outcome_path, outcome.dump())) ::kill(::getpid(), SIGKILL);
    }
  }
  const Status written = hand_over_file(request->outcome_path, outcome.dump());
  if (!written) {
    fmt::print(stderr, "assay worker: {}\n", written.error().message());
    return ChildExit::outcome_unwritten;
  }
  return 0;
}

}  // namespace assay
