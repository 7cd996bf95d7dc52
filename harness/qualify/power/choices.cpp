#include "harness/qualify/power/choices.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace assay::qualify::power {
namespace {

using Group = std::pair<std::uint32_t, std::uint32_t>;

constexpr std::size_t kSectors = kPageBytes / kSectorBytes;

void set(std::vector<char>& units, const Group& group, char value) {
  std::fill(units.begin() + group.first, units.begin() + group.second, value);
}

const PageChange& change_of(const Disk& disk, const Unit& unit) {
  return disk.trace().events[unit.event].pages[unit.change];
}

/// Sectors in which a unit changes anything.
std::uint8_t changed_sectors(const PageChange& change) {
  static const std::array<std::byte, kPageBytes> zeros{};
  const std::byte* const before =
      change.before == nullptr ? zeros.data() : change.before->bytes.data();
  const std::byte* const after =
      change.after == nullptr ? zeros.data() : change.after->bytes.data();
  std::uint8_t sectors = 0;
  for (std::size_t sector = 0; sector < kSectors; ++sector) {
    if (std::memcmp(before + sector * kSectorBytes, after + sector * kSectorBytes, kSectorBytes) !=
        0) {
      sectors = static_cast<std::uint8_t>(sectors | (1U << sector));
    }
  }
  return sectors;
}

/// The ways in which a write of `changed` may stop: some of its first sectors are there, or some of
/// its last (a disk need not begin in front).
std::vector<std::uint8_t> tears(std::uint8_t changed) {
  std::vector<std::uint8_t> out;
  for (unsigned cut = 1; cut < kSectors; ++cut) {
    for (const unsigned mask : {(1U << cut) - 1, 0xffU & ~((1U << cut) - 1)}) {
      const auto seen = static_cast<std::uint8_t>(mask & changed);
      if (seen == 0 || seen == changed) continue;
      if (std::find(out.begin(), out.end(), seen) == out.end()) out.push_back(seen);
    }
  }
  return out;
}

class Lister {
 public:
  Lister(const Disk& disk, const Limits& limits, Omitted& omitted)
      : disk_(disk), limits_(limits), omitted_(omitted), groups_(groups_of(disk)) {}

  std::vector<Choice> list() {
    put(StateClass::all);
    if (groups_.empty()) return std::move(out_);
    put(StateClass::none);
    const auto count = static_cast<std::uint32_t>(groups_.size());
    const std::uint32_t from = count - std::min(count, limits_.singles_max);
    omitted_.singles = omitted_.singles || from != 0;
    for (std::uint32_t group = from; group < count; ++group) {
      put(StateClass::drop_one, group);
      put(StateClass::alone, group);
      put(StateClass::prefix, group);
      put(StateClass::file_prefix, group);
      inside(groups_[group]);
    }
    const std::uint32_t pairs_from = count - std::min(count, limits_.pairs_max);
    omitted_.pairs = omitted_.pairs || pairs_from != 0;
    for (std::uint32_t first = pairs_from; first < count; ++first) {
      for (std::uint32_t second = first + 1; second < count; ++second) {
        put(StateClass::drop_two, first, second);
      }
    }
    return std::move(out_);
  }

 private:
  void put(StateClass kind, std::uint32_t a = 0, std::uint32_t b = 0) {
    out_.push_back({static_cast<std::uint32_t>(disk_.position()), kind, a, b, 0});
  }
  void inside(const Group& group) {
    const std::uint32_t half = limits_.pieces_max / 2;
    omitted_.singles = omitted_.singles || group.second - group.first > limits_.pieces_max;
    for (std::uint32_t unit = group.first; unit < group.second; ++unit) {
      // Of a very long write its beginning and its end.
      if (unit >= group.first + half && unit + half < group.second) continue;
      if (group.second - group.first > 1) put(StateClass::piece, unit);
      if (disk_.pending()[unit].kind != Unit::Kind::data) continue;
      if (group.second - group.first > 1) put(StateClass::torn, unit, 0xff);
      for (const std::uint8_t sectors :
           tears(changed_sectors(change_of(disk_, disk_.pending()[unit])))) {
        put(StateClass::torn, unit, sectors);
      }
    }
  }

  const Disk& disk_;
  const Limits& limits_;
  Omitted& omitted_;
  std::vector<Group> groups_;
  std::vector<Choice> out_;
};

Kept seeded(const Disk& disk, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const std::size_t count = disk.pending().size();
  Kept kept{std::vector<char>(count, 0)};
  constexpr std::array<std::uint64_t, 4> kPermille{100, 500, 900, 980};
  const std::uint64_t permille = kPermille[below(kPermille.size())];
  if (below(2) == 0) {
    for (char& unit : kept.units) unit = below(1000) < permille ? 1 : 0;
  } else {
    for (const Group& group : groups_of(disk)) {
      set(kept.units, group, below(1000) < permille ? 1 : 0);
    }
  }
  if (below(2) == 0) {
    disk.close_down(kept.units);
  } else {
    disk.close_up(kept.units);
  }
  if (below(4) != 0 || count == 0) return kept;
  // Tears a page that nothing kept writes again.
  const std::size_t start = below(count);
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t at = (start + step) % count;
    const Unit& unit = disk.pending()[at];
    if (kept.units[at] == 0 || unit.kind != Unit::Kind::data) continue;
    bool needed = false;
    for (std::size_t later = at + 1; later < count; ++later) {
      const Unit& other = disk.pending()[later];
      const bool builds_on =
          other.follows == unit.id ||
          std::find(other.needs.begin(), other.needs.end(), unit.id) != other.needs.end();
      needed = needed || (kept.units[later] != 0 && builds_on);
    }
    if (needed) continue;
    kept.torn = static_cast<std::uint32_t>(at);
    kept.sectors = static_cast<std::uint8_t>(below(256));
    break;
  }
  return kept;
}

