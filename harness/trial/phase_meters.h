// The counters around the timed part of a phase: process, barriers, block device, machine. A meter
// that does not work here is recorded as unknown with its reason.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace assay {

class PhaseMeters {
 public:
  /// `directory` is the store's: its block device is watched. `elsewhere` says why what this
  /// process uses is not what the store uses (it works in another one); those figures are then
  /// unknown with that reason, for what is not looked at must not be shown as 0. Empty: the store
  /// works here.
  explicit PhaseMeters(const std::string& directory, std::string_view elsewhere = {});
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
