#include "harness/qualify/block/cut_search.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::qualify::block {
namespace {

std::uint64_t notes_of(const Acknowledgements& known) {
  std::uint64_t begun = 0;
  for (const Acknowledgements::Writer& writer : known.writers) begun += writer.since.size();
  return begun << 32 | known.acknowledged_commits();
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes % 1024 != 0) return fmt::format("{} bytes", bytes);
  return fmt::format("{} KiB", bytes / 1024);
}

}  // namespace

Cut CutSearch::cut_of(DiskState state) const {
  Cut cut;
  cut.known = recorded_.timed.before(state.cut);
  for (const std::uint32_t length : recorded_.canaries)
    cut.canaries_due += length <= state.cut ? 1 : 0;
  cut.state = std::move(state);
  return cut;
}

bool CutSearch::next(Cut& cut) {
  DiskState state;
  while (picker_.next(state)) {
    cut = cut_of(std::move(state));
    if (region_) {
      const std::uint64_t known = cut.known.acknowledged_commits();
      if (known < region_->least || known > region_->most) continue;
    }
    image_.become(cut.state);
    const std::uint64_t hash = image_.hash();
    if (seen_.emplace(hash, notes_of(cut.known)).second) {
      images_.insert(hash);
      return true;
    }
    ++same_images_;
  }
  exhausted_ = true;
  return false;
}

Status CutSearch::finish(std::size_t lane, const std::function<bool(const Cut&)>& see,
                         bool& go_on) {
  const Result<nlohmann::json> answer = lanes_[lane].answer(std::chrono::milliseconds(0));
  if (!answer) return fail(answer.error());
  if (answer->is_null()) return {};
  Result<Checked> checked = checked_from_json(*answer);
  if (!checked) return fail(checked.error());
  const auto running = running_.find(lane);
  running->second.checked = std::move(*checked);
  go_on = see(running->second) && go_on;
  running_.erase(running);
  return {};
}

Status CutSearch::look(std::uint64_t states_max, const std::function<bool(const Cut&)>& see) {
  bool go_on = true;
  std::uint64_t begun = 0;
  auto heard = std::chrono::steady_clock::now();
  while (true) {
    for (std::size_t lane = 0; lane < lanes_.size() && go_on; ++lane) {
      if (lanes_[lane].busy() || begun == states_max) continue;
      Cut cut;
      if (!next(cut)) {
        go_on = false;
        break;
      }
      ++begun;
      ASSAY_TRY(lanes_[lane].ask_to_check(history_seed_, cut.state, cut.known, {}));
      running_.emplace(lane, std::move(cut));
    }
    if (running_.empty()) return {};
    Lane::wait_for_any(lanes_, std::chrono::milliseconds(100));
    const std::size_t before = running_.size();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      if (lanes_[lane].busy()) ASSAY_TRY(finish(lane, see, go_on));
    const auto now = std::chrono::steady_clock::now();
    if (running_.size() != before) heard = now;
    // A lane ends what hangs by itself; this is for a kernel that does not come back.
    if (now - heard > patience_ * 2 + std::chrono::seconds(60))
      return fail(ErrorKind::child, "a lane of level B hangs while it mounts or unmounts");
  }
}

Result<Cut> CutSearch::again(const Cut& cut, const std::string& image) {
  Cut repeated = cut_of(cut.state);
  ASSAY_TRY(lanes_.front().ask_to_check(history_seed_, repeated.state, repeated.known, image));
  const Result<nlohmann::json> answer =
      lanes_.front().answer(patience_ * 2 + std::chrono::seconds(60));
  if (!answer) return fail(answer.error());
  if (answer->is_null()) return fail(ErrorKind::child, "a lane of level B hangs");
  Result<Checked> checked = checked_from_json(*answer);
  if (!checked) return fail(checked.error());
  repeated.checked = std::move(*checked);
  return repeated;
}

Result<Cut> CutSearch::shrink(const Cut& failing, std::uint32_t tries,
                              const std::function<bool(const Cut&)>& fails) {
  Cut smallest = failing;
  const Interval& interval = picker_.intervals()[failing.state.interval];
  for (const std::uint32_t entry : interval.writes) {
    if (tries == 0) break;
    std::vector<Piece>& kept = smallest.state.kept;
    const Piece whole{entry, 0, disk_.entries()[entry].sectors()};
    const auto place = std::ranges::lower_bound(kept, entry, {}, &Piece::entry);
    const bool is_there = place != kept.end() && place->entry == entry;
    if (is_there && *place == whole) continue;
    Cut candidate = smallest;
    auto& given = candidate.state.kept;
    const auto at = given.begin() + (place - kept.begin());
    if (is_there)
      *at = whole;
    else
      given.insert(at, whole);
    --tries;
    Result<Cut> looked = again(candidate, {});
    if (!looked) return looked;
    if (fails(*looked)) smallest = std::move(*looked);
  }
  return smallest;
}

std::string CutSearch::entry_text(std::uint32_t entry) const {
  const LogEntry& one = disk_.entries()[entry];
  std::string text =
      fmt::format("{} {} of {} at {} KiB", one.kind == LogEntry::Kind::zero ? "discard" : "write",
                  entry, bytes_text(one.bytes), one.offset / 1024);
  for (const Extent& extent : recorded_.extents) {
    if (one.offset < extent.device_offset || one.offset >= extent.device_offset + extent.bytes)
      continue;
    return text + fmt::format(" ({}, offset {})", extent.file,
                              extent.file_offset + one.offset - extent.device_offset);
  }
  return text + " (the file system's own, or a file that was gone at the end)";
}

std::vector<std::string> CutSearch::story(const Cut& cut) const {
  constexpr std::size_t kLines = 12;
  const Interval& interval = picker_.intervals()[cut.state.interval];
  std::vector<std::string> story;
  story.push_back(fmt::format("the store lived on {} with the features {}",
                              recorded_.file_system.value("type", ""),
                              recorded_.file_system.value("features", "")));
  story.push_back(
      fmt::format("the disk had answered {} writes and flushes; {} flushes of them "
                  "were complete",
                  cut.state.durable_end, cut.state.interval));
  story.push_back(
      fmt::format("{} more writes came, and the power failed before the next flush "
                  "(entry {} of the log) was answered",
                  interval.writes.size(), interval.end));
  std::size_t lost = 0;
  std::size_t told = 0;
  // The last ones first to be left in: what failed is near the cut.
  const std::size_t from = interval.writes.size() - std::min(interval.writes.size(), kLines);
  for (std::size_t index = 0; index < interval.writes.size(); ++index) {
    const std::uint32_t entry = interval.writes[index];
    const auto place = std::ranges::find(cut.state.kept, entry, &Piece::entry);
    const bool is_there = place != cut.state.kept.end();
    const std::uint32_t sectors = disk_.entries()[entry].sectors();
    const bool whole = is_there && place->sectors == sectors;
    lost += whole ? 0 : 1;
    if (whole ? index < from : ++told > kLines) continue;
    if (whole)
      story.push_back("kept: " + entry_text(entry));
    else if (is_there)
      story.push_back(fmt::format("torn: {}; sectors {} to {} of {} are there", entry_text(entry),
                                  place->first_sector, place->first_sector + place->sectors - 1,
                                  sectors));
    else
      story.push_back("lost: " + entry_text(entry));
  }
  if (told > kLines) story.push_back(fmt::format("and {} more were lost", told - kLines));
  if (lost == 0)
    story.push_back("none of them was lost: what is missing had not been given to the disk");
  story.push_back("the file system was mounted, which recovered it, and the store was opened");
  return story;
}

}  // namespace assay::qualify::block
