// What a store says of damage at rest: whether checksums stand over its data, and what it may take
// for the end of its log.
// Stateless; any thread.
#pragma once

#include <string>

#include "adapters/store.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify::rot {

struct RotClaim {
  bool checksums = false;
  /// What a damage may cost without an error where checksums are claimed: a log ends where it does
  /// not make sense any more, so what was there last may be taken for torn.
  Loss unsaid = Loss::intact;
  std::string source;
};
/// A plug-in claims checksums by a setting of its own, `checksums` = on.
[[nodiscard]] RotClaim rot_claim_of(const std::string& store, const Settings& settings_in_force);

}  // namespace assay::qualify::rot
