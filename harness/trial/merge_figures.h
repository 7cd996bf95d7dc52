// Puts the figures of several threads together.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trial/latency_recorder.h"
#include "harness/trial/phase_figures.h"

namespace assay {

/// Adds every class that `recorder` has to `classes`.
void merge_classes(const LatencyRecorder& recorder, Classes& classes);

/// Adds the threads' slots by time. Every recorder must have begun at the same tick.
class SeriesMerger {
 public:
  void add(const LatencyRecorder& recorder);
  [[nodiscard]] std::vector<RatePoint> points() const;
  /// Operations by interval without the last one, which is not whole.
  [[nodiscard]] std::vector<double> whole_rates() const;

 private:
  std::vector<LatencyRecorder::Slot> slots_;
  std::vector<std::uint64_t> rates_;
};

}  // namespace assay