Kept torn(const Disk& disk, const Choice& choice) {
  Kept kept{std::vector<char>(disk.pending().size(), 0)};
  const std::uint32_t event = disk.pending()[choice.a].event;
  std::fill(kept.units.begin(), kept.units.begin() + choice.a + 1, 1);
  // The size comes with the first piece of a write: else nothing of a growing one would be seen.
  for (std::size_t unit = choice.a + 1; unit < kept.units.size(); ++unit) {
    const Unit& each = disk.pending()[unit];
    if (each.event == event && each.kind == Unit::Kind::size) kept.units[unit] = 1;
  }
  disk.close_down(kept.units);
  kept.torn = choice.a;
  kept.sectors = static_cast<std::uint8_t>(choice.b);
  return kept;
}

}  // namespace

std::string_view to_string(StateClass kind) {
  constexpr std::array<std::string_view, 10> kNames{"all",      "none",        "drop-one", "alone",
                                                    "prefix",   "file-prefix", "piece",    "torn",
                                                    "drop-two", "seeded"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Group> groups_of(const Disk& disk) {
  std::vector<Group> groups;
  const auto& pending = disk.pending();
  for (std::uint32_t unit = 0; unit < pending.size(); ++unit) {
    if (unit == 0 || pending[unit].event != pending[unit - 1].event)
      groups.emplace_back(unit, unit);
    groups.back().second = unit + 1;
  }
  return groups;
}

std::vector<Choice> list_choices(const Disk& disk, const Limits& limits, Omitted& omitted) {
  return Lister(disk, limits, omitted).list();
}

Kept kept_by(const Disk& disk, const Choice& choice) {
  const std::size_t count = disk.pending().size();
  Kept kept{std::vector<char>(count, 1)};
  const std::vector<Group> groups = groups_of(disk);
  switch (choice.kind) {
    case StateClass::all:
      return kept;
    case StateClass::none:
      kept.units.assign(count, 0);
      return kept;
    case StateClass::drop_two:
      set(kept.units, groups[choice.b], 0);
      [[fallthrough]];
    case StateClass::drop_one:
      set(kept.units, groups[choice.a], 0);
      break;
    case StateClass::alone:
      kept.units.assign(count, 0);
      set(kept.units, groups[choice.a], 1);
      disk.close_up(kept.units);
      return kept;
    case StateClass::prefix:
      std::fill(kept.units.begin() + groups[choice.a].second, kept.units.end(), 0);
      break;
    case StateClass::file_prefix: {
      const FileId file = disk.pending()[groups[choice.a].first].file;
      for (std::size_t unit = groups[choice.a].second; unit < count; ++unit) {
        if (disk.pending()[unit].file == file) kept.units[unit] = 0;
      }
      break;
    }
    case StateClass::piece:
      kept.units[choice.a] = 0;
      break;
    case StateClass::torn:
      return torn(disk, choice);
    case StateClass::seeded:
      return seeded(disk, choice.seed);
  }
  disk.close_down(kept.units);
  return kept;
}

Tree state_of(const Disk& disk, const Kept& kept) {
  if (kept.torn >= kept.units.size() || kept.units[kept.torn] == 0 || kept.sectors == 0xff) {
    return disk.state(kept.units);
  }
  const Unit& unit = disk.pending()[kept.torn];
  Tree tree = disk.state(kept.units);
  const PageChange& change = change_of(disk, unit);
  static const std::array<std::byte, kPageBytes> zeros{};
  std::array<std::byte, kPageBytes> bytes = change.before == nullptr ? zeros : change.before->bytes;
  const std::byte* const after =
      change.after == nullptr ? zeros.data() : change.after->bytes.data();
  for (std::size_t sector = 0; sector < kSectors; ++sector) {
    if ((kept.sectors >> sector & 1) == 0) continue;
    std::memcpy(bytes.data() + sector * kSectorBytes, after + sector * kSectorBytes, kSectorBytes);
  }
  tree.change(unit.file).pages[change.page] = disk.trace().pool->intern(bytes);
  return tree;
}

std::vector<std::uint32_t> cuts_of(const Trace& trace) {
  std::vector<std::uint32_t> cuts;
  const auto put = [&](std::size_t events) {
    const auto cut = static_cast<std::uint32_t>(events);
    if (cuts.empty() || cuts.back() < cut) cuts.push_back(cut);
  };
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.kind == RecordKind::sync_returned) put(index);
    if (event.kind == RecordKind::mark &&
        event.reference == static_cast<std::uint64_t>(Mark::acknowledged)) {
      put(index + 1);
    }
  }
  put(trace.events.size());
  return cuts;
}

}  // namespace assay::qualify::power
