// Which of the legal crash states of a cut are looked at: classes of states, each a list of
// choices.
//
// A choice is small and says how to build its state again: the cut (how many events are done), the
// class, its numbers. So a campaign keeps choices, not states, and a bundle replays from one.
// A group is what one event left pending: a call persists as a whole in the classes that drop or
// keep groups; classes `piece` and `torn` look inside.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/qualify/power/disk_model.h"

namespace assay::qualify::power {

enum class StateClass : std::uint8_t {
  all,          ///< nothing is lost
  none,         ///< everything pending is lost
  drop_one,     ///< group `a` is lost, with what needs it
  alone,        ///< only group `a` persists, with what it needs
  prefix,       ///< the first `a` groups persist
  file_prefix,  ///< of the file of group `a`, what comes after it is lost; all else persists
  piece,        ///< unit `a` of a group of several is lost, with what needs it
  torn,         ///< unit `a` persists in sectors `b`; of later calls nothing persists
  drop_two,     ///< groups `a` and `b` are lost
  seeded,       ///< a random subset by `seed`
};
[[nodiscard]] std::string_view to_string(StateClass kind);

struct Choice {
  std::uint32_t cut = 0;  ///< events done when the power fails
  StateClass kind = StateClass::all;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint64_t seed = 0;
};

/// A state in terms of pending units.
struct Kept {
  std::vector<char> units;      ///< one flag a pending unit
  std::uint32_t torn = ~0U;     ///< pending unit that persists in part
  std::uint8_t sectors = 0xff;  ///< which of its eight sectors do
};

struct Limits {
  std::uint32_t singles_max = 256;  ///< newest groups of a cut that the single classes look at
  std::uint32_t pairs_max = 48;     ///< ... and pairs
  std::uint32_t pieces_max = 64;    ///< units of one call that are looked at one by one
};

/// What was left out at a cut.
struct Omitted {
  bool singles = false;
  bool pairs = false;
};

/// First and one-past-last pending unit of each group, in order.
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> groups_of(const Disk& disk);

/// All choices of the classes but `seeded` at the disk's position.
[[nodiscard]] std::vector<Choice> list_choices(const Disk& disk, const Limits& limits,
                                               Omitted& omitted);

/// The units that a choice keeps; the disk stands at its cut.
[[nodiscard]] Kept kept_by(const Disk& disk, const Choice& choice);

/// The tree of it.
[[nodiscard]] Tree state_of(const Disk& disk, const Kept& kept);

/// The positions at which states are looked at: before a sync takes effect, after each
/// acknowledgement, and at the end.
[[nodiscard]] std::vector<std::uint32_t> cuts_of(const Trace& trace);

}  // namespace assay::qualify::power
