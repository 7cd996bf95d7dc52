// What was measured in one phase, as plain data: filled by run_phase.cpp and load_phase.cpp in the
// child, turned into JSON by phase_record.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/histogram.h"
#include "workloads/workload.h"

namespace assay {

using Classes = std::array<std::unique_ptr<Histogram>, kOpKinds>;

struct RoleFigures {
  std::string name;
  bool background = false;
  std::uint64_t operations = 0;
  Classes classes;  ///< this role's latencies alone
};

struct RatePoint {
  std::uint64_t t_ms = 0;  ///< start of the second, from the start of the timed part
  std::uint64_t operations = 0;
  std::uint64_t p99_ns = 0;
};

struct OpenLoopFigures {
  bool open_loop = false;
  std::uint64_t lag_ns_max = 0;
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
};

struct WarmUpFigures {
  std::uint64_t operations = 0;  ///< of the measured roles
  std::uint64_t wall_ns = 0;
  bool reached = true;  ///< false: `steady` gave up
};

/// operations, classes and series are those of the measured roles; mutations and bytes are those
/// of every thread, because so are the counters of the process and the device beside them.
struct PhaseFigures {
  std::uint64_t wall_ns = 0;
  std::uint64_t operations = 0;
  std::uint64_t mutations = 0;
  std::uint64_t not_found = 0;
  std::uint64_t logical_bytes_written = 0;
  std::uint64_t logical_bytes_read = 0;
  std::vector<RoleFigures> roles;
  std::vector<std::uint64_t> executed;  ///< by thread, warm-up included
  Classes classes;
  std::vector<RatePoint> series;
  std::vector<double> rates;  ///< operations in each whole LatencyRecorder::kRateNs
  OpenLoopFigures open_loop;
  WarmUpFigures warm_up;
};

}  // namespace assay
