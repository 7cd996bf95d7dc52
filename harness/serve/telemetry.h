// How long the commands of a class took in the server: from a request that has been received to
// the answer that is ready to be sent, so without the socket.
//
// One Telemetry a connection, recorded by its thread; any thread may merge a copy of it (the lock
// is free but for that). Histograms are made when their class is first seen.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

#include "adapters/served/protocol.h"
#include "harness/measure/histogram.h"

namespace assay {

class Telemetry {
 public:
  void record(served::Op op, std::uint64_t ns, bool failed);
  void add(const Telemetry& other);
  /// {"commands": [{"command", "count", "failed", "mean_ns", "p50_ns", "p99_ns", "p999_ns",
  /// "max_ns"}, ...]}: the classes that were used, in the order of their numbers.
  [[nodiscard]] nlohmann::json json() const;

 private:
  struct Class {
    Histogram latency;
    std::uint64_t failed = 0;
  };
  mutable std::mutex lock_;
  std::array<std::unique_ptr<Class>, served::kOpMost + 1> classes_;
};

}  // namespace assay
