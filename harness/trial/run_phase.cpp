#include "harness/trial/run_phase.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "harness/measure/pinning.h"
#include "harness/trial/merge_figures.h"
#include "harness/trial/quit_mask.h"

namespace assay {
namespace {

/// A warm-up is executed in short pieces, so that its rate can be followed on slow stores too.
constexpr std::size_t kWarmUpSlice = 16;
/// Rates a window that the test for steadiness is fitted to.
constexpr std::uint64_t kSteadyPoints = 10;

std::uint64_t to_ticks(std::uint64_t ns) {
  return TickScale::get().to_ticks(ns);
}

}  // namespace

std::optional<double> relative_slope_per_s(const std::vector<double>& rates, std::size_t span,
                                           double interval_s) {
  if (span < 2 || rates.size() < span) return std::nullopt;
  const double* const values = rates.data() + (rates.size() - span);
  const auto n = static_cast<double>(span);
  double mean = 0.0;
  for (std::size_t i = 0; i < span; ++i) mean += values[i] / n;
  if (mean <= 0.0) return std::nullopt;
  const double middle = (n - 1.0) / 2.0;
  double covariance = 0.0;
  double variance = 0.0;
  for (std::size_t i = 0; i < span; ++i) {
    const double x = static_cast<double>(i) - middle;
    covariance += x * (values[i] - mean);
    variance += x * x;
  }
  return covariance / variance / interval_s / mean;
}

Status check_reads_found(const Workload& workload, std::size_t phase, std::uint64_t not_found) {
  if (not_found == 0) return {};
  bool loaded = false;
  for (std::size_t index = 0; index <= phase; ++index) {
    const Phase& past = workload.phases.at(index);
    loaded = loaded || past.kind == PhaseKind::load;
    if (!past.trace.empty()) return {};  // its keys need not have been there
    for (const Role& role : past.roles)
      if (role.mix[static_cast<std::size_t>(OpKind::erase)] > 0.0) return {};
  }
  if (!loaded) return {};
  return fail(
      ErrorKind::wrong_contents,
      fmt::format("{} reads found nothing, though every key had been loaded and none erased",
                  not_found));
}

RunPhase::RunPhase(Store& store, const Workload& workload, std::uint64_t seed, std::size_t phase)
    : store_(store),
      workload_(workload),
      phase_(workload.phases.at(phase)),
      seed_(seed),
      phase_index_(phase),
      keys_(workload.keys, seed),
      values_(workload.values, seed) {}

RunPhase::~RunPhase() {
  stop_threads();
}

Status RunPhase::start() {
  const std::uint32_t threads = thread_count(phase_);
  for (std::uint32_t index = 0; index < threads; ++index) {
    auto worker = std::make_unique<Worker>();
    worker->background = role_of(phase_, index).background;
    if (!worker->background) ++measured_;
    workers_.push_back(std::move(worker));
  }
  ASSAY_CHECK(measured_ > 0, "a run phase has a measured role, or the workload is refused");
  for (std::uint32_t index = 0; index < threads; ++index)
    workers_[index]->thread = std::thread([this, index] { work(index); });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return ready_ == threads; });
  if (failure_) return fail(*failure_);
  return {};
}

Status RunPhase::prepare(std::uint32_t index) {
  Worker& worker = *workers_[index];
  const Role& role = role_of(phase_, index);
  if (!role.cpus.empty()) {
    std::uint32_t first = 0;  // of this role's threads
    for (const Role& before : phase_.roles) {
      if (&before == &role) break;
      first += before.threads;
    }
    const int cpu = role.cpus[(index - first) % role.cpus.size()];
    ASSAY_TRY(pin_thread({&cpu, 1}));
  }
  Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  worker.session = std::move(*session);
  worker.loop = std::make_unique<OperationLoop>(workload_, seed_, phase_index_, index,
                                                *worker.session, keys_, values_);
  return {};
}

void RunPhase::work(std::uint32_t index) {
  Worker& worker = *workers_[index];
  const Status prepared = prepare(index);
  std::unique_lock lock(mutex_);
  if (!prepared) {
    Error error = prepared.error();
    if (!failure_) failure_ = error;
  }
  ++ready_;
  done_.notify_all();
  std::uint64_t seen = 0;
  for (;;) {
    gate_.wait(lock, [&] { return quit_ || section_number_ != seen; });
    if (quit_) break;
    seen = section_number_;
    const Section section = section_;
    const std::uint64_t start_ticks = section_start_ticks_;
    const bool refilling = refilling_;
    lock.unlock();
    if (refilling)
      worker.loop->refill(wanted_of(worker, section));
    else
      execute(worker, section, start_ticks);
    lock.lock();
    if (refilling) {
      --running_;
      done_.notify_all();
      continue;
    }
    if (!worker.background && --measured_running_ == 0)
      background_deadline_.store(0, std::memory_order_relaxed);
    --running_;
    done_.notify_all();
  }
  lock.unlock();
  worker.session.reset();  // some stores want a session to end in its own thread
}

