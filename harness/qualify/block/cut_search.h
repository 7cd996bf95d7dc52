// Looks at the crash states of one recorded history, on several lanes at once.
//
// States are picked from the log, states with the same image and the same acknowledgements once.
// A failing one can be made smaller: writes that were lost are given back as long as it still
// fails. One thread uses an object.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/qualify/block/disk_states.h"
#include "harness/qualify/block/lane.h"
#include "harness/qualify/block/overlay_image.h"
#include "harness/qualify/campaign.h"

namespace assay::qualify::block {

/// A state that was looked at.
struct Cut {
  DiskState state;
  Acknowledgements known;
  std::uint32_t canaries_due = 0;
  Checked checked;
  /// The disk has lost what was flushed, or the file system did not come back.
  [[nodiscard]] bool disk_lied() const {
    return !checked.not_mounted.empty() || checked.canaries < canaries_due;
  }
};

class CutSearch {
 public:
  /// All must outlive it.
  CutSearch(const SharedDisk& disk, const Recorded& recorded, std::uint64_t history_seed,
            std::vector<Lane>& lanes, std::chrono::milliseconds patience)
      : disk_(disk),
        recorded_(recorded),
        history_seed_(history_seed),
        lanes_(lanes),
        patience_(patience),
        picker_(disk.entries(), history_seed),
        image_(disk) {}

  /// From now on only states of this region.
  void only(const CutRegion& region) { region_ = region; }
  /// Looks at up to `states_max` distinct states; `see` gets each, and says whether to go on.
  [[nodiscard]] Status look(std::uint64_t states_max, const std::function<bool(const Cut&)>& see);

  /// Fewer lost writes with which `fails` still holds, in at most `tries` tries.
  [[nodiscard]] Result<Cut> shrink(const Cut& failing, std::uint32_t tries,
                                   const std::function<bool(const Cut&)>& fails);
  /// Looks at a state again, keeping the store's directory at `image`.
  [[nodiscard]] Result<Cut> again(const Cut& cut, const std::string& image);

  [[nodiscard]] const StatePicker& picker() const { return picker_; }
  [[nodiscard]] std::uint64_t same_images() const { return same_images_; }
  [[nodiscard]] std::uint64_t distinct_images() const { return images_.size(); }
  /// Every state of every class with an end was looked at.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

  /// "write 12 of 4 KiB at 8.2 MiB (data.db, offset 4096)".
  [[nodiscard]] std::string entry_text(std::uint32_t entry) const;
  /// How the state came about, a sentence a step.
  [[nodiscard]] std::vector<std::string> story(const Cut& cut) const;

 private:
  [[nodiscard]] Cut cut_of(DiskState state) const;
  [[nodiscard]] bool next(Cut& cut);
  [[nodiscard]] Status finish(std::size_t lane, const std::function<bool(const Cut&)>& see,
                              bool& go_on);

  const SharedDisk& disk_;
  const Recorded& recorded_;
  std::uint64_t history_seed_;
  std::vector<Lane>& lanes_;
  std::chrono::milliseconds patience_;
  StatePicker picker_;
  OverlayImage image_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;
  std::set<std::uint64_t> images_;
  std::map<std::size_t, Cut> running_;
  std::optional<CutRegion> region_;
  std::uint64_t same_images_ = 0;
  bool exhausted_ = false;
};

}  // namespace assay::qualify::block
