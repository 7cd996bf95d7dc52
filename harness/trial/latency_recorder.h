// Latencies of one thread: a histogram an operation class, and the operations of each second.
//
// A sample is one operation, or the mean of a timed batch of k operations. The class of a sample is
// the operation's kind; of a batch it is the role's only kind, or kMixedClass where the role's mix
// has several. Used by one thread; histograms are merged afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "harness/measure/clock.h"
#include "harness/measure/histogram.h"
#include "harness/trial/phase_figures.h"
#include "workloads/stream.h"
#include "workloads/workload.h"

namespace assay {

class LatencyRecorder {
 public:
  /// One slot of the series: an interval of kSlotNs.
  struct Slot {
    std::uint64_t operations = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> latencies;  ///< ns, count
  };
  static constexpr std::uint64_t kSlotNs = 1'000'000'000;
  /// Rates are kept ten times as fine, for the test of a trend.
  static constexpr std::uint64_t kRateNs = kSlotNs / 10;
  /// Intervals of kRateNs that are kept apart (three days of tenths of a second; what comes later
  /// counts into the last), so that a clock that leaps ahead does not ask for all the memory there
  /// is.
  static constexpr std::size_t kRatesMax = 2'592'000;

  /// `mix`: the role's weights; memory for its classes is taken, and touched, here. `timed_batch`:
  /// operations a sample.
  LatencyRecorder(const std::array<double, kOpKinds>& mix, std::uint32_t timed_batch);

  /// Forgets everything; slots are counted from `start_ticks` on.
  void begin(std::uint64_t start_ticks);
  /// Records operations [from, to) of `chunk` after Executor::execute().
  void record(const Chunk& chunk, std::size_t from, std::size_t to, const std::uint64_t* stamps);
  /// Records operations [from, to) of `chunk` after Executor::execute_paced().
  void record_paced(const Chunk& chunk, std::size_t from, std::size_t to,
                    const std::uint64_t* stamps, const std::uint64_t* dues);
  /// Closes the last slot. Call before reading the results.
  void end();

  /// Null where nothing of the class was recorded.
  [[nodiscard]] const Histogram* histogram(std::size_t sample_class) const;
  [[nodiscard]] const Histogram* histogram(OpKind kind) const {
    return histogram(static_cast<std::size_t>(kind));
  }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] const std::vector<std::uint64_t>& rates() const { return rates_; }
  /// Samples whose end lay before their begin; each was recorded as 0 ns.
  [[nodiscard]] std::uint64_t clock_steps_back() const { return clock_steps_back_; }

 private:
  void record_batches(std::size_t count, const std::uint64_t* stamps);
  void open_slot(std::uint64_t ticks);
  void close_slot();
  void add_one(std::size_t sample_class, std::uint64_t begin_ticks, std::uint64_t end_ticks,
               std::uint64_t operations);
  void ensure(std::size_t sample_class);

  const TickScale& scale_;
  std::uint32_t timed_batch_;
  std::size_t batch_class_ = kMixedClass;  ///< of every sample, where timed_batch_ > 1
  std::uint64_t start_ticks_ = 0;
  std::uint64_t rate_end_ticks_ = 0;  ///< end of the current interval of kRateNs
  std::size_t slot_ = 0;
  std::size_t rate_ = 0;
  std::uint64_t slot_operations_ = 0;
  std::uint64_t clock_steps_back_ = 0;
  Classes current_;  ///< of the slot at work
  Classes totals_;   ///< of the closed slots
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> rates_;
};

}  // namespace assay
