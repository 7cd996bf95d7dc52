#include "harness/qualify/block/disk_states.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::qualify::block {
namespace {

/// Whose turn it is: `none` and single losses are where a missing flush shows first.
constexpr std::array<StateClass, 12> kTurns = {
    StateClass::none,     StateClass::drop_one, StateClass::alone,    StateClass::torn,
    StateClass::drop_one, StateClass::prefix,   StateClass::seeded,   StateClass::none,
    StateClass::drop_two, StateClass::alone,    StateClass::drop_one, StateClass::all};

/// More tears of one write than this say nothing new.
constexpr std::uint32_t kTearsMax = 4;
constexpr std::uint32_t kPairsMax = 400;  ///< of one interval

}  // namespace

std::string_view to_string(StateClass kind) {
  switch (kind) {
    case StateClass::none:
      return "none";
    case StateClass::drop_one:
      return "drop_one";
    case StateClass::alone:
      return "alone";
    case StateClass::prefix:
      return "prefix";
    case StateClass::torn:
      return "torn";
    case StateClass::drop_two:
      return "drop_two";
    case StateClass::seeded:
      return "seeded";
    case StateClass::all:
      return "all";
  }
  return "?";
}

std::vector<Interval> intervals_of(std::span<const LogEntry> entries) {
  std::vector<Interval> intervals(1);
  for (std::uint32_t at = 0; at < entries.size(); ++at) {
    if (entries[at].kind != LogEntry::Kind::flush) {
      intervals.back().writes.push_back(at);
      continue;
    }
    intervals.back().end = at;
    intervals.push_back({.begin = at + 1, .end = at + 1, .writes = {}});
  }
  intervals.back().end = static_cast<std::uint32_t>(entries.size());
  return intervals;
}

StatePicker::StatePicker(std::span<const LogEntry> entries, std::uint64_t seed)
    : entries_(entries), intervals_(intervals_of(entries)), random_(seed) {
  list_choices();
}

/// splitmix64: the same on every machine.
std::uint64_t StatePicker::random() {
  std::uint64_t mixed = random_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

void StatePicker::list_choices() {
  const auto of = [this](StateClass kind) -> std::vector<Choice>& {
    return choices_[static_cast<std::size_t>(kind)];
  };
  for (std::uint32_t number = 0; number < intervals_.size(); ++number) {
    const Interval& interval = intervals_[number];
    const auto writes = static_cast<std::uint32_t>(interval.writes.size());
    of(StateClass::none).push_back({number, 0, 0});
    std::uint32_t pairs = 0;
    for (std::uint32_t a = 0; a < writes; ++a) {
      of(StateClass::drop_one).push_back({number, a, 0});
      // Of two writes, losing one is keeping the other; the first alone is a prefix.
      if (writes > 2 && a > 0) of(StateClass::alone).push_back({number, a, 0});
      if (a > 0 && writes > 2) of(StateClass::prefix).push_back({number, a, 0});
      const std::uint32_t sectors = entries_[interval.writes[a]].sectors();
      const std::uint32_t step = std::max(1U, sectors / (kTearsMax + 1));
      std::uint32_t tears = 0;
      for (std::uint32_t kept = step; kept < sectors && tears < kTearsMax; kept += step, ++tears)
        of(StateClass::torn).push_back({number, a, kept});
      for (std::uint32_t b = a + 1; b < writes && writes > 3 && pairs < kPairsMax; ++b, ++pairs)
        of(StateClass::drop_two).push_back({number, a, b});
    }
  }
  const auto last = static_cast<std::uint32_t>(intervals_.size() - 1);
  if (!intervals_.back().writes.empty()) of(StateClass::all).push_back({last, 0, 0});
  for (std::uint32_t kind = 0; kind < kStateClasses; ++kind) {
    std::vector<Choice>& list = choices_[kind];
    counts_[kind].legal = list.size();
    for (std::size_t left = list.size(); left > 1; --left)
      std::swap(list[left - 1], list[random() % left]);
  }
}

DiskState StatePicker::build(StateClass kind, const Choice& choice) {
  const Interval& interval = intervals_[choice.interval];
  DiskState state{.kind = kind,
                  .interval = choice.interval,
                  .durable_end = interval.begin,
                  .cut = interval.end,
                  .kept = {}};
  for (std::uint32_t at = 0; at < interval.writes.size(); ++at) {
    const std::uint32_t entry = interval.writes[at];
    Piece piece{entry, 0, entries_[entry].sectors()};
    bool keep = false;
    switch (kind) {
      case StateClass::none:
      case StateClass::seeded:
        break;
      case StateClass::all:
        keep = true;
        break;
      case StateClass::drop_one:
        keep = at != choice.a;
        break;
      case StateClass::drop_two:
        keep = at != choice.a && at != choice.b;
        break;
      case StateClass::alone:
        keep = at == choice.a;
        break;
      case StateClass::prefix:
        keep = at < choice.a;
        break;
      case StateClass::torn:
        keep = at <= choice.a;
        if (at != choice.a) break;
        // The head of it or the tail of it.
        if (random() % 3 == 0) {
          piece.first_sector = choice.b;
          piece.sectors -= choice.b;
        } else {
          piece.sectors = choice.b;
        }
        break;
    }
    if (keep) state.kept.push_back(piece);
  }
  return state;
}

DiskState StatePicker::random_state() {
  const auto number = static_cast<std::uint32_t>(random() % intervals_.size());
  DiskState state = build(StateClass::none, {number, 0, 0});
  state.kind = StateClass::seeded;
  constexpr std::array<std::uint64_t, 4> kShares = {20, 50, 80, 95};
  const std::uint64_t share = kShares[random() % kShares.size()];
  for (const std::uint32_t entry : intervals_[number].writes) {
    if (random() % 100 >= share) continue;
    Piece piece{entry, 0, entries_[entry].sectors()};
    if (piece.sectors > 1 && random() % 8 == 0) {
      piece.first_sector = static_cast<std::uint32_t>(random() % piece.sectors);
      piece.sectors =
          1 + static_cast<std::uint32_t>(random() % (piece.sectors - piece.first_sector));
    }
    state.kept.push_back(piece);
  }
  return state;
}

bool StatePicker::next(DiskState& state) {
  for (std::size_t tried = 0; tried < kTurns.size(); ++tried) {
    const StateClass kind = kTurns[turn_++ % kTurns.size()];
    const auto index = static_cast<std::size_t>(kind);
    Count& count = counts_[index];
    if (kind == StateClass::seeded) {
      std::uint64_t others = 0;
      for (const Count& other : counts_) others += other.legal;
      // They have no end of their own.
      if (count.picked >= std::max<std::uint64_t>(others / 4, 16)) continue;
      ++count.picked;
      state = random_state();
      return true;
    }
    if (count.picked == count.legal) continue;
    state = build(kind, choices_[index][count.picked++]);
    return true;
  }
  return false;
}

}  // namespace assay::qualify::block
