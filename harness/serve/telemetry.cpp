#include "harness/serve/telemetry.h"

#include <nlohmann/json.hpp>

namespace assay {

void Telemetry::record(served::Op op, std::uint64_t ns, bool failed) {
  const std::scoped_lock hold(lock_);
  auto& one = classes_[static_cast<std::size_t>(op)];
  if (one == nullptr) one = std::make_unique<Class>();
  one->latency.record(ns);
  one->failed += failed ? 1 : 0;
}

void Telemetry::add(const Telemetry& other) {
  const std::scoped_lock hold(lock_, other.lock_);
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (other.classes_[i] == nullptr) continue;
    if (classes_[i] == nullptr) classes_[i] = std::make_unique<Class>();
    classes_[i]->latency.merge(other.classes_[i]->latency);
    classes_[i]->failed += other.classes_[i]->failed;
  }
}

nlohmann::json Telemetry::json() const {
  const std::scoped_lock hold(lock_);
  nlohmann::json commands = nlohmann::json::array();
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i] == nullptr) continue;
    const Histogram& latency = classes_[i]->latency;
    commands.push_back({{"command", served::to_string(static_cast<served::Op>(i))},
                        {"count", latency.count()},
                        {"failed", classes_[i]->failed},
                        {"mean_ns", latency.mean()},
                        {"p50_ns", latency.value_at(0.5)},
                        {"p99_ns", latency.value_at(0.99)},
                        {"p999_ns", latency.value_at(0.999)},
                        {"max_ns", latency.max()}});
  }
  return {{"commands", commands}};
}

}  // namespace assay
