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
#include "workloads/stream_digest.h"
#include "workloads/workload.h"

namespace assay {

/// Latencies are kept apart by the kind of the operation; samples that cover operations of several
/// kinds (timed batches of a mix) are a class of their own, "mixed".
inline constexpr std::size_t kMixedClass = kOpKinds;
inline constexpr std::size_t kTableClass = kOpKinds + 1;  ///< of a phase over tables: whole runs
inline constexpr std::size_t kSampleClasses = kOpKinds + 2;
using Classes = std::array<std::unique_ptr<Histogram>, kSampleClasses>;

/// Time inside store calls. Of several threads: the sum, and the sum of the threads' rates.
struct StoreTime {
  std::uint64_t ns = 0;
  double rate_per_s = 0.0;  ///< operations a second of store time
  /// Adds a thread.
  void add(std::uint64_t operations, std::uint64_t thread_ns) {
    ns += thread_ns;
    if (thread_ns > 0)
      rate_per_s += static_cast<double>(operations) * 1e9 / static_cast<double>(thread_ns);
  }
};

struct RoleFigures {
  std::string name;
  bool background = false;
  std::uint64_t operations = 0;
  StoreTime store;
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

/// operations, store, classes and series are those of the measured roles; mutations and bytes are
/// those of every thread, because so are the counters of the process and the device beside them.
struct PhaseFigures {
  std::uint64_t wall_ns = 0;
  std::uint64_t operations = 0;
  std::uint64_t mutations = 0;
  std::uint64_t not_found = 0;
  std::uint64_t logical_bytes_written = 0;
  std::uint64_t logical_bytes_read = 0;
  std::vector<RoleFigures> roles;
  std::vector<std::uint64_t> executed;  ///< by thread, warm-up included
  std::vector<StreamPrefix> streams;    ///< by thread: digest of the first of those
  StoreTime store;
  std::uint64_t clock_steps_back = 0;  ///< samples that would have had a negative latency
  Classes classes;
  std::vector<RatePoint> series;
  std::vector<double> rates;  ///< operations in each whole LatencyRecorder::kRateNs
  OpenLoopFigures open_loop;
  WarmUpFigures warm_up;
};

}  // namespace assay
