// The counters around the timed part of a phase: process, barriers, block device, machine. A meter
// that does not work here is recorded as unknown with its reason.
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay {

class PhaseMeters {
 public:
  /// `directory` is the store's: its block device is watched.
  explicit PhaseMeters(const std::string& directory);
  ~PhaseMeters();
  PhaseMeters(const PhaseMeters&) = delete;
  PhaseMeters& operator=(const PhaseMeters&) = delete;

  /// Several begin()/end() pairs add up (the design `windows`).
  void begin();
  void end();
  /// Adds io, barriers, cpu, faults, context_switches and rss (harness/FORMATS.md) to a phase.
  void add_to(nlohmann::json& phase) const;

 private:
  struct Readings;
  std::unique_ptr<Readings> readings_;
};

}  // namespace assay