std::uint64_t RunPhase::wanted_of(const Worker& worker, const Section& section) {
  return section.operations > 0 && !worker.background ? section.operations : ~std::uint64_t{0};
}

void RunPhase::refill(const Section& section) {
  std::unique_lock lock(mutex_);
  if (failure_) return;  // run() will say so
  section_ = section;
  refilling_ = true;
  refilled_ = true;
  running_ = static_cast<std::uint32_t>(workers_.size());
  ++section_number_;
  gate_.notify_all();
  done_.wait(lock, [&] { return running_ == 0; });
  refilling_ = false;
}

void RunPhase::execute(Worker& worker, const Section& section, std::uint64_t start_ticks) {
  const std::atomic<std::uint64_t>& deadline =
      worker.background ? background_deadline_ : measured_deadline_;
  if (section.fresh) worker.loop->begin(start_ticks);
  const std::uint64_t wanted = wanted_of(worker, section);
  const std::uint64_t before = worker.loop->executed();
  std::uint64_t done = 0;
  worker.start_ticks = ticks_now();
  bool more = true;
  while (more && done < wanted) {
    const std::size_t slice = section.recorded ? worker.loop->until_refill() : kWarmUpSlice;
    more = worker.loop->run(std::min<std::uint64_t>(slice, wanted - done), slice, deadline,
                            section.recorded);
    done = worker.loop->executed() - before;
    worker.progress.store(done, std::memory_order_relaxed);
  }
  worker.end_ticks = ticks_now();
  worker.operations = done;
  if (worker.loop->executor().failure()) note_failure(*worker.loop->executor().failure());
  // A stream that was cut short must not pass for a phase that was quick.
  if (const Status whole = worker.loop->stream_status(); !whole) note_failure(whole.error());
}

void RunPhase::note_failure(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  end_section_now();
}

void RunPhase::end_section_now() {
  measured_deadline_.store(0, std::memory_order_relaxed);
  background_deadline_.store(0, std::memory_order_relaxed);
}

std::uint64_t RunPhase::measured_progress() const {
  std::uint64_t sum = 0;
  for (const auto& worker : workers_)
    if (!worker->background) sum += worker->progress.load(std::memory_order_relaxed);
  return sum;
}

void RunPhase::wait_for_measured(std::unique_lock<std::mutex>& lock, const Section& section,
                                 std::uint64_t start_ticks, const OnFraction& progress,
                                 bool& steady) {
  const std::uint64_t step_ms =
      section.steady ? std::max<std::uint64_t>(1, section.steady->window_ms / kSteadyPoints) : 100;
  std::vector<double> rates;
  std::uint64_t before = 0;
  std::uint64_t before_ticks = start_ticks;
  while (!done_.wait_for(lock, std::chrono::milliseconds(step_ms), [&] { return running_ == 0; })) {
    const std::uint64_t done = measured_progress();
    const std::uint64_t now = ticks_now();
    const double elapsed_ns =
        static_cast<double>(TickScale::get().to_ns(ticks_between(start_ticks, now)));
    if (section.steady) {
      const double interval_s =
          static_cast<double>(TickScale::get().to_ns(ticks_between(before_ticks, now))) * 1e-9;
      rates.push_back(static_cast<double>(done - before) / interval_s);
      before = done;
      before_ticks = now;
      const std::optional<double> slope =
          relative_slope_per_s(rates, kSteadyPoints, static_cast<double>(step_ms) * 1e-3);
      if (slope && std::abs(*slope) < section.steady->max_slope_per_s) {
        steady = true;
        measured_deadline_.store(0, std::memory_order_relaxed);
      }
    }
    if (!progress) continue;
    const double wanted = section.duration_ns > 0
                              ? static_cast<double>(section.duration_ns)
                              : static_cast<double>(section.operations) * measured_;
    const double had = section.duration_ns > 0 ? elapsed_ns : static_cast<double>(done);
    lock.unlock();
    progress(std::min(1.0, had / wanted));
    lock.lock();
  }
}

