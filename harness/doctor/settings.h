// Values of /proc and /sys that are changed for a while and always put back.
//
// A guardian process puts them back as soon as this process ends, however it ends; should both be
// killed, a journal that is on the medium before the first change tells the next start what to put
// back. One holder at a time (a lock beside the journal). A value that somebody else has changed
// meanwhile is left alone and named. Not for processes with threads: it forks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "adapters/result.h"
#include "harness/doctor/checks.h"

namespace assay::doctor {

struct SettingsPlace {
  std::string system_root = "/";
  /// Where the journal stands: a directory that only root writes to.
  std::string journal = "/run/assay-doctor.json";
};

struct Change {
  std::string path;
  std::string before;
  std::string applied;
};

struct Leftovers {
  std::vector<std::string> restored;  ///< what was done about each value that was left applied
  /// Why something is not as it was: held now, no permission, a damaged journal. It names the file.
  std::optional<Error> trouble;
};

/// Puts back what a killed process has left applied; both members are empty when there was nothing.
/// It never fails as a whole, so that looking at the machine always works.
[[nodiscard]] Leftovers restore_leftovers(const SettingsPlace& place);

class HeldSettings {
 public:
  /// Applies all remedies or none. Errors: `environment` (no permission, another holder, a value
  /// that the kernel refuses).
  [[nodiscard]] static Result<HeldSettings> apply(const std::vector<Remedy>& remedies,
                                                  const SettingsPlace& place);
  HeldSettings(HeldSettings&& other) noexcept;
  HeldSettings& operator=(HeldSettings&&) = delete;
  ~HeldSettings();

  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
  /// Puts everything back now. An error when the guardian could not.
  [[nodiscard]] Status restore();

 private:
  HeldSettings(std::vector<Change> changes, int alive, pid_t guardian)
      : changes_(std::move(changes)), alive_(alive), guardian_(guardian) {}

  std::vector<Change> changes_;
  int alive_;  ///< the end of a pipe that closes with this process
  pid_t guardian_;
};

}  // namespace assay::doctor
