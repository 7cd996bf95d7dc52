// The directory of one trial: below the benchmark root, with a mark that says whose it is.
//
// Invariant: nothing is ever removed that does not carry a mark of ours, but for an empty directory
// with a name of ours whose maker is gone (killed before it could mark it). The mark names the
// owning process by pid, start time and the machine's boot, so that a directory whose owner is gone
// can be told from one that is in use.
#pragma once

#include <string>

#include "adapters/result.h"

namespace assay {

class TrialDirectory {
 public:
  /// Makes `root` (if it is not there), `root/assay-trial-PID-N/`, its mark and its `data/`.
  [[nodiscard]] static Result<TrialDirectory> make(const std::string& root);
  TrialDirectory(TrialDirectory&& other) noexcept;
  TrialDirectory& operator=(TrialDirectory&&) = delete;
  TrialDirectory(const TrialDirectory&) = delete;
  TrialDirectory& operator=(const TrialDirectory&) = delete;
  /// Removes the directory.
  ~TrialDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string data() const { return path_ + "/data"; }

 private:
  explicit TrialDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;  ///< empty after a move
};

/// Writes `text` to `path` as temporary + rename: a reader sees all of it or nothing. Not synced:
/// what parent and child hand each other need not survive them, and a sync would disturb the
/// device.
[[nodiscard]] Status hand_over_file(const std::string& path, const std::string& text);
[[nodiscard]] Result<std::string> read_file(const std::string& path);

}  // namespace assay
