// The ledger's record of one level of a campaign (kind "qualification", harness/FORMATS.md).
// Stateless; any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

/// What a record says besides the outcome, the same for every level of a campaign.
struct RecordContext {
  std::string campaign;  ///< identity: the digest of the plan
  std::string binary_sha256;
  nlohmann::json provenance;
  std::vector<std::string> command_line;
};

[[nodiscard]] nlohmann::json qualification_record(const CampaignPlan& plan,
                                                  const LevelOutcome& outcome,
                                                  const RecordContext& context);

}  // namespace assay::qualify