Result<SectionFigures> RunPhase::run(const Section& section, const OnFraction& progress) {
  if (!refilled_) refill(section);
  std::unique_lock lock(mutex_);
  if (failure_) return fail(*failure_);
  refilled_ = false;
  for (auto& worker : workers_) worker->progress.store(0, std::memory_order_relaxed);
  section_ = section;
  running_ = static_cast<std::uint32_t>(workers_.size());
  measured_running_ = measured_;
  const std::uint64_t start_ticks = ticks_now();
  section_start_ticks_ = start_ticks;
  last_deadline_ticks_ =
      section.duration_ns > 0 ? start_ticks + to_ticks(section.duration_ns) : kNoDeadline;
  measured_deadline_.store(last_deadline_ticks_, std::memory_order_relaxed);
  background_deadline_.store(kNoDeadline, std::memory_order_relaxed);
  ++section_number_;
  gate_.notify_all();
  SectionFigures figures;
  const QuitGoesToWorkers quit_mask;
  wait_for_measured(lock, section, start_ticks, progress, figures.steady);
  if (failure_) return fail(*failure_);
  std::uint64_t first = kNoDeadline;
  std::uint64_t last = 0;
  for (const auto& worker : workers_) {
    if (worker->background) continue;
    first = std::min(first, worker->start_ticks);
    last = std::max(last, worker->end_ticks);
    figures.operations += worker->operations;
  }
  figures.wall_ns = TickScale::get().to_ns(ticks_between(first, last));
  wall_ns_ = section.fresh ? figures.wall_ns : wall_ns_ + figures.wall_ns;
  return figures;
}

Section RunPhase::timed_section() const {
  Section section;
  section.operations = phase_.operations;
  section.duration_ns = phase_.duration_ms * 1'000'000;
  return section;
}

Result<WarmUpFigures> RunPhase::warm_up(const OnFraction& progress) {
  const WarmUp& policy = phase_.warm_up;
  WarmUpFigures figures;
  if (policy.policy == WarmUpPolicy::none) return figures;
  Section section;
  section.recorded = false;
  if (policy.policy == WarmUpPolicy::fixed) {
    section.operations = policy.operations;
    section.duration_ns = policy.ms * 1'000'000;
  } else {
    section.duration_ns = policy.max_ms * 1'000'000;
    section.steady = &policy;
  }
  const Result<SectionFigures> done = run(section, progress);
  if (!done) return fail(done.error());
  figures.operations = done->operations;
  figures.wall_ns = done->wall_ns;
  figures.reached = policy.policy == WarmUpPolicy::fixed || done->steady;
  return figures;
}

PhaseFigures RunPhase::finish() {
  PhaseFigures figures;
  figures.wall_ns = wall_ns_;
  SeriesMerger series;
  for (const Role& role : phase_.roles)
    figures.roles.push_back({role.name, role.background, 0, {}, {}});
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    Worker& worker = *workers_[index];
    LatencyRecorder& recorder = worker.loop->recorder();
    recorder.end();
    const OperationCounts& counts = worker.loop->executor().counts();
    figures.mutations += counts.mutations;
    figures.not_found += counts.not_found;
    figures.logical_bytes_written += counts.logical_bytes_written;
    figures.logical_bytes_read += counts.logical_bytes_read;
    figures.executed.push_back(worker.loop->executed());
    figures.streams.push_back(worker.loop->executed_prefix());
    figures.clock_steps_back += recorder.clock_steps_back();
    const std::uint64_t store_ns = TickScale::get().to_ns(counts.store_ticks);
    const auto role = static_cast<std::size_t>(&role_of(phase_, index) - phase_.roles.data());
    figures.roles[role].operations += counts.operations;
    figures.roles[role].store.add(counts.operations, store_ns);
    merge_classes(recorder, figures.roles[role].classes);
    if (worker.background) continue;
    figures.operations += counts.operations;
    figures.store.add(counts.operations, store_ns);
    merge_classes(recorder, figures.classes);
    series.add(recorder);
    if (phase_.roles[role].arrival.rate_per_s <= 0.0) continue;
    OpenLoopFigures& open = figures.open_loop;
    open.open_loop = true;
    open.lag_ns_max =
        std::max(open.lag_ns_max, TickScale::get().to_ns(worker.loop->executor().lag_ticks_max()));
    open.late += worker.loop->executor().late();
    if (last_deadline_ticks_ != kNoDeadline)
      open.skipped += worker.loop->skipped(last_deadline_ticks_);
  }
  figures.series = series.points();
  figures.rates = series.whole_rates();
  stop_threads();
  return figures;
}

void RunPhase::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    end_section_now();
  }
  gate_.notify_all();
  for (auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

}  // namespace assay
