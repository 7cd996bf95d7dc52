// The worker threads of one run phase. They are started once, wait at a gate and execute one
// section after another: the warm-up, then the timed part, or one window after another.
//
// Between two sections every worker is quiet, so the caller can read counters that belong to
// exactly one section. Before a section the workers make their next operations (refill), so that a
// short window times store calls and not the making of a buffer. run() and the other functions are
// called by one thread, the coordinator.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/store.h"
#include "harness/trial/operation_loop.h"
#include "harness/trial/phase_figures.h"
#include "workloads/stream.h"
#include "workloads/workload.h"

namespace assay {

/// What the measured threads do in one section. Exactly one of operations and duration_ns.
struct Section {
  std::uint64_t operations = 0;  ///< a thread
  std::uint64_t duration_ns = 0;
  bool recorded = true;
  bool fresh = true;               ///< counts and histograms start anew
  const WarmUp* steady = nullptr;  ///< end as soon as the rate is steady
};

struct SectionFigures {
  std::uint64_t operations = 0;  ///< of the measured roles
  std::uint64_t wall_ns = 0;     ///< first measured start to last measured end
  bool steady = false;           ///< the rate became steady before the section's end
};

/// Share of the section that is over, 0 to 1.
using OnFraction = std::function<void(double)>;

class RunPhase {
 public:
  /// Everything must outlive the phase.
  RunPhase(Store& store, const Workload& workload, std::uint64_t seed, std::size_t phase);
  ~RunPhase();
  RunPhase(const RunPhase&) = delete;
  RunPhase& operator=(const RunPhase&) = delete;

  /// For a store that retains nothing: a get may answer with any value. Before start().
  void accept_any_value() { values_.accept_any(); }
  /// Starts the threads: each pins itself, opens its session and waits. A refused pin is an error
  /// of kind `environment`.
  [[nodiscard]] Status start();
  /// Fills the workers' buffers for `section`. run() does it where it has not been done; call it
  /// before counters are read that belong to the section.
  void refill(const Section& section);
  /// One section. The error is the first one that a store or a check gave.
  [[nodiscard]] Result<SectionFigures> run(const Section& section, const OnFraction& progress = {});
  /// The phase's warm-up policy as sections.
  [[nodiscard]] Result<WarmUpFigures> warm_up(const OnFraction& progress = {});
  /// The phase's timed part as a section.
  [[nodiscard]] Section timed_section() const;
  /// Figures since the last fresh section; also ends the threads.
  [[nodiscard]] PhaseFigures finish();

 private:
  struct alignas(64) Worker {
    std::atomic<std::uint64_t> progress{0};  ///< operations in the current section
    std::unique_ptr<Session> session;
    std::unique_ptr<OperationLoop> loop;
    bool background = false;
    std::uint64_t start_ticks = 0;
    std::uint64_t end_ticks = 0;
    std::uint64_t operations = 0;
    std::thread thread;
  };

  void work(std::uint32_t index);
  Status prepare(std::uint32_t index);
  void execute(Worker& worker, const Section& section, std::uint64_t start_ticks);
  [[nodiscard]] static std::uint64_t wanted_of(const Worker& worker, const Section& section);
  void end_section_now();
  void note_failure(Error error);
  [[nodiscard]] std::uint64_t measured_progress() const;
  void wait_for_measured(std::unique_lock<std::mutex>& lock, const Section& section,
                         std::uint64_t start_ticks, const OnFraction& progress, bool& steady);
  void stop_threads();

  Store& store_;
  const Workload& workload_;
  const Phase& phase_;
  std::uint64_t seed_;
  std::size_t phase_index_;
  KeyCodec keys_;
  ValueCodec values_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint32_t measured_ = 0;  ///< threads of measured roles

  std::mutex mutex_;
  std::condition_variable gate_;  ///< workers wait here for a section
  std::condition_variable done_;  ///< the coordinator waits here
  Section section_;
  std::uint64_t section_number_ = 0;
  std::uint64_t section_start_ticks_ = 0;
  bool refilling_ = false;  ///< what the workers are to do: refill, or execute the section
  bool refilled_ = false;
  std::uint32_t ready_ = 0;
  std::uint32_t measured_running_ = 0;
  std::uint32_t running_ = 0;
  bool quit_ = false;
  std::optional<Error> failure_;
  std::uint64_t last_wall_ns_ = 0;
  std::uint64_t wall_ns_ = 0;  ///< since the last fresh section
  std::uint64_t last_deadline_ticks_ = kNoDeadline;
  // Moved to 0 to end a section early; workers look at it after every operation.
  std::atomic<std::uint64_t> measured_deadline_{kNoDeadline};
  std::atomic<std::uint64_t> background_deadline_{kNoDeadline};
};

/// An error of kind wrong_contents when reads of phase number `phase` found nothing although every
/// key that they draw had been loaded and nothing erases one. Validation alone would not see it: it
/// reads what is there at the end, not what the reads were answered.
[[nodiscard]] Status check_reads_found(const Workload& workload, std::size_t phase,
                                       std::uint64_t not_found);

/// Rates of equal intervals, oldest first, of which the last `span` ones are looked at: the slope
/// of a least-squares line relative to their mean, a second. Nothing when the mean is zero.
[[nodiscard]] std::optional<double> relative_slope_per_s(const std::vector<double>& rates,
                                                         std::size_t span, double interval_s);

}  // namespace assay
