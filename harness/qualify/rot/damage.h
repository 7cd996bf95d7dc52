// What rots in a directory at rest: one bit, one sector, two sectors changed for each other, or the
// end of a file.
//
// One damage a case, so that what is found is already the least that shows it. Sectors of zeros are
// left alone (preallocated space would take most hits), but for those next to others' swaps.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay::qualify::rot {

enum class DamageKind : std::uint8_t { bit, zeroed_sector, swapped_sectors, cut_end };
inline constexpr std::size_t kDamageKinds = 4;
/// "a flipped bit", "a zeroed sector", "two swapped sectors", "a cut end".
[[nodiscard]] std::string_view to_string(DamageKind kind);

struct Damage {
  DamageKind kind = DamageKind::bit;
  std::string file;          ///< below the directory
  std::uint64_t offset = 0;  ///< where it begins, in bytes
  std::string before;        ///< the bytes there, and those that took their place
  std::string after;         ///< (not of a cut end)
  std::uint64_t other = 0;   ///< of a swap: the second sector

  /// "a flipped bit at byte 4711 of data.mdb".
  [[nodiscard]] std::string text() const;
};

/// Chooses a place by `random`, does the damage and tells it; nothing when the directory has no
/// place for this kind.
[[nodiscard]] Result<std::optional<Damage>> do_damage(const std::string& directory, DamageKind kind,
                                                      std::mt19937_64& random);

/// Whether the file holds again what it held before: the store has put it right.
[[nodiscard]] bool is_repaired(const std::string& directory, const Damage& damage);

}  // namespace assay::qualify::rot
