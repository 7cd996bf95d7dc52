#include "harness/qualify/power/minimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace assay::qualify::power {
namespace {

class Minimiser {
 public:
  Minimiser(const Trace& trace, const Acknowledgements& receipts, const ExplorePlan& plan,
            const Failure& failure, std::uint32_t checks_max)
      : plan_(plan),
        failure_(failure),
        checks_left_(checks_max),
        disk_(trace, plan.profile, plan.suppressed) {
    while (disk_.position() < failure.choice.cut) disk_.step();
    kept_ = kept_by(disk_, failure.choice);
    out_.known = receipts_at(trace, receipts, failure.known_at);
    out_.cut = failure.choice.cut;
    out_.judgement = failure.judgement;
  }

  Result<MinimalFailure> run() {
    auto again = fails(kept_);
    if (!again) return std::unexpected(again.error());
    out_.reproduced = *again;
    if (out_.reproduced) {
      ASSAY_TRY(untear());
      ASSAY_TRY(give_back());
    }
    out_.state = state_of(disk_, kept_);
    for (const auto& [first, last] : groups_of(disk_)) {
      if (is_whole(kept_, first, last)) continue;
      out_.lost.push_back(disk_.pending()[first].event);
      out_.torn = kept_.torn >= first && kept_.torn < last && kept_.sectors != 0xff;
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] static bool is_whole(const Kept& kept, std::uint32_t first, std::uint32_t last) {
    const bool torn = kept.torn >= first && kept.torn < last && kept.sectors != 0xff;
    return !torn && std::all_of(kept.units.begin() + first, kept.units.begin() + last,
                                [](char unit) { return unit != 0; });
  }

  Result<bool> fails(const Kept& kept) {
    if (checks_left_ == 0) return false;
    --checks_left_;
    ++out_.checks;
    std::optional<Judgement> found;
    CheckPool::Plan one = plan_.pool;
    one.jobs = 1;
    CheckPool pool(one, [&](std::uint64_t, Judgement judgement) { found = std::move(judgement); });
    const Tree tree = state_of(disk_, kept);
    ASSAY_TRY(pool.submit(tree, out_.known, 0));
    pool.drain();
    // A smaller state that loses less would tell of another fault.
    if (!found || found->allowed(plan_.allowed) || found->loss < failure_.judgement.loss) {
      return false;
    }
    out_.judgement = std::move(*found);
    return true;
  }

  Status untear() {
    if (kept_.torn >= kept_.units.size() || kept_.sectors == 0xff) return {};
    Kept whole = kept_;
    whole.sectors = 0xff;
    const auto still = fails(whole);
    if (!still) return std::unexpected(still.error());
    if (*still) kept_ = std::move(whole);
    return {};
  }

  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> lost_groups() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lost;
    for (const auto& group : groups_of(disk_)) {
      if (!is_whole(kept_, group.first, group.second)) lost.push_back(group);
    }
    return lost;
  }

  Status give_back() {
    for (std::size_t piece = std::max<std::size_t>(lost_groups().size() / 2, 1); piece >= 1;) {
      bool gained = false;
      auto lost = lost_groups();
      for (std::size_t from = 0; from < lost.size(); from += piece) {
        Kept more = kept_;
        for (std::size_t at = from; at < std::min(lost.size(), from + piece); ++at) {
          // A torn write is given back by untear() only.
          if (more.torn >= lost[at].first && more.torn < lost[at].second) continue;
          std::fill(more.units.begin() + lost[at].first, more.units.begin() + lost[at].second, 1);
        }
        disk_.close_up(more.units);
        if (more.units == kept_.units) continue;
        const auto still = fails(more);
        if (!still) return std::unexpected(still.error());
        if (!*still) continue;
        kept_ = std::move(more);
        gained = true;
      }
      if (piece == 1 && !gained) break;
      piece = piece == 1 ? 1 : piece / 2;
      if (checks_left_ == 0) break;
    }
    return {};
  }

  const ExplorePlan& plan_;
  const Failure& failure_;
  std::uint32_t checks_left_;
  Disk disk_;
  Kept kept_;
  MinimalFailure out_;
};

/// The last event that is not a mark and has been lost in vain: what came after it.
std::string missing_sync(const Trace& trace, std::uint32_t lost, std::uint32_t cut) {
  const Event& event = trace.events[lost];
  std::string of = event.path;
  std::set<FileId> covering{event.file};
  if (!event.entries.empty()) {
    of = "the directory of " + event.path;
    covering.clear();
    for (const EntryChange& change : event.entries) covering.insert(change.name.first);
  }
  for (std::uint32_t index = lost + 1; index < cut; ++index) {
    const Event& later = trace.events[index];
    if (later.kind == RecordKind::range_flush && covering.contains(later.file)) {
      return fmt::format("sync_file_range of {} makes nothing durable", of);
    }
    if (later.kind != RecordKind::sync_returned || !covering.contains(later.file)) continue;
    if (later.result < 0) {
      return fmt::format("a sync of {} failed; what it should have written, no later one writes",
                         of);
    }
    if (later.call > lost) return fmt::format("a sync of {} followed, but does not cover it", of);
  }
  return fmt::format("no sync of {} followed before the cut", of);
}

}  // namespace

Result<MinimalFailure> minimise(const Trace& trace, const Acknowledgements& receipts,
                                const ExplorePlan& plan, const Failure& failure,
                                std::uint32_t checks_max) {
  return Minimiser(trace, receipts, plan, failure, checks_max).run();
}

std::vector<std::string> story_of(const Trace& trace, Profile profile,
                                  const MinimalFailure& failure) {
  std::vector<std::string> story;
  story.push_back(fmt::format("profile {}: the power fails after event {} of {}",
                              to_string(profile), failure.cut, trace.events.size()));
  story.push_back(fmt::format("until then {} commits were acknowledged since the recording began",
                              failure.known.acknowledged_commits()));
  const std::uint32_t from = failure.cut - std::min<std::uint32_t>(failure.cut, 12);
  if (from != 0) story.push_back(fmt::format("... {} events ...", from));
  for (std::uint32_t index = from; index < failure.cut; ++index) {
    story.push_back(fmt::format("event {}: {}", index, describe(trace.events[index])));
  }
  for (const std::uint32_t lost : failure.lost) {
    const bool in_part = failure.torn && lost == failure.lost.back();
    story.push_back(fmt::format("lost{}: event {}: {} ({})", in_part ? " in part" : "", lost,
                                describe(trace.events[lost]),
                                missing_sync(trace, lost, failure.cut)));
  }
  if (failure.lost.empty()) story.push_back("lost: nothing; the cut alone is enough");
  for (const Finding& finding : failure.judgement.findings) {
    story.push_back(fmt::format("found: {}: {}", to_string(finding.kind), finding.text));
  }
  return story;
}

}  // namespace assay::qualify::power
